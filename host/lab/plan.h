/* The runs of a comparison: which there are, what each one's run file says, how far each one is,
 * and which one comes next. */
#ifndef RP_LAB_PLAN_H
#define RP_LAB_PLAN_H

#include "lab/labfile.h"
#include "lab/result.h"

enum { RP_LAB_NOT_CHOSEN = 0xffffffff, RP_LAB_NONE_IS_GOOD = 0xfffffffe };

typedef struct {
    uint32_t model, seed, method, point; /* indices into the lab file's lists */
    const char *label;                   /* "async, lr=0.02" */
    const char *name;                    /* "cnn-small/async@lr=0.02/seed-1" */
    const char *folder, *file, *log;     /* its run folder, run file, what it said */
    bool wanted;                         /* as far as is known by now */
    bool tried, running;                 /* in this invocation */
    uint64_t steps;                      /* it will make, 0: not checked yet */
    rp_lab_result result;
} rp_lab_run;

typedef struct {
    rp_arena *arena;
    const rp_labfile *lab;
    const char *folder;
    rp_lab_run *run;
    uint32_t run_count;
    const char *keys; /* folder of this host's keys for a roster; NULL: as the base file says */
    bool on_roster;   /* of rp_lab_plan_check(): runs need the boards of a roster */
    uint32_t *chosen; /* by model and method: the point that tuning chose, or of the above */
} rp_lab_plan;

/* All runs that may become necessary, in the order in which they are made, and what is there of
 * them. A run folder made with other settings is refused: nothing is mixed.
 * errors  USAGE, IO */
rp_err rp_lab_plan_make(rp_arena *arena, const rp_labfile *lab, const char *folder,
                        rp_lab_plan *out) RP_MUST_CHECK;

rp_lab_run *rp_lab_plan_run(const rp_lab_plan *plan, uint32_t model, uint32_t method,
                            uint32_t point, uint32_t seed);

/* Reads the run's folder again, and chooses what can now be chosen. */
rp_err rp_lab_plan_refresh(rp_lab_plan *plan, rp_lab_run *run) RP_MUST_CHECK;

/* The next run to start; NULL: none, or none before a run under way has ended. */
rp_lab_run *rp_lab_plan_next(rp_lab_plan *plan);

/* Reads every run file that is still to be run as `ringpipe train` would, and counts its steps;
 * nothing is started. Errors name the line of the lab file.
 * errors  USAGE; those of rp_keys_read(), for runs on a roster */
rp_err rp_lab_plan_check(rp_lab_plan *plan) RP_MUST_CHECK;

/* Makes the folders and writes the run file. */
rp_err rp_lab_plan_write(const rp_lab_plan *plan, const rp_lab_run *run) RP_MUST_CHECK;

typedef struct {
    uint32_t wanted, finished, failed, diverged;
    uint64_t steps_left; /* of wanted runs that are not finished */
    bool complete;       /* nothing is left, and no choice either */
} rp_lab_counts;

rp_lab_counts rp_lab_plan_count(const rp_lab_plan *plan);

/* By what tuning chooses: of the validation part where a run has one, else of the test part. Larger
 * is better for accuracy. */
double rp_lab_metric_of(const rp_lab_plan *plan, const rp_lab_result *result);
bool rp_lab_metric_is_accuracy(const rp_lab_plan *plan, const rp_lab_result *result);

#endif
