/* The parsed texts of an assignment: the job, the model, the plan. Boards of one process may share
 * a library, which parses everything except a board's own lines only once: a simulated ring of a
 * thousand boards parses its plan and its model once, not a thousand times. */
#ifndef RP_AGENT_ASSIGNMENT_H
#define RP_AGENT_ASSIGNMENT_H

#include "plan/plan.h"
#include "stage/job.h"
#include "wire/frame.h"

typedef struct rp_agent_library rp_agent_library;

typedef struct {
    rp_node *root;       /* of the job's text; from a library: without this board's own lines */
    rp_node *own;        /* node with this board's own lines: `stage`, `peers`, `throttle` */
    rp_job job;          /* from a library: of stage 0 */
    const rp_plan *plan; /* NULL: a profile */
    rp_agent_library *library; /* lender of root, job and plan; NULL: all are in the arena */
    const void *loan;
} rp_agent_reading;

/* `parts`: job, model and, in an assignment, plan. `library` may be NULL.
 * errors  those of rp_config_read_text(), rp_job_parse(), rp_plan_parse(), rp_plan_check() and
 *         rp_plan_check_training() */
rp_err rp_agent_read(rp_arena *arena, rp_agent_library *library, const rp_part *parts,
                     uint32_t count, rp_agent_reading *out) RP_MUST_CHECK;
/* Returns what was borrowed; accepts a zeroed reading. */
void rp_agent_end_reading(rp_agent_reading *reading);

/* Allocates in `arena`. Keeps what is lent, and what was read last. errors MEMORY */
rp_err rp_agent_library_open(rp_arena *arena, rp_agent_library **out) RP_MUST_CHECK;
/* Every reading must have ended. NULL is accepted. */
void rp_agent_library_close(rp_agent_library **library);

#endif
