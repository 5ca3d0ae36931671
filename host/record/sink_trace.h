/* trace.json: every op and transfer, for chrome://tracing and ui.perfetto.dev. A board is a process
 * of the picture: its ops; what it sends, each parcel on a line of its own, with an arrow to the op
 * that takes it; microbatches in flight, updates since a microbatch's forward, parcels on the way.
 * Steps are marks across all.
 *
 * source  "Trace Event Format" (Chrome): JSON array of complete events ("ph":"X"), async ones
 * ("b", "e"), flows ("s", "f"), counters ("C") and instants ("i"), microseconds; the closing
 * bracket may be missing, so a killed run's trace opens too. "step" at the top is ours: by it a
 * resumed run takes events back */
#ifndef RP_RECORD_SINK_TRACE_H
#define RP_RECORD_SINK_TRACE_H

#include "record/sink.h"

typedef struct rp_trace rp_trace;

typedef struct {
    uint32_t stage; /* a process in the picture */
    uint32_t lane;  /* a thread in it: compute, send, ... */
    const char *name, *category;
    int64_t start_ns, duration_ns; /* host clock */
    uint64_t step;
    uint32_t first, count; /* samples */
} rp_trace_event;

enum { RP_TRACE_BYTES_MIN = 1 << 20 };

/* `origin_ns` is time 0. The file takes at most `bytes_max` bytes, and no bound is smaller than
 * RP_TRACE_BYTES_MIN: at the bound its older half goes (trace_keep.h). With `step_first` > 0 goes
 * on: events of that step and later ones are taken out, and the new ones stand behind the last that
 * stays. errors  IO */
rp_err rp_trace_open(rp_arena *arena, const char *path, int64_t origin_ns, uint64_t step_first,
                     uint64_t bytes_max, rp_trace **out) RP_MUST_CHECK;

/* Names in the picture; once each after every open, at any time. */
rp_err rp_trace_name_stage(rp_trace *trace, uint32_t stage, const char *name) RP_MUST_CHECK;
rp_err rp_trace_name_lane(rp_trace *trace, uint32_t stage, uint32_t lane,
                          const char *name) RP_MUST_CHECK;

/* Buffered; whole lines reach the file. */
rp_err rp_trace_add(rp_trace *trace, const rp_trace_event *event) RP_MUST_CHECK;
/* A counter of a stage that has a value from `ns` on. */
rp_err rp_trace_count(rp_trace *trace, uint32_t stage, const char *name, const char *unit,
                      uint64_t value, int64_t ns, uint64_t step) RP_MUST_CHECK;
/* A line across the picture. */
rp_err rp_trace_mark(rp_trace *trace, const char *name, int64_t ns, uint64_t step) RP_MUST_CHECK;
/* On a line of its own below `lane` of the sender, with an arrow from op to op. */
rp_err rp_trace_transfer(rp_trace *trace, uint32_t lane,
                         const rp_sink_transfer *transfer) RP_MUST_CHECK;
rp_err rp_trace_flush(rp_trace *trace) RP_MUST_CHECK;
rp_err rp_trace_close(rp_trace **trace) RP_MUST_CHECK; /* accepts NULL inside */

#endif
