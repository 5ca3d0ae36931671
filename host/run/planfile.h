/* plan.json and profile.json: what was measured and what was chosen. */
#ifndef RP_RUN_PLANFILE_H
#define RP_RUN_PLANFILE_H

#include <stdio.h>

#include "run/advance.h"
#include "run/ring.h"

/* {"version", "model", "schedule", "microbatch", "agent_program_bytes", "cut": [...], "stages":
 * [{board, layers, slots, device_bytes, weight_bytes, resident_bytes, forward_s, backward_s}]}; the
 * times when `layer_seconds` is there, and with `advance: auto` "advance": {"chosen", "busy": by
 * advance}. */
rp_err rp_plan_write(FILE *file, const rp_ring *ring, const rp_cut *cut,
                     const double *layer_seconds, const rp_advance_choice *advance) RP_MUST_CHECK;
/* {"version", "model", "microbatch", "board", "layers": [{name, kind, forward_s, backward_s}]} */
rp_err rp_profile_write(FILE *file, const rp_ring *ring, const double *layer_seconds) RP_MUST_CHECK;

#endif
