/* Many seeds: each is run by itself in one of a few child processes, so that a run that crashes or
 * never ends is a result like any other. */
#ifndef RP_SIM_SEEDS_H
#define RP_SIM_SEEDS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "sim/marks.h"

typedef enum {
    RP_SIM_FINISHED,          /* with the reference's digest */
    RP_SIM_STOPPED_RESUMABLE, /* and resuming gave the reference's digest */
    RP_SIM_HUNG,              /* virtual or real time was up */
    RP_SIM_WRONG              /* another digest, a crash, or not resumable */
} rp_sim_outcome;

typedef struct {
    rp_sim_outcome outcome;
    uint32_t faults;     /* that took effect */
    uint64_t events;     /* lines of the event log */
    uint64_t event_hash; /* of all lines */
    double virtual_s;
    rp_err stop;      /* STOPPED: what a controller that is not resumed ended with */
    int output_error; /* errno for which its standard output could not be written, or 0 */
    rp_sim_marks marks;
} rp_sim_result;

typedef struct {
    uint64_t runs, finished, stopped_resumable, hung, wrong;
    bool any_bad;
    uint64_t first_bad_seed; /* the smallest one */
    uint64_t faults;
    uint32_t faults_min; /* of any run */
    double seconds;      /* real */
    double virtual_s;
    rp_sim_marks marks;
} rp_sim_tally;

typedef struct {
    uint64_t first, last; /* seeds, inclusive */
    uint32_t jobs;        /* processes; 0: one a core */
    double busy_limit_s;  /* of its own processor time for one seed, then it is hung; 0: none */
    double limit_s;       /* real seconds, for a seed that waits: other work may take the cores */
    /* Runs one seed in a child process. An error that is returned counts as WRONG. */
    rp_err (*run)(void *context, uint64_t seed, rp_sim_result *out);
    void *context;
    /* May be NULL; called in this process, in the order in which seeds end. */
    void (*on_result)(void *context, uint64_t seed, const rp_sim_result *result);
} rp_seeds_options;

/* errors  IO: no process, no pipe; INTERRUPTED: by SIGINT or SIGTERM (tally then has what ended) */
rp_err rp_seeds_run(const rp_seeds_options *options, rp_sim_tally *tally) RP_MUST_CHECK;

#endif
