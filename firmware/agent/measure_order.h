/* What a board is asked to measure. */
#ifndef RP_AGENT_MEASURE_ORDER_H
#define RP_AGENT_MEASURE_ORDER_H

#include <stdbool.h>

#include "plan/measured.h"

typedef struct {
    /* 0: only the job's microbatch, with the old form of the answer */
    uint32_t sizes;
    uint32_t samples[RP_MEASURED_SIZES_MAX]; /* ascending, from 1 */
    uint32_t seconds;                        /* approximate time limit of all measurements */
    uint32_t layers;                         /* 0: all */
    uint32_t layer[RP_MEASURED_LAYERS_MAX];  /* ascending */
    bool besides;                            /* also measure the additional costs of ops, */
    uint32_t codecs;                         /* with these codecs */
    uint32_t codec[RP_MEASURED_CODECS];
    bool predicts;
    rp_measured_average average;
} rp_measure_order;

#endif
