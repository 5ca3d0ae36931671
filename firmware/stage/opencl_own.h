/* Private to the opencl executor: executor_opencl.c and opencl_*.c. */
#ifndef RP_STAGE_OPENCL_OWN_H
#define RP_STAGE_OPENCL_OWN_H

#include "device/spill.h"
#include "stage/executor.h"

/* A block in device memory: one allocation, divided into parts by trained parameter. */
typedef struct {
    rp_darena *arena;
    rp_buffer **part;
} rp_flat;

typedef struct {
    rp_tensor value; /* as seen by the op that is being enqueued */
    rp_tensor grad;  /* only of a trained one */
} rp_opencl_param;

/* An offloaded stage has layout->stashes chunks. A chunk is device memory for the parts of one
 * stash that are offloaded. */
typedef struct {
    rp_darena *arena;
    rp_buffer **part; /* by part of the layout, as in a slot; NULL for parts that stay */
    uint32_t slot;    /* the slot whose stash it holds, or RP_NO_SLOT */
    rp_event used;    /* the last op that used the chunk has ended */
    rp_event left;    /* the stash has been copied out */
    rp_event here;    /* the stash has been copied in */
} rp_opencl_chunk;

typedef struct {
    uint32_t chunk; /* index of the chunk that holds the slot's stash, or RP_NO_SLOT */
    bool stored;    /* the host has a copy, which is complete when `left` has passed */
    rp_event left;
} rp_opencl_place;

typedef struct {
    rp_executor base;
    rp_arena *arena;
    rp_device *device;
    rp_flat *block;         /* by rp_block_position() */
    rp_opencl_param *param; /* by parameter of the stage */
    rp_darena *memory;      /* slots and everything without an arena of its own */
    rp_darena *statistics;  /* running statistics, contiguous; NULL: no layer has any */
    rp_darena **kept;       /* [layout->kept]: copies of `statistics` */
    rp_buffer ***slot; /* by slot and by part of the layout: what a microbatch in flight needs */
    /* Offloaded stages only, else NULL; offloaded parts are in `chunk`. */
    rp_spill *spill;
    rp_opencl_chunk *chunk; /* [layout->stashes] */
    rp_opencl_place *place; /* by slot */
    rp_buffer ***deferred;  /* by deferred slot: gradients for a later weight half */
    rp_buffer *
        *recomputed; /* memory shared by groups that are recomputed, by buffer of the layout */
    rp_buffer **value_pool, **grad_pool;
    rp_buffer *workspace, *target, *results, *row_results, *overlap, *spans, *norms,
        *probe_norms[RP_PROBE_NORMS];
    rp_buffer *encoded; /* a boundary tensor in its codec's format, for the op being enqueued */
    rp_buffer *decoded; /* a sample of it, decoded as the receiver will see it */
    rp_buffer *losses;  /* sums of codec losses: activations, gradients */
    rp_buffer *pixels;  /* table of values for inputs that arrive as uint8 */
    rp_buffer *tie_sum, *tie_term; /* of tied tensors with uses in other stages; else NULL */
    rp_buffer *shares;             /* prediction gains, by trained parameter */
    rp_tensor *value, *grad;       /* by tensor of the layout, for the op being enqueued */
    bool *unpacked; /* by storage: its f32 copy has the values of the backward being enqueued */
    uint32_t weight_copies, probe_copies;
} rp_opencl;

static inline rp_opencl *rp_opencl_of(rp_executor *executor) {
    return (rp_opencl *)(void *)executor; /* the base is its first member */
}

static inline rp_flat *rp_opencl_flat(const rp_opencl *e, rp_block block) {
    return &e->block[rp_block_position(e->base.layout, block)];
}

/* The buffer of a whole block. */
static inline rp_buffer *rp_opencl_whole(const rp_opencl *e, rp_block block) {
    return rp_darena_whole(rp_opencl_flat(e, block)->arena);
}

/* opencl_memory.c: allocates what the layout lists, and seals the arenas. */
rp_err rp_opencl_take_memory(rp_opencl *e) RP_MUST_CHECK;
void rp_opencl_free_memory(rp_opencl *e);
rp_err rp_opencl_init(rp_opencl *e) RP_MUST_CHECK;

/* opencl_offload.c: brings a stash to the device before its op is enqueued. After the op it drops
 * the stash if it is no longer needed, copies one out, and fetches the next one. */
/* Needs e->slot and e->chunk. */
rp_err rp_opencl_open_offload(rp_opencl *e) RP_MUST_CHECK;
void rp_opencl_close_offload(rp_opencl *e);
rp_err rp_opencl_begin_pass(rp_opencl *e, const rp_pass *pass, bool forward) RP_MUST_CHECK;
rp_err rp_opencl_end_pass(rp_opencl *e, const rp_pass *pass, bool forward) RP_MUST_CHECK;
/* For rp_opencl_move_slot(), in the same way. in: the slot gets another stash. */
rp_err rp_opencl_begin_move(rp_opencl *e, uint32_t slot, bool in) RP_MUST_CHECK;
rp_err rp_opencl_end_move(rp_opencl *e, uint32_t slot) RP_MUST_CHECK;
/* For checkpoints: moves bytes of a slot's part that is on the host. *moved false: the part is on
 * the device, and nothing was moved. */
rp_err rp_opencl_move_stored(rp_opencl *e, uint32_t slot, uint32_t part, size_t from, size_t bytes,
                             const char *in, char *out, bool *moved) RP_MUST_CHECK;
/* opencl_layers.c */
rp_err rp_opencl_forward(rp_opencl *e, const rp_pass *pass) RP_MUST_CHECK;
rp_err rp_opencl_loss(rp_opencl *e, const rp_pass *pass) RP_MUST_CHECK;
rp_err rp_opencl_backward(rp_opencl *e, const rp_pass *pass) RP_MUST_CHECK;
rp_err rp_opencl_commit(rp_opencl *e, uint64_t step) RP_MUST_CHECK;

/* opencl_storage.c */
/* After a forward has written tensor t: rounds it, and packs it into the slot, if the layout says
 * so. */
rp_err rp_opencl_store(rp_opencl *e, const rp_pass *pass, uint32_t t) RP_MUST_CHECK;
/* Stores the tensors that have arrived. A codec may have changed their rounded values. */
rp_err rp_opencl_store_inputs(rp_opencl *e, const rp_pass *pass) RP_MUST_CHECK;
/* After a recomputation has written it; the slot has its bits already. */
rp_err rp_opencl_store_again(rp_opencl *e, uint32_t t) RP_MUST_CHECK;
/* Before a backward reads tensor t. */
rp_err rp_opencl_load(rp_opencl *e, const rp_pass *pass, uint32_t t) RP_MUST_CHECK;
/* Before a backward begins. */
void rp_opencl_forget_copies(rp_opencl *e);

/* opencl_parcels.c: boundary tensors to and from the host, encoded if the job says so. */
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
rp_err rp_opencl_overlap(rp_opencl *e, uint32_t *out, uint32_t samples) RP_MUST_CHECK;
rp_err rp_opencl_read_block(rp_opencl *e, rp_block block, float *out) RP_MUST_CHECK;
rp_err rp_opencl_write_block(rp_opencl *e, rp_block block, const float *from) RP_MUST_CHECK;
rp_err rp_opencl_sum(rp_opencl *e, const void *const *gradient, uint32_t count) RP_MUST_CHECK;
rp_err rp_opencl_probe(rp_opencl *e, rp_block newest) RP_MUST_CHECK;
rp_err rp_opencl_probe_norms(rp_opencl *e, float *out) RP_MUST_CHECK;
rp_err rp_opencl_predict(rp_opencl *e, const rp_optimise *by) RP_MUST_CHECK;
rp_err rp_opencl_update(rp_opencl *e, const rp_optimise *by) RP_MUST_CHECK;
rp_err rp_opencl_anchor(rp_opencl *e, const rp_optimise *by) RP_MUST_CHECK;
rp_err rp_opencl_average(rp_opencl *e, const rp_command *command) RP_MUST_CHECK;

/* opencl_ties.c */
rp_err rp_opencl_read_row(rp_opencl *e, rp_block block, char *out) RP_MUST_CHECK;
/* Writes the values of tensors of other stages to the forward's slot. */
rp_err rp_opencl_take_values(rp_opencl *e, const rp_pass *pass) RP_MUST_CHECK;
/* Lets the layers of the pass see them. */
void rp_opencl_select_values(rp_opencl *e, const rp_pass *pass);
rp_err rp_opencl_tie(rp_opencl *e, const rp_command *command) RP_MUST_CHECK;

/* opencl_statistics.c */
rp_err rp_opencl_take_statistics(rp_opencl *e) RP_MUST_CHECK;
void rp_opencl_free_statistics(rp_opencl *e);
rp_err rp_opencl_keep(rp_opencl *e, uint32_t kept) RP_MUST_CHECK;
rp_err rp_opencl_restore(rp_opencl *e, uint32_t kept) RP_MUST_CHECK;

/* opencl_regions.c */
size_t rp_opencl_stash_bytes(const rp_opencl *e);
/* Copies everything that a slot holds to `out`, or from `from`, in the order of the queue; the
 * other pointer is NULL. */
rp_err rp_opencl_move_slot(rp_opencl *e, uint32_t slot, void *out, const void *from) RP_MUST_CHECK;
size_t rp_opencl_in_flight_bytes(const rp_opencl *e);
rp_err rp_opencl_read(rp_executor *executor, const rp_region *region, size_t first, size_t count,
                      void *out) RP_MUST_CHECK;
rp_err rp_opencl_write(rp_executor *executor, const rp_region *region, size_t first, size_t count,
                       const void *from) RP_MUST_CHECK;

#endif
