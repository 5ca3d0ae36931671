/* Inside of a record; only for record.c and recompute.c. */
#ifndef RP_STAGE_RECORD_OWN_H
#define RP_STAGE_RECORD_OWN_H

#include "stage/record.h"
#include "stage/stage_own.h"

/* As it travels: what the rest of the bytes are of. */
typedef struct {
    uint64_t magic, stage, step;
    uint32_t first, count, micro; /* samples of the step, and which microbatch they are */
    uint32_t splits;              /* its backward came in two halves */
    uint32_t two_weights;         /* the backward saw others than the forward */
    uint32_t adds;                /* its gradient was added to that of microbatches before it */
    /* Only where a backward has a size of its own: samples of the forwards that it takes from. */
    uint32_t forward_first, forward_count;
} record_head;

/* One forward of those that are recorded. */
typedef struct {
    rp_range samples;
    const void *in[RP_CUT_TENSORS_MAX];
    void *out[RP_CUT_TENSORS_MAX];
} record_forward;

enum { RECORD_FORWARD, RECORD_BACKWARD, RECORD_PASSES };

struct rp_stage_record {
    rp_arena arena;
    uint64_t step;
    uint32_t micro;
    bool is_wanted;
    rp_range wanted; /* where a backward has a size of its own: its samples */
    bool done[RECORD_PASSES], has_gradient; /* issued */
    record_head head;
    size_t fixed_bytes;
    char *fixed; /* parameters of frozen layers, one behind the other */
    char *weights[RECORD_PASSES];
    char *before, *after; /* the gradient of the weights */
    rp_boundary_tensors lower, upper, lower_grad, upper_grad;
    char *in[RECORD_PASSES][RP_CUT_TENSORS_MAX];    /* a backward's are gradients, or targets */
    char *again[RECORD_PASSES][RP_CUT_TENSORS_MAX]; /* what comes out where it is computed again */
    record_forward *forward;                        /* [forward_count], by their samples */
    uint32_t forward_count;
    void *out[RP_CUT_TENSORS_MAX]; /* of the backward */
    rp_record_digests digests;
};

#define RECORD_MAGIC UINT64_C(0x3164726f63657252)       /* "Record1" */
#define RECORD_SIZES_MAGIC UINT64_C(0x3264726f63657252) /* "Record2", of several forwards */

/* record.c. Memory for every part; `outputs`: for what comes out, too. */
rp_err rp_stage_record_open(rp_stage *stage, bool outputs) RP_MUST_CHECK;
/* Bytes [first, first + count) to or from the record; one of `out` and `in` is NULL. Returns all.
 */
size_t rp_stage_record_move(const rp_stage *stage, size_t first, size_t count, void *out,
                            const void *in);
/* What an op takes from outside: bytes of a sample of each. */
uint32_t rp_stage_record_inputs(const rp_stage *stage, uint32_t pass,
                                size_t bytes[RP_CUT_TENSORS_MAX]);
/* Frozen parameters to `fixed`, or from there. */
rp_err rp_stage_record_move_fixed(rp_stage *stage, bool writes) RP_MUST_CHECK;
/* Samples that a pass takes, of all forwards. */
rp_range rp_stage_record_samples(const rp_stage *stage, uint32_t pass);
uint64_t rp_stage_record_magic(const rp_job *job);
/* Of the head's bytes, those that travel. */
size_t rp_stage_record_head_bytes(const rp_job *job);
/* What comes out of a forward goes into the digest of all; they come in their order. */
void rp_stage_record_digest_forward(rp_stage *stage, const record_forward *forward);
void rp_stage_record_digest_backward(rp_stage *stage);
void rp_stage_record_digest_gradient(rp_stage *stage);

#endif
