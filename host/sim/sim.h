/* `ringpipe sim`: a run, or many seeded runs with faults, in one process on a virtual clock. */
#ifndef RP_SIM_SIM_H
#define RP_SIM_SIM_H

#include "control/controller.h"

typedef struct {
    const char *run_path;
    const char *const *set;
    uint32_t set_count;
    const char *executor; /* "digest" or "timed" */
    const char *plan;     /* plan.json; NULL: the controller makes a plan */
    const char *profile;  /* timed: profile.json; NULL: the run file's throttle */
    const char *out;      /* run folder of a single run; NULL: a temporary one */
    const char *resume;   /* run folder that a single run resumes; NULL: a new run */
    bool quiet;           /* print only the result of a single run, no progress */
    bool once;            /* do not resume a single run when its controller stops */
    const char *faults;   /* "none", "all" (drawn from the seed), or a file */
    uint64_t seed_first, seed_last;
    uint32_t jobs;
    bool trace; /* print every event on standard output */
    rp_format format;
} rp_sim_options;

/* Prints the result; for many seeds as JSON: runs, finished, stopped_resumable, hung, wrong,
 * first_bad_seed, faults, seconds.
 * errors  those of the run file; FAULT: a run hung or ended with another digest; INTERRUPTED;
 *         with `once`: the result of the controller */
rp_err rp_sim(const rp_sim_options *options) RP_MUST_CHECK;

#endif
