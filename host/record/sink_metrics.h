/* log.jsonl: one JSON object a line, for every step and every event. */
#ifndef RP_RECORD_SINK_METRICS_H
#define RP_RECORD_SINK_METRICS_H

#include "record/sink.h"

/* Begins `path`, or goes on after `step_first` steps: lines of later ones, and a last line that was
 * torn by a crash, are taken out first. What is no training stays: faults, resumed starts. Numbers
 * that former versions counted from 0 become those of now.
 * errors  IO */
rp_err rp_metrics_open(rp_arena *arena, const char *path, uint64_t step_first,
                       void **sink) RP_MUST_CHECK;

#endif
