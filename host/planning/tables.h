/* What was chosen and what was measured, as tables for people. */
#ifndef RP_PLANNING_TABLES_H
#define RP_PLANNING_TABLES_H

#include <stdio.h>

#include "plan/plan.h"
#include "run/runfile.h"

/* A line a stage: boards, layers, and what was measured there; times where they are known. The
 * share is the stage's time by that of the slowest one, which the others wait for. errors IO */
rp_err rp_plan_table(FILE *file, const rp_plan *plan) RP_MUST_CHECK;

/* A line a layer, then the sums. `device` may be NULL; `layer_seconds` as in
 * rp_planfile_note_seconds(). errors IO */
rp_err rp_profile_table(FILE *file, const rp_runfile *run, const char *device,
                        const double *layer_seconds) RP_MUST_CHECK;

#endif
