/* `ringpipe draw PLAN.json`: one step of a plan as text, a lane a node. */
#ifndef RP_CLI_DRAW_PLAN_H
#define RP_CLI_DRAW_PLAN_H

#include <stdio.h>

#include "plan/plan.h"

/* The plan's first step (without a flush: as many as it has stages, twice), every op one column
 * where microbatches are alike. The plan has been checked.
 * errors  IO when `out` cannot be written; FAULT, MEMORY */
rp_err rp_draw_plan(FILE *out, const rp_plan *plan) RP_MUST_CHECK;

#endif
