/* The runs of a comparison: their run files, how far each is, and which one is next. */
#ifndef RP_LAB_PLAN_H
#define RP_LAB_PLAN_H

#include "lab/labfile.h"
#include "lab/result.h"

enum { RP_LAB_NOT_CHOSEN = 0xffffffff, RP_LAB_NONE_IS_GOOD = 0xfffffffe };

typedef struct {
    uint32_t model, seed, method, point; /* indices into the lab file's lists */
    const char *label;                   /* "async, lr=0.02" */
    const char *name;                    /* "cnn-small/async@lr=0.02/seed-1" */
    const char *folder, *file, *log;     /* paths: run folder, run file, standard error */
    bool wanted;                         /* part of the comparison, as far as known by now */
    bool tried, running;                 /* in this invocation */
    uint64_t steps;                      /* steps of the whole run; 0: not checked yet */
    rp_lab_result result;
} rp_lab_run;

typedef struct {
    rp_arena *arena;
    const rp_labfile *lab;
    const char *folder;
    rp_lab_run *run;
    uint32_t run_count;
    const char *keys; /* folder of this host's keys for a roster; NULL: from the base file */
    bool on_roster;   /* set by rp_lab_plan_check(): runs need the boards of a roster */
    uint32_t *chosen; /* by model and method: point that tuning chose, or an enum value above */
} rp_lab_plan;

/* Lists all runs that may become necessary, in the order in which they are made, and reads their
 * folders. A run folder made with other settings is an error.
 * errors  USAGE, IO */
rp_err rp_lab_plan_make(rp_arena *arena, const rp_labfile *lab, const char *folder,
                        rp_lab_plan *out) RP_MUST_CHECK;

rp_lab_run *rp_lab_plan_run(const rp_lab_plan *plan, uint32_t model, uint32_t method,
                            uint32_t point, uint32_t seed);

/* Reads the run's folder again and makes the choices of tuning that are now possible. */
rp_err rp_lab_plan_refresh(rp_lab_plan *plan, rp_lab_run *run) RP_MUST_CHECK;

/* Next run to start; NULL: none is left, or tuning waits for a run that is not over. */
rp_lab_run *rp_lab_plan_next(rp_lab_plan *plan);

/* Checks every run that is still to be made as `ringpipe train` would, and counts its steps; starts
 * nothing. Errors name the line of the lab file.
 * errors  USAGE; for runs on a roster those of rp_keys_read() */
rp_err rp_lab_plan_check(rp_lab_plan *plan) RP_MUST_CHECK;

/* Makes the folders and writes the run file. */
rp_err rp_lab_plan_write(const rp_lab_plan *plan, const rp_lab_run *run) RP_MUST_CHECK;

typedef struct {
    uint32_t wanted, finished, failed, diverged;
    uint64_t steps_left; /* steps of wanted, unfinished runs */
    bool complete;       /* no run and no choice of tuning is left */
} rp_lab_counts;

rp_lab_counts rp_lab_plan_count(const rp_lab_plan *plan);

/* The metric that tuning compares: accuracy (larger is better) or loss, on the validation part if
 * the run has one, else on the test part. NaN: no finished run, or it diverged. */
double rp_lab_metric_of(const rp_lab_plan *plan, const rp_lab_result *result);
bool rp_lab_metric_is_accuracy(const rp_lab_plan *plan, const rp_lab_result *result);

#endif
