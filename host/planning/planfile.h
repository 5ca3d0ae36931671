/* plan.json and profile.json: what was measured and what was chosen. */
#ifndef RP_PLANNING_PLANFILE_H
#define RP_PLANNING_PLANFILE_H

#include <stdio.h>

#include "plan/plan.h"
#include "planning/advance.h"
#include "run/runfile.h"

/* What a board says of the stages that it holds. */
typedef struct {
    const char *name;
    uint64_t slots, weight_copies, device_bytes, weight_bytes, resident_bytes;
} rp_planfile_board;

typedef struct {
    const rp_runfile *run;
    const rp_cut *cut;
    const rp_planfile_board *board;   /* of the ring, in its order */
    const double *layer_seconds;      /* NULL: nothing was measured */
    const rp_advance_choice *advance; /* NULL: not chosen */
    uint64_t agent_program_bytes;     /* 0: no agent was started here */
} rp_planfile;

/* The plan of the run, with what is known of it. errors USAGE, MEMORY */
rp_err rp_planfile_make(rp_arena *arena, const rp_planfile *known, rp_plan **out) RP_MUST_CHECK;

/* Its text (plan/plan.h): the cut, the stages with board, layers, slots, bytes and, where they were
 * measured, seconds; the nodes, the edges; with `advance: auto` what was chosen. errors IO, MEMORY
 */
rp_err rp_planfile_write(FILE *file, const rp_planfile *known) RP_MUST_CHECK;

/* {"version", "model", "microbatch", "board", "layers": [{name, kind, forward_s, backward_s}]};
 * `device`: that was measured, may be NULL. errors IO */
rp_err rp_planfile_write_profile(FILE *file, const rp_runfile *run, const char *device,
                                 const double *layer_seconds) RP_MUST_CHECK;

#endif
