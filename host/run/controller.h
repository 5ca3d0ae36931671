/* The controller: plans the cut, brings a ring up, feeds it, decides on every step, saves,
 * finishes. */
#ifndef RP_RUN_CONTROLLER_H
#define RP_RUN_CONTROLLER_H

#include "data/data.h"
#include "record/record.h"

typedef struct {
    const char *run_path;
    const char *const *set;
    uint32_t set_count;
    const char *out;         /* run folder; NULL: runs/<time>-<model>-<schedule> */
    const char *resume;      /* run folder to go on in, or NULL */
    const char *keys_folder; /* for a roster */
    rp_format format;
    bool dry_run; /* read, check, plan; start nothing that trains */
} rp_train_options;

/* `ringpipe plan` (out: plan.json) and, with `profile_only`, `ringpipe profile` (out:
 * profile.json); without --out to standard output. */
rp_err rp_plan(const rp_train_options *options, bool profile_only) RP_MUST_CHECK;

/* `ringpipe train`. errors as their exit codes say; a FAULT or INTERRUPTED run can be resumed */
rp_err rp_train(const rp_train_options *options) RP_MUST_CHECK;

typedef struct {
    const char *run_path;
    const char *const *set;
    uint32_t set_count;
    const char *weights;
    rp_split split;
    const char *keys_folder;
    rp_format format;
} rp_eval_options;

/* `ringpipe eval` */
rp_err rp_eval(const rp_eval_options *options) RP_MUST_CHECK;

#endif
