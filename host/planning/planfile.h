/* plan.json: what was chosen, what somebody wrote by hand. */
#ifndef RP_PLANNING_PLANFILE_H
#define RP_PLANNING_PLANFILE_H

#include <stdio.h>

#include "plan/plan.h"
#include "planning/advance.h"
#include "planning/profile.h"
#include "run/runfile.h"

/* What a run chooses. Borrowed until rp_planfile_make() returns. */
typedef struct {
    const rp_runfile *run;
    const rp_cut *cut;
    const char *const *board;         /* names, of the ring in its order */
    const rp_advance_choice *advance; /* NULL: not chosen */
    const uint32_t *group;            /* boards that share stages, as rp_plan_options; NULL: none */
    const double *share;
    const rp_profile *profile; /* of the boards in the ring's order, as far as they are
                                  known; NULL: nothing is */
} rp_planfile;

/* The plan that the run file and the cut ask for. errors USAGE, MEMORY */
rp_err rp_planfile_make(rp_arena *arena, const rp_planfile *chosen, rp_plan **out) RP_MUST_CHECK;

/* A plan that somebody gives for this run (`--plan`). It must be of the same model, batch,
 * microbatch, schedule, data and boards; cut, stages of a node and windows are the plan's own. How
 * many steps there are is the run's. With `advance: auto` the plan has chosen, and with
 * plan.schedules it says which of them it is. `executor`: what the boards have; nodes may ask for
 * that, or for opencl, which it then stands for. errors  USAGE, FORMAT, IO naming the file and the
 * key; MEMORY */
rp_err rp_planfile_read(rp_arena *arena, const char *path, const rp_runfile *run,
                        const char *executor, rp_plan **out) RP_MUST_CHECK;

/* What a board says of the stages that it holds. */
typedef struct {
    const char *name;
    uint64_t slots, weight_copies, device_bytes, weight_bytes, resident_bytes;
} rp_planfile_board;
/* Goes into every stage of the node; call it in the order of the nodes. Of a stage that several
 * nodes hold stay the largest numbers, and the name of the board that needs the most memory.
 * `board` is borrowed as long as the plan lives. */
void rp_planfile_note_board(rp_plan *plan, uint32_t node, const rp_planfile_board *board);

/* `layer_seconds`: [2 * layer_count], forward and backward of each layer for one microbatch. */
void rp_planfile_note_seconds(rp_plan *plan, const double *layer_seconds);

#endif
