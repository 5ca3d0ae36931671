/* The result of one run, read from summary.json and log.jsonl of its folder and, if it failed, from
 * its standard error. */
#ifndef RP_LAB_RESULT_H
#define RP_LAB_RESULT_H

#include <stdbool.h>

#include "base/arena.h"

enum { RP_LAB_BINS = 240, RP_LAB_STAGES_MAX = 256, RP_LAB_WIRES_MAX = 1024 };

typedef enum {
    RP_LAB_OPEN, /* not started */
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

/* Numbers of a wire: one direction between two ends. NaN: not measured, or by an older version. */
typedef enum {
    RP_LAB_WIRE_BYTES,
    RP_LAB_WIRE_BUSY, /* share of the training time, at the measured rate */
    RP_LAB_WIRE_RATE,
    RP_LAB_WIRE_DELAY,      /* ms from a message to its ack, median */
    RP_LAB_WIRE_DELAY_MOST, /* 95th percentile */
    RP_LAB_WIRE_RESENT,
    RP_LAB_WIRE_RESETS,
    RP_LAB_WIRE_NUMBERS
} rp_lab_wire_number;

typedef struct {
    const char *kind, *from, *to; /* "hop", "0", "1"; "feed", "host", "0"; "control" */
    const char *codec;            /* "": not stated */
    double number[RP_LAB_WIRE_NUMBERS];
} rp_lab_wire;

/* An evaluation. */
typedef struct {
    double epoch, step, time_s; /* amount of training before; epoch NaN: unknown */
    double loss, accuracy;      /* NaN: not finite or missing */
} rp_lab_eval;

/* L2 distances of predicted and stale weights from the later ones on one stage, over steps. A bin
 * without a line is NaN. */
typedef struct {
    uint32_t stage;
    double gap_max;
    uint64_t lines;
    double ahead_mean;             /* updates that were predicted */
    double error_mean, stale_mean; /* over all lines */
    double error[RP_LAB_BINS], stale[RP_LAB_BINS];
} rp_lab_prediction;

/* A number of summary.json: "bubble", "ledger.lost", "stage.0.gap_max". */
typedef struct {
    const char *path;
    double value;
} rp_lab_number;

/* Numbers that are missing in the files are NaN. */
typedef struct {
    rp_lab_status status;
    const char *note; /* why the run failed */
    bool diverged;    /* finished, but its last evaluation or last epoch has no finite loss */
    bool classes;     /* it has an accuracy */
    int64_t ended_s;  /* time of summary.json, seconds since 1970; 0: none */
    double steps, epochs, seconds, samples, samples_per_s;
    double first_step_s; /* end of the first step, since the run began */
    double train_loss, eval_loss, accuracy, eval_samples;
    bool validated; /* the run has a validation part, with these results at the end: */
    double validation_loss, validation_accuracy;
    double skipped;        /* steps that train.guard left out */
    rp_lab_number *number; /* all numbers of summary.json, for columns without a field here */
    uint32_t number_count;
    rp_lab_stage *stage;
    uint32_t stage_count;
    rp_lab_wire *wire;
    uint32_t wire_count;
    rp_lab_eval *eval; /* on the validation part if there is one, else on the test part */
    uint32_t eval_count;
    /* mean train loss of the steps of bin i: [i * bin_steps, (i + 1) * bin_steps) */
    double bin_steps;
    uint32_t bin_count;
    double *bin_loss;
    rp_lab_prediction *prediction;
    uint32_t prediction_count;
} rp_lab_result;

/* `log`: path of the run's standard error. The run is OPEN if the folder does not exist, and FAILED
 * with a note if its files are invalid.
 * errors  MEMORY only */
rp_err rp_lab_result_read(rp_arena *arena, const char *folder, const char *log,
                          rp_lab_result *out) RP_MUST_CHECK;

/* Seconds from the first step to the end of the first evaluation with this accuracy; NaN: none. */
double rp_lab_result_seconds_to(const rp_lab_result *result, double accuracy);

/* The number of summary.json at `path`; NaN: missing. */
double rp_lab_result_number(const rp_lab_result *result, const char *path);

/* The prediction of a stage; NULL: none, or `result` is NULL. */
const rp_lab_prediction *rp_lab_result_prediction(const rp_lab_result *result, uint32_t stage);

/* Stale over predicted distance, summed over all stages whose weights changed; above 1 the
 * prediction helps. NaN: no predictions. */
double rp_lab_result_gain(const rp_lab_result *result);

#endif
