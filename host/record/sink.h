/* A sink is one output of a run: a file, the terminal, standard output. The record (record.h) holds
 * one of each kind in the registry and hands every one the same few structs.
 *
 * A sink keeps the structs that it is given no longer than the call. No call blocks on anything but
 * the sink's own file, and no sink reads a clock: times are in the structs. */
#ifndef RP_RECORD_SINK_H
#define RP_RECORD_SINK_H

#include <stdio.h>

#include "base/arena.h"
#include "base/clock.h"
#include "record/histogram.h"
#include "record/summary.h"
#include "record/targets.h"
#include "record/words.h"
#include "sched/sched.h"

typedef enum { RP_FORMAT_TEXT, RP_FORMAT_JSON } rp_format;

/* What is fixed for a run's life; borrowed until the sink is closed. */
typedef struct {
    const char *folder; /* of the run; NULL: no files are written */
    bool temporary;     /* the folder is gone after the run: nobody is told of it */
    FILE *progress;     /* what a person watches; NULL: nobody does */
    FILE *result;       /* gets the result at the end, in `format`; NULL: nobody asks */
    rp_format format;
    const rp_clock *clock; /* for pictures that are drawn at most so often */
    int64_t start_ns;      /* of the clock, when the record was opened */
    double wall_s;         /* the same moment in seconds since 1970 */
    uint64_t step_first;   /* steps done by the run that this one resumes; 0: a new run */
    uint64_t step_total;
    uint32_t epochs, stages;
    uint64_t trace_bytes; /* trace.json at most; 0: there is none */
    bool without_losses;  /* simulated: losses and accuracies mean nothing to a person */
    rp_targets targets;
} rp_sink_run;

typedef struct {
    uint64_t step; /* from 0 */
    uint32_t epoch;
    double loss, lr;
    double bits;          /* only if the targets are a text */
    double samples_per_s; /* over the last steps; 0: not known yet */
    double tokens_per_s;  /* targets that count; 0: not known yet */
    const double *busy;   /* [stages]: share 0..1 of the last second; NULL in the first second */
    double time_s;        /* since the run began, resumed runs added */
    double wall_s;        /* since 1970 */
} rp_sink_step;

typedef struct {
    const char *split; /* "test", "validation", "train" */
    uint64_t step;     /* steps done before the evaluation */
    double loss;
    double bits;     /* only if the targets are a text */
    double accuracy; /* share 0..1; negative: the targets are no classes */
    double mean_iou; /* 0..1, only if the targets are pixels; NAN: unknown */
    uint64_t samples;
    double time_s, wall_s;
} rp_sink_eval;

typedef struct {
    const rp_run_event *event; /* a kind that has a name in the log */
    const char *text;          /* its sentence */
    double time_s;
} rp_sink_event;

/* How far the weights that a forward read were from those that were predicted, and how far they
 * would have been without a prediction: L2 norms over a stage (stage/probe.c). */
typedef struct {
    uint64_t step;       /* of the op that it was measured at */
    uint64_t gap, ahead; /* own updates until the backward, and updates that were predicted */
    uint32_t stage;
    double error, stale_error;
    double time_s, wall_s; /* set by the record */
} rp_sink_prediction;

/* What a codec has lost in a segment: of some samples of what a stage sent. */
typedef struct {
    uint64_t step;       /* steps done */
    uint32_t stage;      /* that sent them */
    const char *carries; /* "activations", "gradients" */
    const char *codec;
    double l2_error; /* relative: of what is lost, by that of the values */
    double time_s;   /* set by the record */
} rp_sink_codec;

/* An op that a board has run, on the host's clock. */
typedef struct {
    uint32_t stage; /* the board */
    uint32_t part;  /* the stage of the model, of those that the board holds */
    rp_op_kind kind;
    bool evaluation; /* a forward of an evaluation, not of training */
    uint64_t step;
    rp_range samples;
    int64_t start_ns, end_ns;
} rp_sink_op;

/* What one board has sent to another, on the host's clock: from the end of the op that made it to
 * the start of the one that takes it. So it has its time on the way and that of waiting there. */
typedef struct {
    uint32_t from, to;   /* boards */
    const char *carries; /* "activation", "gradient", ... */
    bool evaluation;
    uint64_t step;
    rp_range samples;
    uint64_t bytes; /* 0: not known */
    int64_t start_ns, end_ns;
} rp_sink_transfer;

/* The gradient's norm over all stages, before it is clipped. */
typedef struct {
    uint64_t step;
    double norm;
    double wall_s; /* set by the record */
} rp_sink_norm;

/* The values of a tensor of the model. */
typedef struct {
    uint64_t step; /* steps done */
    const char *name;
    const rp_histogram *values;
    double wall_s; /* set by the record */
} rp_sink_histogram;

/* What the boards say at the end of a segment: of the whole run so far. */
typedef struct {
    uint64_t step; /* steps done */
    const rp_summary_stage *stage;
    uint32_t stage_count;
    const rp_summary_link *link;
    uint32_t link_count;
    double time_s, wall_s; /* set by the record */
} rp_sink_facts;

/* How far something is that is no training: an evaluation, building kernels. */
typedef struct {
    const char *text;     /* "evaluating"; the same one as long as it goes on */
    uint64_t done, total; /* total 0: nobody knows */
    const char *unit;     /* of both: "samples" */
} rp_sink_part;

/* A function that is NULL: the sink has no interest in that. */
typedef struct {
    const char *name;
    bool spared; /* what it can not write is lost and said once; the run goes on */
    /* Leaves *sink NULL when this run has no use for it. errors  IO, MEMORY */
    rp_err (*open)(rp_arena *arena, const rp_sink_run *run, void **sink);
    rp_err (*on_step)(void *sink, const rp_sink_step *step);
    rp_err (*on_eval)(void *sink, const rp_sink_eval *eval);
    rp_err (*on_event)(void *sink, const rp_sink_event *event);
    rp_err (*on_prediction)(void *sink, const rp_sink_prediction *prediction);
    rp_err (*on_codec)(void *sink, const rp_sink_codec *codec);
    rp_err (*on_op)(void *sink, const rp_sink_op *op);
    rp_err (*on_transfer)(void *sink, const rp_sink_transfer *transfer);
    rp_err (*on_facts)(void *sink, const rp_sink_facts *facts);
    rp_err (*on_norm)(void *sink, const rp_sink_norm *norm);
    rp_err (*on_histogram)(void *sink, const rp_sink_histogram *histogram);
    rp_err (*on_phase)(void *sink, const char *text);
    rp_err (*on_part)(void *sink, const rp_sink_part *part);
    /* The run goes back to its position at `step` and does the steps from there again: what the
     * sink holds of them is taken back. */
    rp_err (*rewind)(void *sink, uint64_t step);
    /* Releases what the sink holds, also when it fails. `summary` NULL: the run has not begun. */
    rp_err (*close)(void *sink, const rp_summary *summary);
    /* In place of close(): the sink is left as it is, and never called again. May be NULL. */
    void (*crash)(void *sink);
} rp_sink_kind;

/* In this order they are told, and closed. */
extern const rp_sink_kind *const rp_sink_kinds[];

#endif
