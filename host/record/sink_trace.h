/* trace.json: every op and transfer, for chrome://tracing and ui.perfetto.dev. A board is shown as
 * a process with its ops; its parcels, with an arrow from op to op; and counters of microbatches in
 * flight, updates since a microbatch's forward, and parcels on the way. Steps are marks across all.
 *
 * source  "Trace Event Format" (Chrome): JSON array of complete events ("ph":"X"), async ones ("b",
 *         "e"), flows ("s", "f"), counters ("C") and instants ("i"), in microseconds. The closing
 *         bracket may be missing, so that the trace of a killed run opens. The top-level key "step"
 *         is an extension, by which a resumed run removes events */
#ifndef RP_RECORD_SINK_TRACE_H
#define RP_RECORD_SINK_TRACE_H

#include "record/sink.h"

typedef struct rp_trace rp_trace;

typedef struct {
    uint32_t stage; /* shown as a process */
    uint32_t lane;  /* shown as a thread of it: compute, send, ... */
    const char *name, *category;
    int64_t start_ns, duration_ns; /* host clock */
    uint64_t step;
    uint32_t first, count; /* samples */
} rp_trace_event;

enum { RP_TRACE_BYTES_MIN = 1 << 20 };

/* Opens a trace. `origin_ns`: time 0. `bytes_max`: limit of the file, at least RP_TRACE_BYTES_MIN;
 * at the limit the older half is removed (trace_keep.h). With `step_first` > 0 the file continues:
 * events of that step and later ones are removed, and new events come after the last one kept.
 * errors  IO */
rp_err rp_trace_open(rp_arena *arena, const char *path, int64_t origin_ns, uint64_t step_first,
                     uint64_t bytes_max, rp_trace **out) RP_MUST_CHECK;

/* Set names that are shown; once for each after every open, at any time. */
rp_err rp_trace_name_stage(rp_trace *trace, uint32_t stage, const char *name) RP_MUST_CHECK;
rp_err rp_trace_name_lane(rp_trace *trace, uint32_t stage, uint32_t lane,
                          const char *name) RP_MUST_CHECK;

/* Adds an op. Lines are buffered, and written as whole lines. */
rp_err rp_trace_add(rp_trace *trace, const rp_trace_event *event) RP_MUST_CHECK;
/* Sets a counter of a stage from time `ns` on. */
rp_err rp_trace_count(rp_trace *trace, uint32_t stage, const char *name, const char *unit,
                      uint64_t value, int64_t ns, uint64_t step) RP_MUST_CHECK;
/* Adds a mark across all stages. */
rp_err rp_trace_mark(rp_trace *trace, const char *name, int64_t ns, uint64_t step) RP_MUST_CHECK;
/* Adds a transfer in its own row below `lane` of the sender, with an arrow from op to op. */
rp_err rp_trace_transfer(rp_trace *trace, uint32_t lane,
                         const rp_sink_transfer *transfer) RP_MUST_CHECK;
rp_err rp_trace_flush(rp_trace *trace) RP_MUST_CHECK;
rp_err rp_trace_close(rp_trace **trace) RP_MUST_CHECK; /* accepts NULL inside */

#endif
