/* plan.json: makes the plan that a run chose, and reads one that the user gave. */
#ifndef RP_PLANNING_PLANFILE_H
#define RP_PLANNING_PLANFILE_H

#include <stdio.h>

#include "plan/plan.h"
#include "planning/advance.h"
#include "planning/profile.h"
#include "run/runfile.h"

/* The choices of a run. Borrowed until rp_planfile_make() returns. */
typedef struct {
    const rp_runfile *run;
    const rp_cut *cut;
    const char *const *board;         /* names of the ring's boards in order */
    const rp_advance_choice *advance; /* NULL: not chosen */
    const uint32_t
        *group; /* boards that share stages, as rp_plan_options; NULL: no stage is shared */
    const double *share;
    const rp_profile *profile; /* with the boards in the ring's order; NULL: nothing is known */
} rp_planfile;

/* Whether layers that this cut separates may share tensors. errors USAGE */
rp_err rp_planfile_check_ties(const rp_runfile *run, const rp_method *method,
                              const rp_cut *cut) RP_MUST_CHECK;

/* errors USAGE, MEMORY */
rp_err rp_planfile_make(rp_arena *arena, const rp_planfile *chosen, rp_plan **out) RP_MUST_CHECK;

/* Reads the plan of `--plan`. It must have the run's model, batch, microbatch, schedule, data and
 * boards. Its cut, windows and the stages of each node are its own; the number of steps is the
 * run's. With `advance: auto` it has the advance, and with plan.schedules it names one of them.
 * `executor`: the boards'; a node may name that, or opencl, which then means it.
 * errors  USAGE, FORMAT, IO naming the file and the key; MEMORY */
rp_err rp_planfile_read(rp_arena *arena, const char *path, const rp_runfile *run,
                        const char *executor, rp_plan **out) RP_MUST_CHECK;

/* The needs of a board, as it reports them. */
typedef struct {
    const char *name;
    uint64_t slots, weight_copies, device_bytes, weight_bytes, resident_bytes;
} rp_planfile_board;
/* Stores the needs of a node's board in its stages; call it in the order of the nodes. A stage of
 * several nodes gets the largest numbers, and the name of the board that needs the most memory.
 * `board` is borrowed as long as the plan. */
void rp_planfile_note_board(rp_plan *plan, uint32_t node, const rp_planfile_board *board);

/* Stores each stage's time of a microbatch. `layer_seconds`: [2 * layer_count], forward and
 * backward of each layer. */
void rp_planfile_note_seconds(rp_plan *plan, const double *layer_seconds);

#endif
