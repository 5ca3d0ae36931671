/* `plan.schedules`: schedules that the planner may take in place of the run's own. */
#ifndef RP_RUN_SCHEDULES_H
#define RP_RUN_SCHEDULES_H

#include "optim/optim.h"
#include "sched/method.h"

enum { RP_SCHEDULES_MAX = 9 }; /* with the run's own */

typedef struct {
    rp_node *root;    /* a map with `schedule` alone */
    const char *text; /* what stands there, as YAML */
    rp_method method;
    rp_optim optim; /* the run's, as the method asks for it */
} rp_schedule;

/* [0] is the run's own. `count` 0: there are no others. */
typedef struct {
    rp_schedule *at;
    uint32_t count;
} rp_schedules;

/* What `plan` says, the run file's map or NULL, behind the run's own schedule in `root`. Those that
 * come twice are there once. Each has a stage a board and one size for all microbatches, and fits
 * the optimiser. Others that may not be with the run: the caller's to say. `node` of each: for
 * messages, [RP_SCHEDULES_MAX]. errors  USAGE naming file, line and key; MEMORY */
rp_err rp_schedules_read(rp_arena *arena, rp_node *root, rp_node *plan, uint32_t boards,
                         const rp_optim *optim, rp_schedules *out,
                         const rp_node **node) RP_MUST_CHECK;

/* The one that this method is, on so many stages: where the run file leaves `advance` open, with
 * any. `count`: none. */
uint32_t rp_schedules_find(const rp_schedules *schedules, const rp_method *method, uint32_t stages);

#endif
