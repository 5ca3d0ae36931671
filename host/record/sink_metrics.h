/* log.jsonl: one JSON object a line, for every step and every event. */
#ifndef RP_RECORD_SINK_METRICS_H
#define RP_RECORD_SINK_METRICS_H

#include "base/arena.h"

typedef struct rp_metrics rp_metrics;

typedef struct {
    uint64_t step; /* from 1: as a person counts */
    uint32_t epoch;
    double loss, lr, samples_per_s, time_s; /* what is not finite is written as null */
} rp_metrics_step;

/* Begins `path`, or goes on behind `step_first` steps: lines of later ones, and a last line that
 * was torn by a crash, are taken out first. What is no training stays: faults, resumed starts.
 * Numbers that former versions counted from 0 become those of now.
 * errors  IO */
rp_err rp_metrics_open(rp_arena *arena, const char *path, uint64_t step_first,
                       rp_metrics **out) RP_MUST_CHECK;

/* Every call is one line, and it is in the file when the call returns. */
rp_err rp_metrics_write_step(rp_metrics *metrics, const rp_metrics_step *step) RP_MUST_CHECK;
/* {"event": "eval", step, loss, accuracy, samples, time_s, split}; accuracy < 0: there is none. */
rp_err rp_metrics_write_eval(rp_metrics *metrics, const char *split, uint64_t step, double loss,
                             double accuracy, uint64_t samples, double time_s) RP_MUST_CHECK;
/* {"event": name, step, time_s, text} */
rp_err rp_metrics_write_event(rp_metrics *metrics, const char *name, uint64_t step, double time_s,
                              const char *text) RP_MUST_CHECK;

/* {"event": "prediction", step, stage, gap, ahead, error, stale_error, time_s} */
rp_err rp_metrics_write_prediction(rp_metrics *metrics, uint64_t step, uint32_t stage, uint64_t gap,
                                   uint64_t ahead, double error, double stale_error,
                                   double time_s) RP_MUST_CHECK;

/* Takes back the lines of steps behind `step`, but for what happened. errors  IO */
rp_err rp_metrics_rewind(rp_metrics *metrics, uint64_t step) RP_MUST_CHECK;

rp_err rp_metrics_close(rp_metrics **metrics) RP_MUST_CHECK; /* accepts NULL inside */

#endif
