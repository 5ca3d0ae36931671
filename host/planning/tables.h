/* The chosen plan and the measured profile, as tables for people. */
#ifndef RP_PLANNING_TABLES_H
#define RP_PLANNING_TABLES_H

#include <stdio.h>

#include "plan/plan.h"
#include "planning/profile.h"

/* Prints one line for each stage, with its boards, layers, needs and, if known, times. The share is
 * the stage's time divided by that of the slowest stage. */
void rp_plan_table(FILE *file, const rp_plan *plan);

/* Prints a line for each layer of each measured board, the sums and the totals by size; then the
 * wires. */
void rp_profile_show(FILE *file, const rp_runfile *run, const rp_profile *profile);

#endif
