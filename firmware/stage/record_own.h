/* Private to record.c and recompute.c. */
#ifndef RP_STAGE_RECORD_OWN_H
#define RP_STAGE_RECORD_OWN_H

#include "stage/record.h"
#include "stage/stage_own.h"

/* The first bytes of a record as sent; they determine the sizes of all following parts. */
typedef struct {
    uint64_t magic, stage, step;
    uint32_t first, count, micro; /* samples of the step, and the microbatch */
    uint32_t splits;              /* the backward had two halves */
    uint32_t two_weights;         /* the backward saw other weights than the forward */
    uint32_t adds;                /* the gradient was added to that of earlier microbatches */
    /* Only sent if backwards have their own size: the samples of all recorded forwards. */
    uint32_t forward_first, forward_count;
    /* Only sent if steps have several lengths: tokens of a sample, see rp_model_view; and 0. */
    uint32_t time, unused;
} record_head;

/* One recorded forward. */
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
    rp_range wanted; /* the backward's samples, if backwards have their own size */
    bool done[RECORD_PASSES], has_gradient; /* the reads have been issued */
    record_head head;
    size_t fixed_bytes;
    char *fixed; /* packed parameters of frozen layers */
    char *weights[RECORD_PASSES];
    char *before, *after; /* gradient of the weights before and after the backward */
    rp_boundary_tensors lower, upper, lower_grad, upper_grad; /* in steps of head.time tokens */
    char *in[RECORD_PASSES][RP_CUT_TENSORS_MAX]; /* inputs; of the backward: gradients or targets */
    char *result[RECORD_PASSES][RP_CUT_TENSORS_MAX]; /* outputs, on the stage that recomputes */
    record_forward *forward; /* [forward_count], in the order of their samples */
    uint32_t forward_count;
    void *out[RP_CUT_TENSORS_MAX]; /* outputs of the backward */
    rp_record_digests digests;
};

#define RECORD_MAGIC UINT64_C(0x3164726f63657252) /* "Record1" */
#define RECORD_SIZES_MAGIC                                                                         \
    UINT64_C(0x3264726f63657252) /* "Record2": a backward and several forwards */
#define RECORD_TIMES_MAGIC UINT64_C(0x3364726f63657252) /* "Record3": steps of several lengths */

/* record.c. Allocates all parts; outputs: also the results, for recomputation. */
rp_err rp_stage_record_open(rp_stage *stage, bool outputs) RP_MUST_CHECK;
/* Sets the sizes of boundary tensors to those in steps of head.time tokens. */
void rp_stage_record_take_time(rp_stage *stage);
/* Copies bytes [first, first + count) of the record to `out` or from `in`; at least one of them is
 * NULL. Returns the size of the whole record. */
size_t rp_stage_record_move(const rp_stage *stage, size_t first, size_t count, void *out,
                            const void *in);
/* The tensors that a pass reads from outside: their number, and bytes of one sample of each. */
uint32_t rp_stage_record_inputs(const rp_stage *stage, uint32_t pass,
                                size_t bytes[RP_CUT_TENSORS_MAX]);
/* Copies frozen parameters from the executor to `fixed`, or back if `writes`. */
rp_err rp_stage_record_move_fixed(rp_stage *stage, bool writes) RP_MUST_CHECK;
/* The samples of a pass: of the backward, or of all forwards together. */
rp_range rp_stage_record_samples(const rp_stage *stage, uint32_t pass);
uint64_t rp_stage_record_magic(const rp_job *job);
/* The bytes of the head that are sent. */
size_t rp_stage_record_head_bytes(const rp_job *job);
/* Add the outputs of one op to the record's digests. Forwards must be added in order. */
void rp_stage_record_digest_forward(rp_stage *stage, const record_forward *forward);
void rp_stage_record_digest_backward(rp_stage *stage);
void rp_stage_record_digest_gradient(rp_stage *stage);

#endif
