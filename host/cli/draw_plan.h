/* `ringpipe draw PLAN.json`: one step of a plan as text, with a lane for each node. */
#ifndef RP_CLI_DRAW_PLAN_H
#define RP_CLI_DRAW_PLAN_H

#include <stdio.h>

#include "plan/plan.h"

/* Draws the first step of a checked plan, or without a flush the first 2 * stages steps. Every op
 * takes one column if all microbatches have equal sizes. errors  IO when `out` cannot be written;
 * FAULT, MEMORY */
rp_err rp_draw_plan(FILE *out, const rp_plan *plan) RP_MUST_CHECK;

#endif
