/* How far a run is, from its folder. */
#ifndef RP_RUNS_STATE_H
#define RP_RUNS_STATE_H

#include "base/arena.h"
#include "runs/owner.h"

enum { RP_RUN_NAME_BYTES = 128 };

typedef enum {
    RP_RUN_STARTING,    /* boards start, kernels are built: no step since the start */
    RP_RUN_TRAINING,    /* at work, evaluations and checkpoints included */
    RP_RUN_RECOVERING,  /* after a fault, on its way back to a checkpoint */
    RP_RUN_FINISHED,    /* as summary.json says, and so on */
    RP_RUN_INTERRUPTED, /* resumable */
    RP_RUN_FAILED,      /* resumable */
    RP_RUN_KILLED,      /* ended without a word: resumable */
    RP_RUN_ELSEWHERE,   /* its controller is of another machine */
    RP_RUN_NOT_BEGUN,   /* ended before it began: the command that made the folder begins it */
    RP_RUN_STATES
} rp_run_condition;

typedef struct {
    rp_run_condition condition;
    rp_owner owner;
    char model[RP_RUN_NAME_BYTES], schedule[RP_RUN_NAME_BYTES]; /* "": not known yet */
    uint64_t step, steps;                                       /* done; of the run, 0: not known */
    double loss, samples_per_s, left_s; /* NAN: not known, or the run is not at work */
    uint32_t boards;                    /* 0: not known */
} rp_run_state;

/* "training" ... */
const char *rp_run_condition_name(rp_run_condition condition);

/* A folder in which a run is, was, or begins. */
bool rp_run_is_folder(const char *folder);

/* errors  USAGE: no folder of a run; MEMORY */
rp_err rp_run_state_read(rp_arena *arena, const char *folder, rp_run_state *out) RP_MUST_CHECK;

/* "training: step 120 of 400, 4901 samples/s, 0:31 left", with what goes on with it where it has
 * ended before its time. errors  MEMORY */
rp_err rp_run_state_tell(rp_arena *arena, const char *folder, const rp_run_state *state,
                         char **out) RP_MUST_CHECK;

#endif
