/* Inside of the opencl executor; only for executor_opencl.c and opencl_*.c. */
#ifndef RP_STAGE_OPENCL_OWN_H
#define RP_STAGE_OPENCL_OWN_H

#include "device/spill.h"
#include "stage/executor.h"

/* A block in device memory: one chunk, and its parts by trained parameter. */
typedef struct {
    rp_darena *arena;
    rp_buffer **part;
} rp_flat;

typedef struct {
    rp_tensor value; /* as the op that is being enqueued sees it */
    rp_tensor grad;  /* of a trained one */
} rp_opencl_param;

/* Memory on the device for what leaves of a stash, of an offloaded stage. */
typedef struct {
    rp_darena *arena;
    rp_buffer **part; /* as of a slot, those that leave */
    uint32_t slot;    /* whose it is, or RP_NO_SLOT */
    rp_event used;    /* the last op on it has passed, .. */
    rp_event left;    /* .. and what has left it; */
    rp_event here;    /* what it waits for has come */
} rp_opencl_chunk;

typedef struct {
    uint32_t chunk; /* where it lies on the device, or RP_NO_SLOT */
    bool stored;    /* it lies with the host, once `left` has passed */
    rp_event left;
} rp_opencl_place;

typedef struct {
    rp_executor base;
    rp_arena *arena;
    rp_device *device;
    rp_flat *block;         /* by rp_block_position */
    rp_opencl_param *param; /* of the stage */
    rp_darena *memory;      /* slots and all else */
    rp_darena *statistics;  /* running statistics, in one piece; NULL: no layer has any */
    rp_darena **kept;       /* [layout->kept]: copies of `statistics` */
    rp_buffer ***slot;      /* of microbatches in flight, by part of the layout */
    rp_spill *spill;        /* of an offloaded stage, else NULL: */
    rp_opencl_chunk *chunk; /* layout->stashes of them; what of a slot leaves lies in its own */
    rp_opencl_place *place; /* by slot */
    rp_buffer ***deferred;  /* by deferred slot: gradients that are kept */
    rp_buffer **again;      /* of groups that are computed again, by buffer of the layout */
    rp_buffer **value_pool, **grad_pool;
    rp_buffer *workspace, *target, *results, *spans, *norms, *probe_norms[RP_PROBE_NORMS];
    rp_buffer *encoded;      /* a boundary tensor as it travels: the op's that is being enqueued */
    rp_buffer *decoded;      /* a sample of it, as the other end will see it */
    rp_buffer *losses;       /* sums of what samples lose: of activations, of gradients */
    rp_buffer *pixels;       /* values of inputs that come as uint8 */
    rp_buffer *shares;       /* of predictions, by trained parameter */
    rp_tensor *value, *grad; /* of the op that is being enqueued, by tensor of the layout */
    uint32_t weight_copies, probe_copies;
} rp_opencl;

static inline rp_opencl *rp_opencl_of(rp_executor *executor) {
    return (rp_opencl *)(void *)executor; /* the base is its first member */
}

static inline rp_flat *rp_opencl_flat(const rp_opencl *e, rp_block block) {
    return &e->block[rp_block_position(e->base.layout, block)];
}

/* A block as one buffer. */
static inline rp_buffer *rp_opencl_whole(const rp_opencl *e, rp_block block) {
    return rp_darena_whole(rp_opencl_flat(e, block)->arena);
}

/* opencl_memory.c: takes what the layout says, and seals it. */
rp_err rp_opencl_take_memory(rp_opencl *e) RP_MUST_CHECK;
void rp_opencl_free_memory(rp_opencl *e);
rp_err rp_opencl_init(rp_opencl *e) RP_MUST_CHECK;

/* opencl_offload.c: before an op is enqueued its stash is on the device; behind it one that is done
 * with is dropped, another leaves, and the one that comes next comes back. */
/* e->slot and e->chunk are there. */
rp_err rp_opencl_open_offload(rp_opencl *e) RP_MUST_CHECK;
void rp_opencl_close_offload(rp_opencl *e);
rp_err rp_opencl_begin_pass(rp_opencl *e, const rp_pass *pass, bool forward) RP_MUST_CHECK;
rp_err rp_opencl_end_pass(rp_opencl *e, const rp_pass *pass, bool forward) RP_MUST_CHECK;
/* Around rp_opencl_move_slot(), the same; `in`: the slot gets another stash. */
rp_err rp_opencl_begin_move(rp_opencl *e, uint32_t slot, bool in) RP_MUST_CHECK;
rp_err rp_opencl_end_move(rp_opencl *e, uint32_t slot) RP_MUST_CHECK;
/* For checkpoints: bytes of a slot's part that lies with the host; false: it is on the device. */
rp_err rp_opencl_move_stored(rp_opencl *e, uint32_t slot, uint32_t part, size_t from, size_t bytes,
                             const char *in, char *out, bool *moved) RP_MUST_CHECK;
/* opencl_layers.c */
rp_err rp_opencl_forward(rp_opencl *e, const rp_pass *pass) RP_MUST_CHECK;
rp_err rp_opencl_loss(rp_opencl *e, const rp_pass *pass) RP_MUST_CHECK;
rp_err rp_opencl_backward(rp_opencl *e, const rp_pass *pass) RP_MUST_CHECK;
rp_err rp_opencl_commit(rp_opencl *e, uint64_t step) RP_MUST_CHECK;

/* opencl_parcels.c: boundary tensors to and from the host, encoded where the job says so. */
rp_err rp_opencl_write_pieces(rp_opencl *e, const rp_pass *pass, uint32_t index, rp_buffer *to,
                              size_t at, size_t sample_bytes) RP_MUST_CHECK;
rp_err rp_opencl_tensors_in(rp_opencl *e, const rp_pass *pass, const rp_boundary_tensors *boundary,
                            const rp_tensor *at) RP_MUST_CHECK;
rp_err rp_opencl_tensors_out(rp_opencl *e, const rp_pass *pass, const rp_boundary_tensors *boundary,
                             const rp_tensor *at) RP_MUST_CHECK;
rp_err rp_opencl_take_losses(rp_executor *executor, rp_codec_loss out[2]) RP_MUST_CHECK;

/* opencl_blocks.c */
rp_err rp_opencl_copy(rp_opencl *e, rp_block from, rp_block to) RP_MUST_CHECK;
rp_err rp_opencl_norms(rp_opencl *e, float *out) RP_MUST_CHECK;
rp_err rp_opencl_results(rp_opencl *e, float *out, uint32_t samples) RP_MUST_CHECK;
rp_err rp_opencl_read_block(rp_opencl *e, rp_block block, float *out) RP_MUST_CHECK;
rp_err rp_opencl_write_block(rp_opencl *e, rp_block block, const float *from) RP_MUST_CHECK;
rp_err rp_opencl_sum(rp_opencl *e, const void *const *gradient, uint32_t count) RP_MUST_CHECK;
rp_err rp_opencl_probe(rp_opencl *e, rp_block newest) RP_MUST_CHECK;
rp_err rp_opencl_probe_norms(rp_opencl *e, float *out) RP_MUST_CHECK;
rp_err rp_opencl_predict(rp_opencl *e, const rp_optimise *by) RP_MUST_CHECK;
rp_err rp_opencl_update(rp_opencl *e, const rp_optimise *by) RP_MUST_CHECK;
rp_err rp_opencl_average(rp_opencl *e, const rp_command *command) RP_MUST_CHECK;

/* opencl_statistics.c */
rp_err rp_opencl_take_statistics(rp_opencl *e) RP_MUST_CHECK;
void rp_opencl_free_statistics(rp_opencl *e);
rp_err rp_opencl_keep(rp_opencl *e, uint32_t kept) RP_MUST_CHECK;
rp_err rp_opencl_restore(rp_opencl *e, uint32_t kept) RP_MUST_CHECK;

/* opencl_regions.c */
size_t rp_opencl_stash_bytes(const rp_opencl *e);
/* All that a slot holds, in the queue's order: to `out`, or from `from`; the other one is NULL. */
rp_err rp_opencl_move_slot(rp_opencl *e, uint32_t slot, void *out, const void *from) RP_MUST_CHECK;
size_t rp_opencl_in_flight_bytes(const rp_opencl *e);
rp_err rp_opencl_read(rp_executor *executor, const rp_region *region, size_t first, size_t count,
                      void *out) RP_MUST_CHECK;
rp_err rp_opencl_write(rp_executor *executor, const rp_region *region, size_t first, size_t count,
                       const void *from) RP_MUST_CHECK;

#endif
