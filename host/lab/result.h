/* What one run left behind, read from its folder: summary.json, log.jsonl, and, when it failed,
 * the last error of what it said. */
#ifndef RP_LAB_RESULT_H
#define RP_LAB_RESULT_H

#include <stdbool.h>

#include "base/arena.h"

enum { RP_LAB_BINS = 240, RP_LAB_STAGES_MAX = 256, RP_LAB_WIRES_MAX = 1024 };

typedef enum {
    RP_LAB_OPEN, /* not begun */
    RP_LAB_INTERRUPTED,
    RP_LAB_FAILED,
    RP_LAB_FINISHED
} rp_lab_status;

typedef struct {
    const char *board;
    const char *first_layer, *last_layer;
    double busy_s, idle_s;
    double weight_bytes, device_bytes_max;
    double weight_versions_max, in_flight_max, gap_max;
} rp_lab_stage;

/* Of a wire, one way between two ends; NaN: not measured, or not by that version. */
typedef enum {
    RP_LAB_WIRE_BYTES,
    RP_LAB_WIRE_BUSY, /* of the time trained, at the measured rate */
    RP_LAB_WIRE_RATE,
    RP_LAB_WIRE_DELAY,      /* ms from a message to its ack, of half of them */
    RP_LAB_WIRE_DELAY_MOST, /* and of 95 % */
    RP_LAB_WIRE_RESENT,
    RP_LAB_WIRE_RESETS,
    RP_LAB_WIRE_NUMBERS
} rp_lab_wire_number;

typedef struct {
    const char *kind, *from, *to; /* "hop", "0", "1"; "feed", "host", "0"; "control" */
    const char *codec;            /* "" where none is stated */
    double number[RP_LAB_WIRE_NUMBERS];
} rp_lab_wire;

/* A line of an evaluation. */
typedef struct {
    double epoch, step, time_s; /* how much had been trained; epoch NaN: not known */
    double loss, accuracy;      /* NaN: not finite, or there is none */
} rp_lab_eval;

/* Distances of predicted weights from the true ones, of one stage; a bin without a line is NaN. */
typedef struct {
    uint32_t stage;
    double gap_max;
    uint64_t lines;
    double ahead_mean;             /* updates that it predicted ahead */
    double error_mean, stale_mean; /* over all lines */
    double error[RP_LAB_BINS], stale[RP_LAB_BINS];
} rp_lab_prediction;

/* A number of summary.json: "bubble", "ledger.lost", "stage.0.gap_max". */
typedef struct {
    const char *path;
    double value;
} rp_lab_number;

/* What a file does not say is NaN. */
typedef struct {
    rp_lab_status status;
    const char *note; /* of a run that failed: why */
    bool diverged;    /* finished, but its last evaluation or its last epoch is not finite */
    bool classes;     /* it has an accuracy */
    int64_t ended_s;  /* when summary.json was written, seconds since 1970; 0: not */
    double steps, epochs, seconds, samples, samples_per_s;
    double first_step_s; /* since the run began: its first step was done */
    double train_loss, eval_loss, accuracy, eval_samples;
    bool validated; /* it has a validation part: this gave at the end */
    double validation_loss, validation_accuracy;
    double skipped;        /* steps */
    rp_lab_number *number; /* all of them, for columns that nothing else here knows */
    uint32_t number_count;
    rp_lab_stage *stage;
    uint32_t stage_count;
    rp_lab_wire *wire;
    uint32_t wire_count;
    rp_lab_eval *eval; /* of the validation part where there is one, else of the test part */
    uint32_t eval_count;
    /* mean train loss of the steps of bin i: [i * bin_steps, (i + 1) * bin_steps) */
    double bin_steps;
    uint32_t bin_count;
    double *bin_loss;
    rp_lab_prediction *prediction;
    uint32_t prediction_count;
} rp_lab_result;

/* `folder` is the run's, `log` what it said on standard error. A folder that is not there is an
 * OPEN run; files that make no sense are a FAILED one, with a note.
 * errors  MEMORY only */
rp_err rp_lab_result_read(rp_arena *arena, const char *folder, const char *log,
                          rp_lab_result *out) RP_MUST_CHECK;

/* Seconds from the first step to the end of the first evaluation that was so accurate; NaN: none
 * was. */
double rp_lab_result_seconds_to(const rp_lab_result *result, double accuracy);

/* The number of summary.json at `path`; NaN: there is none. */
double rp_lab_result_number(const rp_lab_result *result, const char *path);

/* The prediction of a stage; NULL: there is none, or no result. */
const rp_lab_prediction *rp_lab_result_prediction(const rp_lab_result *result, uint32_t stage);

/* Stale over predicted distance, over all stages whose weights went on; above 1 the prediction
 * helps. NaN: nothing was predicted. */
double rp_lab_result_gain(const rp_lab_result *result);

#endif
