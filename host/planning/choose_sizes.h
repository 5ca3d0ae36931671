/* Microbatch sizes by stage and direction, for a schedule that has them (umpipe). */
#ifndef RP_PLANNING_CHOOSE_SIZES_H
#define RP_PLANNING_CHOOSE_SIZES_H

#include "planning/profile.h"
#include "run/runfile.h"

/* Most parcels that an op waits for or sends; firmware/plan refuses more. */
enum { RP_PARCELS_MAX = 64 };

typedef struct {
    double step_s;      /* the planner's time of a step with the chosen sizes */
    double even_step_s; /* its time of a step with the best size for all stages */
    uint32_t even;      /* that size */
} rp_size_choice;

/* Asks run->sizes.planner, with the times of every board and wire by samples. `size`: [stages],
 * samples of a forward and of a backward. Stages with batch statistics get train.microbatch. The
 * seed is the run's and no clock is read, so the same profile gives the same sizes. Sizes that
 * certainly exceed a board's memory or ring.memory_mb are not chosen; the boards also refuse what
 * does not fit.
 * errors  USAGE: more than 4096 samples a step, or a stage has batch statistics and
 *         train.microbatch does not divide the step; LIMIT: a stage does not fit with the smallest
 *         sizes; MEMORY */
rp_err rp_choose_sizes(const rp_runfile *run, const rp_profile *profile, const rp_cut *cut,
                       uint32_t (*size)[2], rp_size_choice *out) RP_MUST_CHECK;

#endif
