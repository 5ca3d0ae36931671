/* `schedule.forward`, `schedule.backward` and `schedule.planner`: sizes of microbatches by stage
 * and direction, for schedules that support them. */
#ifndef RP_RUN_SIZES_H
#define RP_RUN_SIZES_H

#include "nn/cut.h"
#include "planners/planner.h"
#include "sched/method.h"

typedef struct {
    bool in_use;             /* the schedule supports such sizes, given in `at` or chosen later */
    const uint32_t (*at)[2]; /* [stages]: forward, backward; NULL: not set */
    bool by_stage;           /* `at` comes from lists, which fit only this number of stages */
    const rp_planner_kind *planner; /* chooses `at` from a profile; NULL: no planner */
} rp_sizes;

/* Reads the three keys. A missing forward or backward is `micro`. Planner
 * "auto" is tidgap. errors  USAGE: invalid number, size above `batch`, unknown planner; MEMORY */
rp_err rp_sizes_read(rp_arena *arena, rp_node *root, const rp_method *method, uint32_t stages,
                     uint32_t batch, uint32_t micro, rp_sizes *out) RP_MUST_CHECK;

/* Checks that a stage with batch statistics has size `micro` in both directions. errors USAGE
 * naming the layer */
rp_err rp_sizes_fit_cut(const rp_sizes *sizes, rp_node *root, const rp_model *model,
                        const rp_cut *cut, uint32_t micro) RP_MUST_CHECK;

#endif
