/* `plan.schedules`: schedules that the planner may take instead of the run's own. */
#ifndef RP_RUN_SCHEDULES_H
#define RP_RUN_SCHEDULES_H

#include "optim/optim.h"
#include "sched/method.h"

enum { RP_SCHEDULES_MAX = 9 }; /* with the run's own */

typedef struct {
    rp_node *root;    /* a map whose only key is `schedule` */
    const char *text; /* its value as YAML */
    rp_method method;
    rp_optim optim; /* the run's, adapted to the method */
} rp_schedule;

/* at[0] is the run's own. `count` 0: `plan.schedules` is not set. */
typedef struct {
    rp_schedule *at;
    uint32_t count;
} rp_schedules;

/* Reads the run's own schedule from `root`, and `schedules` of the map `plan`, which may be NULL.
 * Repeated ones are dropped. Each must have one stage on each board, one size for all microbatches,
 * and fit the optimiser; the caller checks the rest of the run file against each. `node`
 * [RP_SCHEDULES_MAX]: the node of each, for messages. errors  USAGE naming file, line and key;
 * MEMORY */
rp_err rp_schedules_read(rp_arena *arena, rp_node *root, rp_node *plan, uint32_t boards,
                         const rp_optim *optim, rp_schedules *out,
                         const rp_node **node) RP_MUST_CHECK;

/* Index of the schedule that equals `method` on `stages` stages; `advance: auto` of the run file
 * matches any advance. `count` if no schedule does. */
uint32_t rp_schedules_find(const rp_schedules *schedules, const rp_method *method, uint32_t stages);

#endif
