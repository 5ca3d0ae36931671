/* Runs many seeds in a few child processes, so that a run that crashes or never ends is a result
 * like any other. */
#ifndef RP_SIM_SEEDS_H
#define RP_SIM_SEEDS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "sim/marks.h"

typedef enum {
    RP_SIM_FINISHED,          /* with the reference's digest */
    RP_SIM_STOPPED_RESUMABLE, /* and resuming gave the reference's digest */
    RP_SIM_HUNG,              /* a limit of virtual or real time was reached */
    RP_SIM_WRONG              /* another digest, a crash, or not resumable */
} rp_sim_outcome;

typedef struct {
    rp_sim_outcome outcome;
    uint32_t faults;     /* that have begun */
    uint64_t events;     /* lines of the event log */
    uint64_t event_hash; /* of all lines */
    double virtual_s;
    rp_err stop;      /* STOPPED with `once`: result of the controller */
    int output_error; /* errno of a failed write to standard output, or 0 */
    rp_sim_marks marks;
} rp_sim_result;

typedef struct {
    uint64_t runs, finished, stopped_resumable, hung, wrong;
    bool any_bad;
    uint64_t first_bad_seed; /* the smallest bad seed */
    uint64_t faults;
    uint32_t faults_min; /* smallest number in a run */
    double seconds;      /* real */
    double virtual_s;
    rp_sim_marks marks;
} rp_sim_tally;

typedef struct {
    uint64_t first, last; /* seeds, inclusive */
    uint32_t jobs;        /* processes; 0: one a core */
    double busy_limit_s;  /* processor time for one seed, after which it is hung; 0: unlimited */
    double limit_s;       /* wall time for one seed; larger, because other programs may run */
    /* Runs one seed; called in a child process. A returned error counts as WRONG. */
    rp_err (*run)(void *context, uint64_t seed, rp_sim_result *out);
    void *context;
    /* May be NULL; called in this process, in the order in which seeds end. */
    void (*on_result)(void *context, uint64_t seed, const rp_sim_result *result);
} rp_seeds_options;

/* errors  IO: fork or pipe failed; INTERRUPTED: by a signal, tally has the seeds that ended */
rp_err rp_seeds_run(const rp_seeds_options *options, rp_sim_tally *tally) RP_MUST_CHECK;

#endif
