/* The executor port: what a stage computes with. The stage does the bookkeeping (which version of
 * the weights an op sees, which slot holds a microbatch) and issues commands; an executor executes
 * them in the order of issue. Each kind is one table of functions (rp_executor_kind) and one word
 * in firmware/stage/CMakeLists.txt:
 *
 *   opencl   layers, optimisers and averages on the device's one queue
 *   digest   a tensor is a 128-bit digest of everything that was used to compute it
 *   timed    computes nothing; a command takes as long as a profile says */
#ifndef RP_STAGE_EXECUTOR_H
#define RP_STAGE_EXECUTOR_H

#include "base/clock.h"
#include "stage/layout.h"
#include "stage/slots.h"

typedef struct rp_executor_kind rp_executor_kind;

/* The common first member of every executor; prepare fills it. */
typedef struct {
    const rp_executor_kind *kind;
    const rp_job *job;
    const rp_layout *layout;
    const uint32_t *wrong_every; /* see rp_site */
    uint32_t forwards;           /* training forwards so far; see rp_executor_is_wrong() */
} rp_executor;

/* Given costs of ops, instead of real work. */
typedef struct {
    const void *self;
    /* Seconds of an op on layers [first, end) of the model. Pure. */
    double (*op_s)(const void *self, uint32_t first, uint32_t end, rp_op_kind kind,
                   uint32_t samples);
    const char *kind; /* kind of board; boards with equal kinds have equal costs */
} rp_site_costs;

/* What an executor runs on. Everything is borrowed and must outlive the executor. Comments begin
 * with the kinds of executors that use the field. */
typedef struct {
    rp_device *device;     /* opencl */
    const rp_clock *clock; /* timed, digest: clock of marks; NULL = the real clock */
    /* timed, digest: measured seconds of each layer of the model, alternately forward and backward;
     * NULL = a pass takes no time */
    const double *seconds;
    uint32_t seconds_samples; /* samples of a microbatch in `seconds`; 0 = the job's */
    double update_s;          /* timed, digest: seconds of an UPDATE */
    /* timed, digest: used instead of the three fields above; NULL = unused */
    const rp_site_costs *costs;
    bool strict; /* digest: a gradient depends on the order of its microbatches */
    /* digest: if set, the next command fails and resets it; NULL = no command fails */
    bool *fails;
    /* timed, digest: while set, no mark passes; NULL = never set */
    const bool *hangs;
    /* opencl, digest, for tests: a board that computes wrong. Every n-th training forward has one
     * wrong output value; NULL or 0 = none has. */
    const uint32_t *wrong_every;
} rp_site;
/* Counts one training forward, and returns whether its result must be wrong. */
static inline bool rp_executor_is_wrong(rp_executor *executor) {
    const uint32_t every = executor->wrong_every ? *executor->wrong_every : 0;
    return every > 0 && ++executor->forwards % every == 0;
}

/* ---- what an executor holds ------------------------------------------------------------------ */

/* A block has one value for each trained parameter of the stage. The comments describe the
 * index. */
typedef enum {
    RP_BLOCK_WEIGHTS,   /* below layout->copies.versions */
    RP_BLOCK_PREDICTED, /* for xpipe 0 forward, 1 backward; otherwise 0 for both */
    RP_BLOCK_CENTRE,    /* 0: the centre of the replicas, or their reference */
    RP_BLOCK_SCRATCH,   /* 0: for averages: the weights before a step, an elastic term, or a mean */
    RP_BLOCK_STATE,     /* replica * layout->state_count + state */
    RP_BLOCK_PROBE,    /* 0: the weights that a forward saw; 1: the newest at that time (probe.c) */
    RP_BLOCK_PEER,     /* 0: the gradient of another board that shares the stage */
    RP_BLOCK_GRADIENT, /* 0: sum of the current step's gradients; missing on a board without
                          backwards */
    RP_BLOCK_KINDS
} rp_block_kind;

typedef struct {
    rp_block_kind kind;
    uint32_t index;
} rp_block;

uint32_t rp_block_count(const rp_layout *layout, rp_block_kind kind);
/* The position of a block among all blocks, which are ordered by kind and index. */
uint32_t rp_block_total(const rp_layout *layout);
uint32_t rp_block_position(const rp_layout *layout, rp_block block);

/* Bytes for read and write: one parameter, or all that microbatches in flight need. */
typedef enum {
    /* A trained parameter's value in `block`. A parameter that is not trained has only one value,
     * so `block` is ignored. */
    RP_REGION_BLOCK,
    RP_REGION_EVERYWHERE, /* a parameter, in all versions and in the centre; only for write */
    RP_REGION_IN_FLIGHT   /* range of facts.in_flight_bytes */
} rp_region_kind;

typedef struct {
    rp_region_kind kind;
    rp_block block;
    /* Index within the stage. A write to a use of a tied tensor writes all uses in the stage. */
    uint32_t param;
} rp_region;

/* ---- commands -------------------------------------------------------------------------------- */

/* Samples of an op as they arrived: part[i] holds boundary tensor i (or the targets), packed by
 * sample. A piece may extend beyond the op's samples; only the common samples are used. */
typedef struct {
    rp_range samples; /* of the step */
    const void *const *part;
    uint32_t time; /* tokens of a sample (rp_model_view), the same in all pieces of a step */
} rp_stage_piece;

/* Whether each sample of the range is in exactly one piece. */
bool rp_pieces_cover(const rp_stage_piece *piece, uint32_t count, const rp_range *samples);
/* The samples that a piece and a range have in common: at: first one, relative to the range; from:
 * relative to the piece. count 0: none. */
typedef struct {
    uint32_t at, from, count;
} rp_piece_cut;
rp_piece_cut rp_piece_of(const rp_stage_piece *piece, const rp_range *samples);

typedef enum {
    RP_COMMAND_INIT,     /* zeroes everything, then initialises the weights from the job's seed */
    RP_COMMAND_FORWARD,  /* pass */
    RP_COMMAND_LOSS,     /* pass: loss of the slot's last forward, without gradients */
    RP_COMMAND_BACKWARD, /* pass: the op's kind says whether it is a half */
    RP_COMMAND_COMMIT,   /* step: layers that do something once a step do it */
    RP_COMMAND_KEEP,     /* kept: copies the running statistics there */
    /* kept: restores the running statistics from there, and zeroes sums over a step's samples */
    RP_COMMAND_RESTORE,
    RP_COMMAND_NORMS,   /* read: sum of squares of each trained parameter's gradient */
    RP_COMMAND_RESULTS, /* read: RP_LOSS_RESULT floats of each of `count` samples */
    RP_COMMAND_OVERLAP, /* counts: rp_loss_call.overlap of `count` samples after RP_COMMAND_LOSS */
    RP_COMMAND_BLOCK,   /* read: copies `block` to the host, layout->gradient_bytes */
    RP_COMMAND_SUM,     /* sum: becomes the step's gradient */
    RP_COMMAND_TAKE,    /* write: copies host memory to `block` */
    RP_COMMAND_ROW,     /* read: this stage's row (layout->use) of `block`, layout->tie_row_bytes */
    /* tie: each use of a tied tensor gets the sum of the gradients of all its uses */
    RP_COMMAND_TIE,
    RP_COMMAND_STASH,       /* stash: copies the content of a slot to the host, facts.stash_bytes */
    RP_COMMAND_UNSTASH,     /* stash: copies it from the host to a slot */
    RP_COMMAND_PROBE_NORMS, /* read: sums of squares of the last PROBE */
    RP_COMMAND_COPY,        /* move: block to block */
    RP_COMMAND_PROBE,   /* move: completes a prediction-error sample; `from`: the newest weights */
    RP_COMMAND_PREDICT, /* optimise: `to` = the weights after `ahead` predicted updates */
    RP_COMMAND_UPDATE,  /* optimise: updates weights and states with the gradients */
    RP_COMMAND_ANCHOR,  /* optimise: adds the anchor's term to the gradients */
    RP_COMMAND_AVERAGE, /* average */
    RP_COMMAND_KINDS
} rp_command_kind;

/* A row of another stage: gradients or values of its uses of tied tensors. */
typedef struct rp_tie_row {
    uint32_t stage;
    const void *row;
} rp_tie_row;
/* The row of a stage; it must be there. */
const char *rp_tie_row_of(const rp_tie_row *row, uint32_t count, uint32_t stage);

typedef struct {
    const rp_op *op;
    uint32_t time;    /* tokens of a sample in this step, see rp_model_view */
    rp_block weights; /* seen by the layers */
    /* A backward with groups that are recomputed: the weights that its forward saw. */
    rp_block forward_weights;
    rp_stash stash; /* position of the op's samples in the slot of their forward */
    /* position in the slot of their deferred weight gradient; slot RP_NO_SLOT = nothing is
     * deferred */
    rp_stash deferred;
    /* 1 + the slot that the next backward will need, so that an offloaded stash can be fetched
     * early; 0 = unknown */
    uint32_t soon;
    /* A forward with uses of tensors of other stages: their rows of values; count 0: the slot keeps
     * its values (for profiles). The array is read during `issue`; rows are borrowed. */
    const rp_tie_row *tie;
    uint32_t tie_count;
    bool ends;                /* this is the backward of the slot's last samples */
    uint32_t step_samples;    /* in the whole step: the loss is the mean over them */
    bool training;            /* layers behave as in training */
    bool accumulate;          /* add to the gradients instead of overwriting them */
    uint32_t renewal;         /* see rp_layer_call */
    const rp_stage_piece *in; /* count 0: no boundary tensors are moved in or out (for profiles) */
    uint32_t in_count;
    void *const *out; /* host memory of each boundary tensor, packed by sample */
} rp_pass;

typedef struct {
    rp_block weights, to;
    uint32_t replica;
    uint64_t applied; /* optimiser steps of the replica so far */
    float rate, grad_scale, ahead;
    /* Prediction gain of each trained parameter; NULL = 1 for all. Borrowed until the mark. */
    const float *share;
} rp_optimise;

typedef enum {
    RP_TERM_ELASTIC, /* e = alpha (x - centre); x -= e; centre += e */
    RP_TERM_PULL,    /* scratch = alpha (x - centre); centre += scratch */
    RP_TERM_PUSH,    /* x -= scratch */
    /* scratch = x before its step. x += alpha (reference - x), where the reference is the old
     * centre; then centre += share (x after its step - scratch) */
    RP_TERM_REFERENCE,
    RP_TERM_TOWARDS /* scratch += share (x - scratch) */
} rp_average_term;

typedef struct {
    rp_command_kind kind;
    union {
        rp_pass pass;
        uint64_t step;
        uint32_t kept; /* index of the copy, below layout->kept */
        struct {
            float *out; /* borrowed until the mark */
            uint32_t count;
            rp_block block;
        } read;
        struct {
            uint32_t *out; /* borrowed until the mark */
            uint32_t count;
        } counts;
        struct {
            /* Added from first to last. The array is read during `issue`; the gradients are
             * borrowed until the mark. */
            const void *const *gradient;
            uint32_t count; /* >= 1 */
        } sum;
        struct {
            /* As for `sum`; of every stage with a use of a tensor of this one. */
            const rp_tie_row *row;
            uint32_t count;
        } tie;
        struct {
            const void *from; /* borrowed until the mark */
            rp_block block;
        } write;
        struct {
            void *out; /* borrowed until the mark; either out or from is NULL */
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

/* Answers RP_COMMAND_OVERLAP for an executor that computes no outputs: all counts are 0. */
void rp_executor_count_none(const rp_executor *executor, const rp_command *command);

/* ---- the table ------------------------------------------------------------------------------- */

/* A point after all commands issued so far. */
typedef struct {
    rp_fence fence; /* opencl */
    int64_t end_ns; /* the time at which it will have passed, if known; 0 = unknown */
} rp_mark;

typedef struct {
    size_t used_bytes;      /* of the device */
    uint32_t weight_copies; /* blocks of weights that were allocated */
    uint32_t probe_copies;  /* further blocks, for prediction-error samples */
    size_t stash_bytes;     /* content of a slot as sent, a multiple of 4 */
    size_t in_flight_bytes; /* of RP_REGION_IN_FLIGHT, a multiple of 4 */
    uint64_t flash_bytes;   /* written to flash by stashes so far */
    int handle;             /* file descriptor, readable when a mark has passed; -1 = none */
    bool warms_up;          /* a dry step builds kernels, so it should be run */
    /* Zeros that parcels may borrow instead of allocating memory; as large as the largest parcel.
     * NULL = parcels need memory of their own. */
    void *zeros;
} rp_executor_facts;

struct rp_executor_kind {
    const char *name;
    /* Makes the layout, allocates all memory and seals the arenas. On error everything is released
     * again. errors LIMIT with the sizes in the message; MEMORY; DEVICE */
    rp_err (*prepare)(rp_arena *arena, const rp_site *site, const rp_job *job, rp_executor **out);
    void (*destroy)(rp_executor **executor); /* drains first */
    /* Never waits. Host memory that a command points to is borrowed until a mark after it has
     * passed; the command itself only during the call. */
    rp_err (*issue)(rp_executor *executor, const rp_command *command);
    rp_err (*mark)(rp_executor *executor, rp_mark *out);
    /* *end_ns: the time at which the commands before the mark ended, by the executor's clock; only
     * valid if *done. errors DEVICE if a command failed */
    rp_err (*poll)(rp_executor *executor, const rp_mark *mark, bool *done, int64_t *end_ns);
    void (*release)(rp_executor *executor, rp_mark *mark);
    /* Wait until all commands have ended (opencl), then move bytes [first, first + count) of the
     * region. Only between segments. The bytes of one parameter must be written in order. */
    rp_err (*read)(rp_executor *executor, const rp_region *region, size_t first, size_t count,
                   void *out);
    rp_err (*write)(rp_executor *executor, const rp_region *region, size_t first, size_t count,
                    const void *from);
    rp_err (*drain)(rp_executor *executor);
    /* After rehearse(true) commands only list the kernels that they need (device/ready.h), until
     * rehearse(false). NULL if facts.warms_up is false. */
    void (*rehearse)(rp_executor *executor, bool on);
    rp_executor_facts (*facts)(const rp_executor *executor);
    /* Losses of the codecs for activations [0] and gradients [1] in what left the stage in
     * training, measured on some samples since the last call; zeros if nothing was encoded. Waits
     * as read does. NULL if the executor has no real numbers. */
    rp_err (*take_losses)(rp_executor *executor, rp_codec_loss out[2]);
};

extern const rp_executor_kind *const rp_executor_kinds[];   /* NULL-terminated, generated */
const rp_executor_kind *rp_executor_find(const char *name); /* NULL if unknown */

#endif
