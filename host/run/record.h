/* What a run leaves behind, and what is seen while it runs: log.jsonl, trace.json, TensorBoard
 * events, summary.json and the progress view are all written from the same few calls. */
#ifndef RP_RUN_RECORD_H
#define RP_RUN_RECORD_H

#include "run/ring.h"

typedef struct rp_record rp_record;

typedef enum { RP_FORMAT_TEXT, RP_FORMAT_JSON } rp_format;

/* `folder` NULL: nothing is written (eval). A position behind step 0 resumes: what was logged of
 * later steps is taken back. */
rp_err rp_record_open(rp_arena *arena, const rp_runfile *run, const char *folder, rp_format format,
                      const rp_position *position, rp_record **out) RP_MUST_CHECK;

rp_err rp_record_step(rp_record *record, uint64_t step, double loss, double lr, uint32_t samples,
                      uint64_t correct) RP_MUST_CHECK;
/* Evaluation after `step` steps. */
rp_err rp_record_eval(rp_record *record, uint64_t step, double loss, uint64_t samples,
                      uint64_t correct) RP_MUST_CHECK;
/* A line of text that is also an event in the log: "checkpoint", "interrupted", "skipped". */
rp_err rp_record_event(rp_record *record, const char *name, uint64_t step,
                       const char *text) RP_MUST_CHECK;
/* Only in the log. */
rp_err rp_record_note(rp_record *record, const char *name, uint64_t step,
                      const char *text) RP_MUST_CHECK;
/* How far the weights that a forward saw were from those that were predicted, and how far they
 * would have been without a prediction: L2 norms over a stage (stage/probe.c). */
typedef struct {
    uint64_t step;       /* of the op that it was measured at */
    uint64_t gap, ahead; /* own updates until the backward, and updates that were predicted */
    uint32_t stage;
    double error, stale_error;
} rp_record_prediction;
rp_err rp_record_probe(rp_record *record, const rp_record_prediction *line) RP_MUST_CHECK;
/* Packed trace records of a stage (agent/runner.h), moved to the host's time. */
rp_err rp_record_trace(rp_record *record, uint32_t stage, int64_t clock_offset_ns,
                       const uint8_t *bytes, size_t count) RP_MUST_CHECK;
/* What is going on before the first step: "building kernels". */
void rp_record_phase(rp_record *record, const char *text);

/* The totals of a position, for a checkpoint. */
void rp_record_totals(const rp_record *record, rp_position *position);

/* Busy seconds and wall seconds of the segments so far, for the summary's shares. */
void rp_record_segment(rp_record *record, double seconds);

/* Ends the files, writes summary.json, prints the result. status: "finished", "interrupted",
 * "failed", with `note` in plain language (may be ""). */
rp_err rp_record_close(rp_record **record, const rp_ring *ring, const rp_cut *cut,
                       const char *status, const char *note) RP_MUST_CHECK;

#endif
