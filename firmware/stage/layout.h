/* What memory a stage needs, decided before a device is touched: which tensors live in a slot from
 * forward to backward, which are scratch, which share storage. Pure.
 *
 * A tensor is the output of a layer of this stage, or one that crosses its lower boundary. Tensors
 * of a chain of in-place layers share one storage. Storage that some backward reads is kept, in one
 * buffer a slot; other storage is scratch from a small pool, reused along the op by lifetime.
 * Gradients are the same, where there is a backward; with split backwards the gradient that a
 * weight gradient still needs is kept in a deferred slot. With groups (again.h) only what enters a
 * group is kept in a slot. */
#ifndef RP_STAGE_LAYOUT_H
#define RP_STAGE_LAYOUT_H

#include "stage/versions.h"

#define RP_NO_STORAGE UINT32_MAX
#define RP_NOT_TRAINED UINT32_MAX

/* On the device, of an offloaded stage: one that an op works on, one that leaves, one that comes
 * back. */
enum { RP_OFFLOAD_STASHES = 3 };

typedef struct {
    uint32_t producer; /* layer index, or RP_LAYER_DATA */
    rp_shape sample;
    bool input, output;  /* crosses the lower or upper boundary of this stage */
    bool wants_grad;     /* something trained lies above it */
    uint32_t storage;    /* of the value */
    uint32_t grad;       /* of the gradient, RP_NO_STORAGE when not wanted */
    uint32_t grad_first; /* position of the layer that writes the gradient first; layer_count: it
                            comes from outside (boundary or loss) */
} rp_layout_tensor;

typedef struct {
    size_t sample_bytes;
    bool kept;       /* from an op to a later one */
    bool again;      /* of a group: from the forward that is computed again to the backward, in
                        buffers that all groups and slots share */
    uint32_t buffer; /* index into the slot's buffers when kept, into again_bytes, or the pool */
    int32_t birth, death;
} rp_layout_storage;

typedef struct {
    rp_layout_storage *storage;
    uint32_t storage_count;
    size_t *kept_bytes; /* per sample */
    uint32_t kept_count;
    size_t *pool_bytes; /* per sample */
    uint32_t pool_count;
} rp_layout_memory;

/* Layers of a stage that keep what enters them only; positions [first, end). Their backward begins
 * with the forward of [first, again_end), the rest of which nobody reads. */
typedef struct {
    uint32_t first, end, again_end;
} rp_layout_group;

/* Copies of the weights: versions (METHODS 13), predicted ones (by direction for xpipe), the centre
 * or reference of the replicas, and a scratch copy around a local step. */
typedef struct {
    uint32_t versions, predicted, centres, scratches;
} rp_layout_copies;

typedef struct {
    uint32_t first_layer, layer_count;
    rp_layout_tensor *tensor; /* inputs first, then layer outputs in order */
    uint32_t input_count, tensor_count;
    uint32_t outputs[RP_CUT_TENSORS_MAX]; /* tensor indices that cross the upper boundary */
    uint32_t output_count;
    uint32_t *tensor_of; /* by model layer index: the tensor here, or RP_NO_STORAGE */
    uint32_t data_tensor;

    rp_layout_memory value, grad;

    rp_layout_group *group; /* in order, all layers; job->recompute */
    uint32_t group_count;   /* 0: everything is kept */
    size_t *again_bytes;    /* of a whole op, unlike those of slots and pools */
    uint32_t again_count;
    uint32_t *again_saved; /* [layer_count * RP_LAYER_SAVED_MAX]: buffer of what a layer saves */

    uint32_t param_first, param_count; /* of the model's parameters, those of this stage */
    uint32_t *trained; /* by parameter: which trained one it is, or RP_NOT_TRAINED */
    uint32_t trained_count;

    uint32_t slots;       /* forwards in flight at once */
    uint32_t stashes;     /* of them on the device at once; fewer than slots: the others lie where
                             job->offload says, or their first leave_count parts do */
    uint32_t part_count;  /* of a slot: those that are kept, then RP_LAYER_SAVED_MAX a layer */
    size_t *part_bytes;   /* by part; 0: there is none */
    uint32_t *part_order; /* those that there are: the longer one waits between the last layer of
                             the forward and the first of the backward that need it, the earlier
                             it stands */
    uint32_t order_count, leave_count;
    uint32_t align_bytes;
    uint32_t deferred_slots; /* input gradients whose weight gradient is to come, split schedules */
    size_t workspace_bytes;
    uint32_t workspace_layer;

    size_t weight_bytes;     /* trained parameters, aligned */
    size_t gradient_bytes;   /* their gradients as they travel, packed */
    size_t running_bytes;    /* state and scratch parameters, aligned */
    size_t statistics_bytes; /* of them those of running statistics */
    uint32_t kept;           /* copies of these, one for each step that may still be skipped */
    size_t slot_bytes;       /* one slot */
    size_t leave_bytes;      /* of it that leaves */
    size_t group_bytes;      /* what of the stash all slots share, with groups; else 0 */
    size_t deferred_bytes;   /* one slot of deferred weight gradients */
    size_t scratch_bytes;    /* pools, labels, results, workspace */
    uint32_t state_count;    /* optimiser states of a replica, each weight_bytes */
    uint32_t replicas;       /* each with states of its own */
    rp_layout_copies copies;
    uint32_t probe_steps; /* steps between two probes, 0 = none */
    uint32_t probes;      /* copies that a probe takes */
    uint32_t gradients;   /* 1; 0 on a board that does forwards only */
    uint32_t peers; /* copies of the gradients: another board's, where several share a stage */
    size_t total_bytes;
    rp_codec codec[2][2];   /* as in the job */
    size_t codec_bytes;     /* the largest encoded parcel, 0 = nothing is encoded */
    size_t loss_bytes;      /* a sample decoded again, of what leaves encoded; 0 = nothing does */
    size_t loss_sums_bytes; /* of what that has lost */
    size_t pixel_bytes;     /* the values of inputs that come as uint8, 0 = they do not */
    size_t boundary_least;  /* bytes that a sample of a boundary tensor has as it travels, at
                               least; data of the set travels as it is */
} rp_layout;

/* Only slots, deferred slots and copies of the weights, which need no model: of the job, method,
 * cut.count, stage and sizes. errors MEMORY */
rp_err rp_layout_count(const rp_job *job, rp_layout *layout) RP_MUST_CHECK;
uint32_t rp_layout_weight_copies(const rp_layout *layout);

/* errors LIMIT when more than RP_CUT_TENSORS_MAX tensors cross a boundary; MEMORY */
rp_err rp_layout_make(rp_arena *arena, const rp_job *job, rp_gemm_choice gemm, uint32_t align_bytes,
                      rp_layout **out) RP_MUST_CHECK;

/* Of offloaded stashes, in the processor's memory. */
static inline uint64_t rp_layout_offloaded_bytes(const rp_layout *layout) {
    return (uint64_t)layout->slots * layout->leave_bytes;
}
/* What a layer saves. */
static inline uint32_t rp_layout_saved_part(const rp_layout *layout, uint32_t position,
                                            uint32_t number) {
    return layout->value.kept_count + position * RP_LAYER_SAVED_MAX + number;
}
/* The fewest parts that have to leave, of those that do, so that total_bytes is at most the limit;
 * where that is not enough, all. 0: nothing is offloaded. */
uint32_t rp_layout_leave_least(const rp_layout *layout, uint64_t limit_bytes);
/* errors LIMIT when total_bytes > limit_bytes, with the parts and the largest layer */
rp_err rp_layout_check(const rp_layout *layout, const rp_job *job,
                       size_t limit_bytes) RP_MUST_CHECK;

/* The tensors that cross the lower (or upper) boundary, and what one sample of each has in a
 * parcel; only those that want a gradient when `grad`. The executor decides on the bytes. */
typedef struct {
    uint32_t count;
    uint32_t tensor[RP_CUT_TENSORS_MAX];
    rp_codec codec[RP_CUT_TENSORS_MAX];  /* f32 for data of the set that is no input here */
    rp_shape sample[RP_CUT_TENSORS_MAX]; /* as it travels, in elements of the codec's type */
    size_t bytes[RP_CUT_TENSORS_MAX];    /* of one sample */
    size_t sample_bytes;                 /* sum */
} rp_boundary_tensors;
rp_boundary_tensors rp_layout_boundary(const rp_layout *layout, bool upper, bool grad);
/* Largest tensor of a parcel that enters or leaves the stage, targets and data included; but for
 * the gradients of a shared stage, which only its boards exchange. */
size_t rp_layout_part_max(const rp_layout *layout, const rp_job *job);

#endif
