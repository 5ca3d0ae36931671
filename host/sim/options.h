/* Options of `ringpipe sim`. */
#ifndef RP_SIM_OPTIONS_H
#define RP_SIM_OPTIONS_H

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

/* What is the same for a ring and for sites. errors USAGE: options that exclude each other; --out
 * exists; the file of --faults is missing */
rp_err rp_sim_check_options(const rp_sim_options *options) RP_MUST_CHECK;

#endif
