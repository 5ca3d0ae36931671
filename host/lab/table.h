/* The content of the report: a row per method and model, with statistics over its seeds. It is
 * computed from results and run files; nothing is trained. */
#ifndef RP_LAB_TABLE_H
#define RP_LAB_TABLE_H

#include "lab/plan.h"
#include "lab/stats.h"

typedef struct {
    uint32_t model, method;
    uint32_t line;     /* position among the rows of a model, the same for a method and point */
    uint32_t point;    /* index of the sweep's point, or RP_LAB_NOT_CHOSEN, RP_LAB_NONE_IS_GOOD */
    const char *label; /* "async, lr=0.02" */
    bool baseline;

    uint32_t wanted, finished, failed;  /* numbers of runs */
    uint32_t diverged;                  /* among the finished runs */
    const rp_lab_result *const *result; /* by seed; NULL: not finished */

    /* over seeds; NaN: none */
    rp_stats accuracy, loss, train_loss, samples_per_s, gain, seconds_to_goal;
    rp_stats_paired accuracy_over, loss_over; /* differences to the baseline */
    double *accuracy_of, *loss_of;            /* values by seed; NaN: diverged */
    double speed;                             /* ratio of samples/s to the baseline; NaN: none */

    /* by stage: the largest over seeds, but busy_s and idle_s are sums */
    uint32_t stage_count;
    rp_lab_stage *stage;
    rp_lab_wire *wire; /* wires of the first run; numbers are means over runs that have them */
    uint32_t wire_count;
    double device_bytes, gap_max, versions_max; /* over stages: sum, largest, largest */
} rp_lab_row;

/* A point that tuning tried. */
typedef struct {
    const char *label;
    rp_stats score; /* accuracy or loss, over the tuning seeds */
    uint32_t finished, diverged, wanted;
    bool chosen, at_edge; /* at_edge: the best value is the first or last of its list */
} rp_lab_trial;

typedef struct {
    uint32_t model, method;
    bool accuracy;   /* the score is an accuracy, not a loss */
    bool validation; /* scored on the validation part, not on the test part */
    rp_lab_trial *trial;
    uint32_t trial_count;
} rp_lab_tuning;

typedef struct {
    const rp_lab_plan *plan;
    bool classes;     /* rows have accuracies */
    bool validation;  /* curves are of the validation part, not of the test part */
    bool predicted;   /* some row has a gain: stale over predicted distance of weights */
    bool cut_differs; /* runs of one model were cut at different layers */
    uint32_t line_count;
    rp_lab_row *row; /* by model, then line */
    uint32_t row_count;
    rp_lab_tuning *tuning;
    uint32_t tuning_count;
    int64_t first_s, last_s; /* first and last end of a run, in s since 1970; 0: none */

    /* keys of the run files, without seed and model: with equal values in all rows, and with
     * different ones; in the files' order */
    const char **equal, **differs;
    const char **equal_value; /* as YAML, by index in `equal` */
    uint32_t equal_count, differs_count;
} rp_lab_table;

/* Keeps pointers into `plan`. errors: those of reading the run files; MEMORY */
rp_err rp_lab_table_make(rp_arena *arena, const rp_lab_plan *plan, rp_lab_table *out) RP_MUST_CHECK;

const rp_lab_row *rp_lab_table_row(const rp_lab_table *table, uint32_t model, uint32_t line);
/* NULL: none. */
const rp_lab_row *rp_lab_table_baseline(const rp_lab_table *table, uint32_t model);
/* The row's first finished run; NULL: none. */
const rp_lab_result *rp_lab_row_first(const rp_lab_row *row);

/* Number of wires of all rows of a model. */
uint32_t rp_lab_table_wires(const rp_lab_table *table, uint32_t model);

/* Text that names the part of the data on which points were chosen. */
const char *rp_lab_table_chosen_on(const rp_lab_table *table);
/* The row's difference to the baseline in accuracy, or in loss without accuracies. */
const rp_stats_paired *rp_lab_row_over(const rp_lab_table *table, const rp_lab_row *row);

/* 1: better than the baseline, -1: worse, 0: the seeds show no difference. */
int rp_lab_row_verdict(const rp_lab_table *table, const rp_lab_row *row);

/* State of a comparison for its files. */
typedef struct {
    const char *state; /* "finished", "running", "interrupted", "failed", "unfinished" */
    rp_lab_counts counts;
} rp_lab_report_options;

#endif
