/* The executor port: what a stage computes with. The stage does the bookkeeping (which version of
 * the weights an op sees, which slot holds a microbatch) and issues commands; an executor carries
 * them out in the order in which they came. One table of functions, one word in
 * firmware/stage/CMakeLists.txt:
 *
 *   opencl   layers, optimisers and averages on the device's one queue
 *   digest   a tensor is a 128-bit digest of everything that went into it
 *   timed    nothing is computed; a command takes as long as a profile says
 */
#ifndef RP_STAGE_EXECUTOR_H
#define RP_STAGE_EXECUTOR_H

#include "base/clock.h"
#include "stage/layout.h"
#include "stage/slots.h"

typedef struct rp_executor_kind rp_executor_kind;

/* What every executor begins with; prepare fills it. */
typedef struct {
    const rp_executor_kind *kind;
    const rp_job *job;
    const rp_layout *layout;
    const uint32_t *wrong_every; /* as the site */
    uint32_t forwards;           /* rp_executor_is_wrong() */
} rp_executor;

/* What ops would have cost, and whose times they are. */
typedef struct {
    const void *self;
    /* Seconds of an op on layers [first, end) of the model. Pure. */
    double (*op_s)(const void *self, uint32_t first, uint32_t end, rp_op_kind kind,
                   uint32_t samples);
    const char *kind; /* of board: those alike have equal ones */
} rp_site_costs;

/* What an executor runs on. Everything is borrowed and outlives it; an executor ignores what it
 * does not need. */
typedef struct {
    rp_device *device;        /* opencl */
    const rp_clock *clock;    /* timed, digest: of marks; NULL = the real clock */
    const double *seconds;    /* timed, digest: of each layer of the model, forward and backward in
                                 turn, as a profile has them; NULL = a pass takes no time */
    uint32_t seconds_samples; /* the microbatch of that profile; 0 = the job's */
    double update_s;          /* timed, digest: of an UPDATE */
    const rp_site_costs *costs;  /* timed, digest: in place of the times above; NULL = none */
    bool strict;                 /* digest: gradients depend on the order of the microbatches */
    bool *fails;                 /* digest: an op that is issued when it is set fails, which sets it
                                    back; NULL = none does */
    const bool *hangs;           /* timed, digest: no op ends while it is set; NULL = they do */
    const uint32_t *wrong_every; /* a board that computes wrong, for tests: of every so many-th
                                    forward of a training step one number is another one; NULL or 0:
                                    of none */
} rp_site;
/* Asked once a training forward. */
static inline bool rp_executor_is_wrong(rp_executor *executor) {
    const uint32_t every = executor->wrong_every ? *executor->wrong_every : 0;
    return every > 0 && ++executor->forwards % every == 0;
}

/* ---- what an executor holds ------------------------------------------------------------------ */

/* A block has one value for each trained parameter of the stage. */
typedef enum {
    RP_BLOCK_WEIGHTS,   /* layout->copies.versions of them */
    RP_BLOCK_PREDICTED, /* by direction for xpipe, otherwise 0 serves both */
    RP_BLOCK_CENTRE,    /* of the replicas, or their reference */
    RP_BLOCK_SCRATCH,   /* around a local step: before it, or the elastic term; or the mean */
    RP_BLOCK_STATE,     /* replica * layout->state_count + state */
    RP_BLOCK_PROBE,     /* what was seen, what was the newest then: see probe.c */
    RP_BLOCK_PEER,      /* the gradient of another board that shares the stage */
    RP_BLOCK_GRADIENT,  /* of the step in work, where there is a backward */
    RP_BLOCK_KINDS
} rp_block_kind;

typedef struct {
    rp_block_kind kind;
    uint32_t index;
} rp_block;

uint32_t rp_block_count(const rp_layout *layout, rp_block_kind kind);
/* All blocks in a row, in the order of their kinds. */
uint32_t rp_block_total(const rp_layout *layout);
uint32_t rp_block_position(const rp_layout *layout, rp_block block);

/* Bytes that are read and written: a parameter, or all that microbatches in flight need. */
typedef enum {
    RP_REGION_BLOCK,      /* a trained parameter in `block`; another one wherever it is */
    RP_REGION_EVERYWHERE, /* a parameter in all versions and the centre; write only */
    RP_REGION_IN_FLIGHT   /* a run of facts.in_flight_bytes */
} rp_region_kind;

typedef struct {
    rp_region_kind kind;
    rp_block block;
    uint32_t param; /* of the stage */
} rp_region;

/* ---- commands -------------------------------------------------------------------------------- */

/* Samples of an op as they came: part[i] holds boundary tensor i (or the targets), sample after
 * sample. A piece may reach beyond the op's samples; what lies in both is taken. */
typedef struct {
    rp_range samples; /* of the step */
    const void *const *part;
} rp_stage_piece;

/* Does every sample of the range lie in exactly one piece? */
bool rp_pieces_cover(const rp_stage_piece *piece, uint32_t count, const rp_range *samples);
/* What a piece has of the range: its first sample within the range and within the piece. */
typedef struct {
    uint32_t at, from, count;
} rp_piece_cut;
rp_piece_cut rp_piece_of(const rp_stage_piece *piece, const rp_range *samples);

typedef enum {
    RP_COMMAND_INIT,        /* everything is zero, then the weights start from the job's seed */
    RP_COMMAND_FORWARD,     /* pass */
    RP_COMMAND_LOSS,        /* pass: of what the last forward in the slot gave, no gradient */
    RP_COMMAND_BACKWARD,    /* pass: the op's kind says which half */
    RP_COMMAND_COMMIT,      /* step: layers with something to do once a step */
    RP_COMMAND_KEEP,        /* kept: running statistics are copied there */
    RP_COMMAND_RESTORE,     /* kept: they are restored, and sums over a step's samples are zero */
    RP_COMMAND_NORMS,       /* read: sum of squares of each trained parameter's gradient */
    RP_COMMAND_RESULTS,     /* read: (loss, correct) of each of `count` samples */
    RP_COMMAND_BLOCK,       /* read: `block`, layout->gradient_bytes */
    RP_COMMAND_SUM,         /* sum: becomes the step's gradient */
    RP_COMMAND_TAKE,        /* write: becomes `block` */
    RP_COMMAND_STASH,       /* stash: what a slot holds, to the host, .. */
    RP_COMMAND_UNSTASH,     /* .. and from it: facts.stash_bytes */
    RP_COMMAND_PROBE_NORMS, /* read: those of the last PROBE */
    RP_COMMAND_COPY,        /* move: block to block */
    RP_COMMAND_PROBE,       /* move: ends a probe, `from` are the newest weights */
    RP_COMMAND_PREDICT,     /* optimise: `to` = weights moved `ahead` updates */
    RP_COMMAND_UPDATE,      /* optimise: weights and states, by the gradients */
    RP_COMMAND_AVERAGE,     /* average */
    RP_COMMAND_KINDS
} rp_command_kind;

typedef struct {
    const rp_op *op;
    rp_block weights;         /* that the layers see */
    rp_block forward_weights; /* of a backward: those that its forward saw, where the layout has
                                 groups that are computed again */
    rp_stash stash;           /* where the samples lie in the slot of their forward */
    rp_stash deferred;        /* and in that of their deferred weight gradient; RP_NO_SLOT = none */
    uint32_t soon;            /* 1 + the slot that the next backward will need; 0: nobody knows */
    bool ends;                /* the slot's last samples have their backward */
    uint32_t step_samples;    /* of the whole step: the loss is the mean over them */
    bool training;            /* layers behave as in training */
    bool accumulate;          /* gradients are added, not written */
    uint32_t renewal;         /* rp_layer_call's */
    const rp_stage_piece *in; /* none: nothing is moved in or out, for profiles */
    uint32_t in_count;
    void *const *out; /* host memory of the boundary tensors, each sample after sample */
} rp_pass;

typedef struct {
    rp_block weights, to;
    uint32_t replica;
    uint64_t applied; /* the replica's optimiser steps so far */
    float rate, grad_scale, ahead;
    const float *share; /* of the prediction that each trained parameter gets; NULL = all of it.
                           Borrowed until the mark */
} rp_optimise;

typedef enum {
    RP_TERM_ELASTIC,   /* e = alpha (x - centre); x -= e; centre += e */
    RP_TERM_PULL,      /* scratch = alpha (x - centre); centre += scratch */
    RP_TERM_PUSH,      /* x -= scratch */
    RP_TERM_REFERENCE, /* scratch is x before its step. x += alpha (reference - x), the reference
                          being the centre as it was; then it += share (x_after_step - scratch) */
    RP_TERM_TOWARDS    /* scratch += share (x - scratch) */
} rp_average_term;

typedef struct {
    rp_command_kind kind;
    union {
        rp_pass pass;
        uint64_t step;
        uint32_t kept; /* which copy, below layout->kept */
        struct {
            float *out; /* borrowed until the mark */
            uint32_t count;
            rp_block block;
        } read;
        struct {
            const void *const *gradient; /* added from first to last: the row is read by `issue`,
                                            what it points to is borrowed until the mark */
            uint32_t count;              /* >= 1 */
        } sum;
        struct {
            const void *from; /* borrowed until the mark */
            rp_block block;
        } write;
        struct {
            void *out; /* borrowed until the mark; one of the two */
            const void *from;
            uint32_t slot;
        } stash;
        struct {
            rp_block from, to;
        } move;
        rp_optimise optimise;
        struct {
            rp_average_term term;
            rp_block x;
            float alpha, share;
        } average;
    };
} rp_command;

/* ---- the table ------------------------------------------------------------------------------- */

/* A point behind all commands issued so far. */
typedef struct {
    rp_fence fence; /* opencl */
    int64_t end_ns; /* when it will have passed, where that is known ahead; 0 = it is not */
} rp_mark;

typedef struct {
    size_t used_bytes;      /* of the device */
    uint32_t weight_copies; /* of the trained weights, counted as they were taken */
    uint32_t probe_copies;  /* those that a probe takes besides */
    size_t stash_bytes;     /* of a slot, as it travels; a multiple of 4 */
    size_t in_flight_bytes; /* of RP_REGION_IN_FLIGHT, a multiple of 4 */
    uint64_t flash_bytes;   /* that stashes have written there so far */
    int handle;             /* readable when a mark has passed, -1 = none */
    bool warms_up;          /* a dry step builds what a run needs */
    void *zeros;            /* parcels may borrow this memory, large enough for each of
                               them, in place of memory of their own; NULL = may not */
} rp_executor_facts;

struct rp_executor_kind {
    const char *name;
    /* Makes the layout, takes all memory and seals it. errors LIMIT with the numbers; MEMORY;
     * DEVICE. Nothing is left behind where it fails */
    rp_err (*prepare)(rp_arena *arena, const rp_site *site, const rp_job *job, rp_executor **out);
    void (*destroy)(rp_executor **executor); /* drains first */
    /* Never waits. Host memory that a command names is borrowed until a mark behind it has passed;
     * the command itself is not. */
    rp_err (*issue)(rp_executor *executor, const rp_command *command);
    rp_err (*mark)(rp_executor *executor, rp_mark *out);
    /* *end_ns: when what is in front of the mark ended, by the executor's clock; valid when done.
     * errors DEVICE when it failed */
    rp_err (*poll)(rp_executor *executor, const rp_mark *mark, bool *done, int64_t *end_ns);
    void (*release)(rp_executor *executor, rp_mark *mark);
    /* Wait until everything issued has ended (opencl), then move bytes [first, first + count).
     * Between segments. The bytes of a parameter are written in order. */
    rp_err (*read)(rp_executor *executor, const rp_region *region, size_t first, size_t count,
                   void *out);
    rp_err (*write)(rp_executor *executor, const rp_region *region, size_t first, size_t count,
                    const void *from);
    rp_err (*drain)(rp_executor *executor);
    /* Between two calls with true and false nothing that is issued is done: what a run needs is
     * only listed (device/ready.h). NULL where facts.warms_up is false. */
    void (*rehearse)(rp_executor *executor, bool on);
    rp_executor_facts (*facts)(const rp_executor *executor);
    /* What the codecs of activations [0] and gradients [1] have lost of what left the stage in
     * training, of some samples, since the last call; zeros: nothing was encoded. Waits as read
     * does. NULL: it has no numbers to lose. */
    rp_err (*take_losses)(rp_executor *executor, rp_codec_loss out[2]);
};

extern const rp_executor_kind *const rp_executor_kinds[];   /* NULL-terminated, generated */
const rp_executor_kind *rp_executor_find(const char *name); /* NULL when unknown */

#endif
