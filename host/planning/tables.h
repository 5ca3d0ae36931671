/* What was chosen and what was measured, as tables for people. */
#ifndef RP_PLANNING_TABLES_H
#define RP_PLANNING_TABLES_H

#include <stdio.h>

#include "plan/plan.h"
#include "planning/profile.h"

/* A line a stage: boards, layers, and what was measured there; times where they are known. The
 * share is the stage's time by that of the slowest one, which the others wait for. */
void rp_plan_table(FILE *file, const rp_plan *plan);

/* Of each board that was measured a line a layer, the sums, and the whole by sizes; the wires. */
void rp_profile_show(FILE *file, const rp_runfile *run, const rp_profile *profile);

#endif
