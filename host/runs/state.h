/* State and progress of a run, from its folder. */
#ifndef RP_RUNS_STATE_H
#define RP_RUNS_STATE_H

#include "base/arena.h"
#include "runs/owner.h"

enum { RP_RUN_NAME_BYTES = 128 };

typedef enum {
    RP_RUN_STARTING,    /* boards start, kernels are built; no step since the start */
    RP_RUN_TRAINING,    /* active, including evaluations and checkpoints */
    RP_RUN_RECOVERING,  /* after a fault, returning to a checkpoint */
    RP_RUN_FINISHED,    /* by summary.json, as the two below */
    RP_RUN_INTERRUPTED, /* resumable */
    RP_RUN_FAILED,      /* resumable */
    RP_RUN_KILLED,      /* ended without a summary; resumable */
    RP_RUN_ELSEWHERE,   /* its controller runs on a different machine */
    RP_RUN_NOT_BEGUN, /* ended before its first step; the command that made the folder starts it */
    RP_RUN_STATES
} rp_run_condition;

typedef struct {
    rp_run_condition condition;
    rp_owner owner;
    char model[RP_RUN_NAME_BYTES], schedule[RP_RUN_NAME_BYTES]; /* "": unknown yet */
    uint64_t step, steps;               /* steps done; steps of the run, 0: unknown */
    bool rounds;                        /* the steps are rounds of a federated run */
    double loss, samples_per_s, left_s; /* NAN: unknown, or the run is not active */
    uint32_t boards;                    /* 0: unknown */
} rp_run_state;

/* "training" ... */
const char *rp_run_condition_name(rp_run_condition condition);

/* Is it a run folder? */
bool rp_run_is_folder(const char *folder);

/* errors  USAGE: not a run folder; MEMORY */
rp_err rp_run_state_read(rp_arena *arena, const char *folder, rp_run_state *out) RP_MUST_CHECK;

/* Describes the state: "training: step 120 of 400, 4901 samples/s, 0:31 left". For a run that ended
 * early the text contains the command that continues it. errors  MEMORY */
rp_err rp_run_state_tell(rp_arena *arena, const char *folder, const rp_run_state *state,
                         char **out) RP_MUST_CHECK;

#endif
