/* The texts of an assignment as they are read: the job, the model, the plan. Boards of one process
 * may have a library in common, where all but a board's own lines are read once: a simulated ring
 * of a thousand boards reads its plan and its model once, not a thousand times. */
#ifndef RP_AGENT_READING_H
#define RP_AGENT_READING_H

#include "plan/plan.h"
#include "stage/job.h"
#include "wire/frame.h"

typedef struct rp_agent_library rp_agent_library;

typedef struct {
    rp_node *root;       /* of the job's text; from a library: without this board's own lines */
    rp_node *own;        /* where this board's own lines stand: `stage`, `peers`, `throttle` */
    rp_job job;          /* from a library: of stage 0 */
    const rp_plan *plan; /* NULL: of a profile */
    rp_agent_library *library; /* that lends root, job and plan; NULL: all lies in the arena */
    const void *loan;
} rp_agent_reading;

/* `parts`: job, model and, in an assignment, plan. `library` may be NULL.
 * errors  those of rp_config_read_text(), rp_job_parse(), rp_plan_parse(), rp_plan_check() and
 *         rp_plan_check_training() */
rp_err rp_agent_read(rp_arena *arena, rp_agent_library *library, const rp_part *parts,
                     uint32_t count, rp_agent_reading *out) RP_MUST_CHECK;
/* What was borrowed goes back; a zeroed reading is accepted. */
void rp_agent_end_reading(rp_agent_reading *reading);

/* Lies in `arena`. It keeps what is lent, and what was read last. errors MEMORY */
rp_err rp_agent_library_open(rp_arena *arena, rp_agent_library **out) RP_MUST_CHECK;
/* Every reading has ended. NULL is accepted. */
void rp_agent_library_close(rp_agent_library **library);

#endif
