/* What the report shows: one row a method and model, statistics over its seeds. Computed from the
 * results alone. */
#ifndef RP_LAB_TABLE_H
#define RP_LAB_TABLE_H

#include "lab/plan.h"
#include "lab/stats.h"

typedef struct {
    uint32_t model, method;
    uint32_t line;     /* its place among the rows of a model: the same method has the same line */
    uint32_t point;    /* or RP_LAB_NOT_CHOSEN, RP_LAB_NONE_IS_GOOD */
    const char *label; /* "async, lr=0.02" */
    bool baseline;

    uint32_t wanted, finished, failed;  /* runs */
    uint32_t diverged;                  /* of the finished ones */
    const rp_lab_result *const *result; /* by seed; NULL: not finished */

    /* by seed as the lab file lists them; NaN: none */
    rp_stats accuracy, loss, train_loss, samples_per_s, gain, seconds_to_goal;
    rp_stats_paired accuracy_over, loss_over; /* the baseline's */
    double *accuracy_of, *loss_of;            /* the values themselves */
    double speed;                             /* samples/s over the baseline's, NaN: no baseline */

    /* by stage, the largest over seeds; of busy_s and idle_s the sum */
    uint32_t stage_count;
    rp_lab_stage *stage;
    rp_lab_wire *wire; /* of its first run; numbers are means over those that know them */
    uint32_t wire_count;
    double device_bytes, gap_max, versions_max; /* of all stages: sum, largest, largest */
} rp_lab_row;

/* One point that tuning tried. */
typedef struct {
    const char *label;
    rp_stats score; /* accuracy or loss, over the tuning seeds */
    uint32_t finished, diverged, wanted;
    bool chosen, at_edge;
} rp_lab_trial;

typedef struct {
    uint32_t model, method;
    bool accuracy;   /* what the score is */
    bool validation; /* scored on the validation part, not on the test part */
    rp_lab_trial *trial;
    uint32_t trial_count;
} rp_lab_tuning;

typedef struct {
    const rp_lab_plan *plan;
    bool classes;     /* rows have accuracies */
    bool validation;  /* curves are of the validation part, not of the test part */
    bool predicted;   /* some row has a gain */
    bool cut_differs; /* between runs of one model: measured anew each time */
    uint32_t line_count;
    rp_lab_row *row; /* by model, then line */
    uint32_t row_count;
    rp_lab_tuning *tuning;
    uint32_t tuning_count;
    int64_t first_s, last_s; /* when runs ended, 0: none has */

    /* keys of the run files: those with one value in all rows, those that differ; sorted as the
     * files are. Seeds and models are not among them. */
    const char **equal, **differs;
    const char **equal_value; /* as YAML, by `equal` */
    uint32_t equal_count, differs_count;
} rp_lab_table;

rp_err rp_lab_table_make(rp_arena *arena, const rp_lab_plan *plan, rp_lab_table *out) RP_MUST_CHECK;

const rp_lab_row *rp_lab_table_row(const rp_lab_table *table, uint32_t model, uint32_t line);
/* NULL: there is none. */
const rp_lab_row *rp_lab_table_baseline(const rp_lab_table *table, uint32_t model);
/* The row's first finished run; NULL: none has. */
const rp_lab_result *rp_lab_row_first(const rp_lab_row *row);

/* Of all rows of a model. */
uint32_t rp_lab_table_wires(const rp_lab_table *table, uint32_t model);

/* What the points of sweeps were chosen on. */
const char *rp_lab_table_chosen_on(const rp_lab_table *table);
/* The difference of the row's main number: accuracy, or the loss when there is none. */
const rp_stats_paired *rp_lab_row_over(const rp_lab_table *table, const rp_lab_row *row);

/* 1 better than the baseline, -1 worse, 0 no difference that the seeds show. */
int rp_lab_row_verdict(const rp_lab_table *table, const rp_lab_row *row);

/* What the files of a comparison say besides the table. */
typedef struct {
    const char *state; /* "finished", "running", "interrupted", "failed", "unfinished" */
    rp_lab_counts counts;
} rp_lab_report_options;

#endif
