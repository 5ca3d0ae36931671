/* What a board is asked to measure of itself. */
#ifndef RP_AGENT_MEASURE_ORDER_H
#define RP_AGENT_MEASURE_ORDER_H

#include <stdbool.h>

#include "plan/measured.h"

typedef struct {
    uint32_t sizes;                          /* 0: only the job's microbatch, the old answer */
    uint32_t samples[RP_MEASURED_SIZES_MAX]; /* rising, from 1 */
    uint32_t seconds;                        /* that all may take about */
    uint32_t layers;                         /* 0: all */
    uint32_t layer[RP_MEASURED_LAYERS_MAX];  /* rising */
    bool besides;                            /* and what ops cost besides their layers, .. */
    uint32_t codecs;                         /* .. with these codecs */
    uint32_t codec[RP_MEASURED_CODECS];
    bool predicts;
    rp_measured_average average;
} rp_measure_order;

#endif
