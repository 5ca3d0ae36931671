/* log.jsonl: one JSON object in each line, for every step and every event. */
#ifndef RP_RECORD_SINK_METRICS_H
#define RP_RECORD_SINK_METRICS_H

#include "record/sink.h"

/* Opens `path`. With `step_first` > 0 the log continues: first, lines of later steps and a last
 * line that a crash has truncated are removed, except events like faults and resumed starts. Steps
 * that older versions counted from 0 are renumbered. errors  IO */
rp_err rp_metrics_open(rp_arena *arena, const char *path, uint64_t step_first, rp_targets targets,
                       void **sink) RP_MUST_CHECK;

#endif
