/* Microbatch sizes by stage and direction, for a schedule that has them (umpipe). */
#ifndef RP_PLANNING_CHOOSE_SIZES_H
#define RP_PLANNING_CHOOSE_SIZES_H

#include "planning/profile.h"
#include "run/runfile.h"

/* Parcels that an op may wait for, or send, at most: firmware/plan refuses more. */
enum { RP_PARCELS_MAX = 64 };

typedef struct {
    double step_s;      /* as the planner has it, with the sizes that it chose */
    double even_step_s; /* with the best size that all stages share, */
    uint32_t even;      /* .. which is this one */
} rp_size_choice;

/* Asks run->sizes.planner, by what every board takes for an op and every wire for a parcel of so
 * many samples; `size` [stages] gets samples forward and backward. Stages with batch statistics
 * have train.microbatch. The seed is the run's and no clock is read: the same profile gives the
 * same sizes. What surely needs more memory than a board has, or ring.memory_mb allows, is not
 * chosen; the boards refuse what does not fit besides.
 * errors  USAGE: more than 4096 samples a step; train.microbatch does not divide them and a stage
 *         has batch statistics; LIMIT: a stage does not fit with the smallest sizes; MEMORY */
rp_err rp_choose_sizes(const rp_runfile *run, const rp_profile *profile, const rp_cut *cut,
                       uint32_t (*size)[2], rp_size_choice *out) RP_MUST_CHECK;

#endif
