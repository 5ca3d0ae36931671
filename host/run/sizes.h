/* `schedule.forward`, `schedule.backward` and `schedule.planner`: microbatches of a size by stage
 * and direction, for a schedule that has them. */
#ifndef RP_RUN_SIZES_H
#define RP_RUN_SIZES_H

#include "nn/cut.h"
#include "planners/planner.h"
#include "sched/method.h"

typedef struct {
    bool in_use;             /* the schedule has such sizes: those `at`, or one that is chosen */
    const uint32_t (*at)[2]; /* by stage: forward, backward; NULL: nothing is said */
    bool by_stage;           /* of places in the ring: a smaller one has no meaning for them */
    const rp_planner_kind *planner; /* chooses `at` by what was measured; NULL: nobody does */
} rp_sizes;

/* What one of both keys leaves out is `micro`. `schedule.planner` names who chooses instead; "auto"
 * is tidgap.
 * errors  USAGE: no number, more than a step of `batch` samples, no planner; MEMORY */
rp_err rp_sizes_read(rp_arena *arena, rp_node *root, const rp_method *method, uint32_t stages,
                     uint32_t batch, uint32_t micro, rp_sizes *out) RP_MUST_CHECK;

/* A stage with batch statistics has `micro` in both directions. errors USAGE naming the layer */
rp_err rp_sizes_fit_cut(const rp_sizes *sizes, rp_node *root, const rp_model *model,
                        const rp_cut *cut, uint32_t micro) RP_MUST_CHECK;

#endif
