/* The question for a planner of microbatch sizes: times of each stage and wire by samples, the
 * allowed sizes, and the memory.
 *
 * A step has `samples`. Stage 0 has the inputs, and the last stage has the loss. In both directions
 * a stage divides the step into microbatches of its own size; the last microbatch has the remaining
 * samples. Forwards take the samples from first to last, backwards from last to first.
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

/* Memory of one stage. It holds the stashes of all samples of a step, works on one microbatch at a
 * time, and has room for one arriving microbatch of each neighbour. */
typedef struct {
    uint64_t limit_bytes;           /* 0: no limit */
    uint64_t fixed_bytes;           /* weights, gradients, optimiser state */
    uint64_t stash_bytes;           /* for each sample */
    uint64_t work_bytes;            /* for each sample of the larger of its two sizes */
    uint64_t arrive_bytes[RP_WAYS]; /* for each sample: an activation from the stage before, a
                                       gradient from the stage after */
} rp_problem_memory;

/* Tables are [stages][samples + 1] by rp_way: seconds of an op by its samples. */
typedef struct {
    uint32_t stages, samples;
    double *pass[RP_WAYS]; /* of the stage */
    /* Seconds that a microbatch of the stage occupies its wire: to the next stage forward, to the
     * one before backward. A wire carries one microbatch at a time in each direction. */
    double *send[RP_WAYS];
    double *latency[RP_WAYS]; /* [stages]: additional delay of a microbatch; it does not occupy the
                                 wire */
    double *update;           /* [stages] */
    uint8_t *held; /* [stages]: index of the only size of a stage, in both directions, because batch
                      statistics make another size another model; or RP_PLANNERS_FREE */
    rp_problem_memory *memory; /* [stages] */
    uint32_t size_count;       /* rising; the last one is `samples` */
    uint32_t size[RP_PLANNERS_SIZES_MAX];
} rp_problem;

/* A set of sizes: for each way and stage an index of rp_problem.size. */
typedef struct {
    uint8_t gene[RP_WAYS][RP_PLANNERS_STAGES_MAX];
} rp_genome;

/* Costs 0, all stages free, no memory limits. The sizes are the powers of two and the divisors of
 * `samples`, rising; the largest RP_PLANNERS_SIZES_MAX of them.
 * errors  USAGE: a count is 0 or too large; MEMORY */
rp_err rp_problem_open(rp_arena *arena, uint32_t stages, uint32_t samples,
                       rp_problem *out) RP_MUST_CHECK;

/* errors  USAGE: a cost is negative or not finite, sizes do not rise or do not end with all
 * samples, a held size does not divide the step; LIMIT: a stage has too little memory for the
 * smallest sizes. The message names the stage. */
rp_err rp_problem_check(const rp_problem *problem) RP_MUST_CHECK;

/* Sets the sizes of held stages. */
void rp_problem_hold(const rp_problem *problem, rp_genome *genome);
/* The genome with this size on every stage that is not held. */
rp_genome rp_problem_even(const rp_problem *problem, uint8_t size);

/* Bytes that a stage needs with a genome; whether the stage, and all stages, have them. */
uint64_t rp_problem_bytes(const rp_problem *problem, const rp_genome *genome, uint32_t stage);
bool rp_problem_fits_at(const rp_problem *problem, const rp_genome *genome, uint32_t stage);
bool rp_problem_fits(const rp_problem *problem, const rp_genome *genome);

#endif
