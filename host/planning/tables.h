/* What was chosen and what was measured, as tables for people. */
#ifndef RP_PLANNING_TABLES_H
#define RP_PLANNING_TABLES_H

#include <stdio.h>

#include "plan/plan.h"
#include "planning/profile.h"

/* Prints one line for each stage: its boards, layers and what was measured there, and times where
 * they are known. Its share is its time divided by that of the slowest stage. */
void rp_plan_table(FILE *file, const rp_plan *plan);

/* Prints for each measured board one line a layer, the sums and the total by sizes; then the wires.
 */
void rp_profile_show(FILE *file, const rp_runfile *run, const rp_profile *profile);

#endif
