/* What a planner of microbatch sizes is asked: what each stage and each wire takes for so many
 * samples, which sizes are allowed, and how much memory there is.
 *
 * A step has `samples`. Stage 0 has the inputs, the last one the loss; both ways a stage cuts the
 * step into microbatches of a size of its own, the last of which is the rest. The forward takes the
 * samples from the first to the last, the backward from the last to the first.
 *
 * source  METHODS 10.1 and 10.4; "unequal data partition" of UMPIPE, Zhou, Tian, Buyya, Wu, IEEE
 *         TPDS 36(2), 2025 */
#ifndef RP_PLANNERS_PROBLEM_H
#define RP_PLANNERS_PROBLEM_H

#include "base/arena.h"
#include "base/err.h"

enum {
    RP_PLANNERS_STAGES_MAX = 64,
    RP_PLANNERS_SAMPLES_MAX = 4096,
    RP_PLANNERS_SIZES_MAX = 32,
    RP_PLANNERS_FREE = 255 /* a stage whose sizes are the planner's choice */
};

typedef enum { RP_WAY_FORWARD, RP_WAY_BACKWARD, RP_WAYS } rp_way;

/* Of one stage. It holds what every sample of a step has saved, works on one microbatch at a time,
 * and has room for one microbatch of a neighbour beyond what it works on. */
typedef struct {
    uint64_t limit_bytes;           /* 0: any number */
    uint64_t fixed_bytes;           /* weights, gradients, the optimiser's state */
    uint64_t stash_bytes;           /* a sample */
    uint64_t work_bytes;            /* a sample of the larger of its two sizes */
    uint64_t arrive_bytes[RP_WAYS]; /* a sample: an activation from below, a gradient from above */
} rp_problem_memory;

/* Tables are [stages][samples + 1] by rp_way: seconds by the samples of an op. */
typedef struct {
    uint32_t stages, samples;
    double *pass[RP_WAYS]; /* compute */
    /* For how long a microbatch that the stage sends keeps its wire: to the next stage forward, to
     * the one before backward. A wire carries one at a time each way. */
    double *send[RP_WAYS];
    double *latency[RP_WAYS];  /* [stages]: how long it is on its way besides; the wire is free */
    double *update;            /* [stages] */
    uint8_t *held;             /* [stages]: index of the one size of a stage, both ways (batchnorm:
                                  another size is another model); or RP_PLANNERS_FREE */
    rp_problem_memory *memory; /* [stages] */
    uint32_t size_count;       /* rising; the last one is `samples` */
    uint32_t size[RP_PLANNERS_SIZES_MAX];
} rp_problem;

/* Which size each stage takes each way: an index of rp_problem.size. */
typedef struct {
    uint8_t gene[RP_WAYS][RP_PLANNERS_STAGES_MAX];
} rp_genome;

/* All costs 0, all stages free, memory without limits; the sizes are the powers of two and the
 * divisors of `samples`, the smallest first. Of more than RP_PLANNERS_SIZES_MAX the smallest ones
 * are left out.
 * errors  USAGE: a count is 0 or too large; MEMORY */
rp_err rp_problem_open(rp_arena *arena, uint32_t stages, uint32_t samples,
                       rp_problem *out) RP_MUST_CHECK;

/* errors  USAGE: a cost is negative or not finite, sizes do not rise or do not end with all
 * samples, a held size does not divide the step; LIMIT: a stage has too little memory for the
 *         smallest sizes. The message names the stage. */
rp_err rp_problem_check(const rp_problem *problem) RP_MUST_CHECK;

/* The genome with held stages as they must be. */
void rp_problem_hold(const rp_problem *problem, rp_genome *genome);
/* Every stage has this size, but for those that are held. */
rp_genome rp_problem_even(const rp_problem *problem, uint8_t size);

/* Bytes that a stage needs with a genome, and whether all stages have them. */
uint64_t rp_problem_bytes(const rp_problem *problem, const rp_genome *genome, uint32_t stage);
bool rp_problem_fits_at(const rp_problem *problem, const rp_genome *genome, uint32_t stage);
bool rp_problem_fits(const rp_problem *problem, const rp_genome *genome);

#endif
