/* The memory plan of a stage, made before a device is used: which tensors are in a slot from
 * forward to backward, which are scratch, and which share storage. Pure.
 *
 * A tensor is the output of a layer of this stage, or one that crosses its lower boundary. The
 * tensors of a chain of in-place layers share one storage. Storage that a backward reads is kept:
 * each slot has a buffer for it. Other storage is scratch from a small pool, shared by storages
 * whose lifetimes do not overlap. Gradients are placed in the same way if the board has backwards;
 * with split backwards, a gradient that the weight half still needs is kept in a deferred slot.
 * With groups (nn/recompute.h) a slot holds only the inputs of groups.
 * With storage in 16 bits (nn/rounding.h) a slot holds the 16 bits of a rounded tensor, and the
 * pool has a copy in f32 while layers of a forward or a backward use it. */
#ifndef RP_STAGE_LAYOUT_H
#define RP_STAGE_LAYOUT_H

#include "nn/ties.h"
#include "stage/versions.h"

#define RP_NO_STORAGE UINT32_MAX
#define RP_NOT_TRAINED UINT32_MAX

/* Stashes of an offloaded stage on the device: the one in use, one being copied out, and one being
 * copied in. */
enum { RP_OFFLOAD_STASHES = 3 };

typedef struct {
    uint32_t producer; /* index of the layer, or RP_LAYER_DATA */
    rp_shape sample;
    rp_dtype type;      /* f32, or i32 for token ids */
    bool input, output; /* crosses the lower or upper boundary of this stage */
    bool wants_grad;    /* its producer or an earlier layer is trained */
    bool rounds;        /* in training its values are rounded to job->storage after it is written */
    uint32_t storage;   /* index into value.storage */
    uint32_t grad;      /* index into grad.storage; RP_NO_STORAGE = it has no gradient */
    /* Position of the layer that writes the gradient first, where others add; layer_count: it comes
     * from outside (boundary or loss). */
    uint32_t grad_first;
} rp_layout_tensor;

typedef struct {
    size_t sample_bytes;
    bool kept; /* from one op to a later one */
    /* With groups: recomputed before the backward, in buffers that all groups and slots
     * share. */
    bool recomputed;
    /* Kept in 16 bits; passes use a copy in f32. */
    bool packed;
    /* Index into the slot's buffers if kept, into recompute_bytes if recomputed, otherwise into the
     * pool. */
    uint32_t buffer;
    int32_t birth, death;
    /* If packed: indices into the pool of the copy in forwards and of the one in backwards, and the
     * life of the latter. */
    uint32_t copy[2];
    int32_t copy_birth, copy_death;
} rp_layout_storage;

typedef struct {
    rp_layout_storage *storage;
    uint32_t storage_count;
    size_t *kept_bytes; /* per sample */
    uint32_t kept_count;
    size_t *pool_bytes; /* per sample */
    uint32_t pool_count;
} rp_layout_memory;

/* Layers at positions [first, end) that keep only their inputs. Their backward first recomputes the
 * forward of [first, recompute_end); the outputs after recompute_end are not read. */
typedef struct {
    uint32_t first, end, recompute_end;
} rp_layout_group;

/* One use of a tied tensor. */
typedef struct {
    uint32_t owner;   /* in model->param: uses of one tensor follow each other */
    uint32_t stage;   /* of the use */
    uint32_t trained; /* index among the trained parameters, or RP_NOT_TRAINED: another stage */
    bool sent;        /* its gradient is in the row of its stage, because it has uses elsewhere */
    size_t place;     /* bytes before it in that row */
    uint32_t count;   /* elements */
    /* Without a flush, of a use here whose owner is elsewhere: index among the stage's parameters,
     * and the part of a slot with the values of the slot's samples; else RP_NO_STORAGE. */
    uint32_t param, part;
    uint32_t owner_stage; /* stage of the owner, */
    size_t owner_place;   /* and bytes before the tensor in the row of that stage */
} rp_layout_use;

/* Numbers of copies of the weights: versions (METHODS 13), predicted ones (for xpipe one for each
 * direction), the centre or reference of the replicas, and a scratch copy for averages. */
typedef struct {
    uint32_t versions, predicted, centres, scratches;
} rp_layout_copies;

typedef struct {
    const rp_model *model;
    uint32_t first_layer, layer_count;
    rp_layout_tensor *tensor; /* inputs, then outputs of the layers in order */
    uint32_t input_count, tensor_count;
    uint32_t outputs[RP_CUT_TENSORS_MAX]; /* indices of the tensors that cross the upper boundary */
    uint32_t output_count;
    uint32_t *tensor_of; /* by layer of the model: index into `tensor`, or RP_NO_STORAGE */
    uint32_t data_tensor;

    rp_layout_memory value, grad;

    rp_layout_group *group;  /* partition of all layers, in order, if job->recompute */
    uint32_t group_count;    /* 0: everything is kept */
    size_t *recompute_bytes; /* for a whole op, unlike the bytes of slots and pools */
    uint32_t recompute_count;
    uint32_t *recompute_saved; /* [layer_count * RP_LAYER_SAVED_MAX]: buffer of each saved value */

    uint32_t param_first, param_count; /* range of the model's parameters */
    uint32_t *trained; /* by parameter: index among the trained ones, or RP_NOT_TRAINED */
    uint32_t trained_count;

    /* All uses, here and elsewhere, of the tied tensors that this stage trains: tensor by tensor,
     * and in the order of their layers. */
    rp_layout_use *use;
    uint32_t use_count;
    uint32_t far_count;   /* uses with a part of a slot */
    size_t tie_row_bytes; /* row that this stage sends; 0: no use elsewhere */
    bool tie_waits;       /* before an update it needs rows of other stages */
    size_t tie_far_bytes; /* the longest row that it gets */
    /* the largest tensor with uses elsewhere: memory for a total and for one term; 0: none */
    size_t tie_bytes;
    bool *repeats; /* by trained parameter: not the first use of its tensor */
    /* By trained parameter: without a flush, a use whose owner is in another stage. Its forwards
     * and backwards see the owner's values, in slots. No optimiser step changes the copy in a
     * block, which no pass reads. */
    bool *far;

    uint32_t slots; /* the most forwards in flight */
    /* Slots whose stash is on the device. If fewer than `slots`, the first leave_count parts of the
     * others are where job->offload says. */
    uint32_t stashes;
    /* of a slot: kept storages, then RP_LAYER_SAVED_MAX for each layer, then far_count */
    uint32_t part_count;
    size_t *part_bytes; /* by part; 0: unused */
    /* The used parts, sorted by how early the forward has finished with them. Earlier parts also
     * wait longer for the backward. */
    uint32_t *part_order;
    uint32_t order_count, leave_count;
    uint32_t align_bytes;
    uint32_t deferred_slots; /* most input gradients with a later weight half (split schedules) */
    size_t workspace_bytes;
    uint32_t workspace_layer;

    size_t weight_bytes;     /* trained parameters, aligned */
    size_t gradient_bytes;   /* their gradients as sent, packed */
    size_t running_bytes;    /* all other parameters, aligned */
    size_t statistics_bytes; /* running statistics, which are part of running_bytes */
    uint32_t kept;      /* copies of the statistics: one for each step that may still be skipped */
    size_t slot_bytes;  /* of one slot */
    size_t leave_bytes; /* of it, the bytes that are offloaded */
    size_t group_bytes; /* with groups: memory that all slots share; else 0 */
    size_t deferred_bytes; /* of one deferred slot */
    size_t scratch_bytes;  /* pools, targets, results, workspace */
    uint32_t state_count;  /* optimiser states of a replica, weight_bytes each */
    uint32_t replicas;     /* replicas with their own optimiser states */
    rp_layout_copies copies;
    uint32_t probe_steps; /* steps between prediction-error samples, 0 = none */
    uint32_t probes;      /* blocks for a prediction-error sample */
    uint32_t gradients;   /* gradient blocks: 1; 0 on a board that only does forwards */
    /* gradient blocks for another board's gradient, if several boards share the stage */
    uint32_t peers;
    size_t total_bytes;
    rp_codec codec[2][2];   /* as in the job */
    size_t codec_bytes;     /* largest encoded parcel; 0 = nothing is encoded */
    size_t loss_bytes;      /* largest sample that leaves encoded, decoded for its loss; 0 = none */
    size_t loss_sums_bytes; /* sums of these losses */
    size_t pixel_bytes;     /* table of values of inputs as uint8; 0 = inputs are f32 */
    /* Least size of a sample of a boundary tensor in a parcel. The host sends data of the set
     * unchanged. */
    size_t boundary_least;
} rp_layout;

/* Counts slots, deferred slots and copies of the weights. Needs no model: of the job only method,
 * cut.count, stage and sizes. errors MEMORY */
rp_err rp_layout_count(const rp_job *job, rp_layout *layout) RP_MUST_CHECK;
uint32_t rp_layout_weight_copies(const rp_layout *layout);

/* Memory for the losses of single targets; 0: a sample has only one. */
size_t rp_layout_row_result_bytes(const rp_job *job);
/* Classes whose overlap an evaluation counts, as rp_loss_call.overlap; 0: the targets of a sample
 * are not the pixels of an image, or the stage is not the last. */
uint32_t rp_layout_overlap_classes(const rp_job *job);
/* Memory for these counts. */
size_t rp_layout_overlap_bytes(const rp_job *job);

/* errors LIMIT if more than RP_CUT_TENSORS_MAX tensors cross a boundary; MEMORY */
rp_err rp_layout_make(rp_arena *arena, const rp_job *job, rp_gemm_choice gemm, uint32_t align_bytes,
                      rp_layout **out) RP_MUST_CHECK;

/* Whether two parameters of the stage are uses of one tensor, or the same parameter. */
static inline bool rp_layout_is_same_tensor(const rp_layout *layout, const rp_model *model,
                                            uint32_t param, uint32_t other) {
    return model->param[layout->param_first + param].owner ==
           model->param[layout->param_first + other].owner;
}

/* Whether the stage adds up the gradients of a tensor, whose first use has index `first`. */
static inline bool rp_layout_adds_up(const rp_layout *layout, uint32_t first, const rp_job *job) {
    return job->method.kind->flushed || layout->use[first].stage == job->stage;
}

/* Memory of the processor that offloaded stashes need. */
static inline uint64_t rp_layout_offloaded_bytes(const rp_layout *layout) {
    return (uint64_t)layout->slots * layout->leave_bytes;
}
/* The part for saved value `number` of the layer at `position`. */
static inline uint32_t rp_layout_saved_part(const rp_layout *layout, uint32_t position,
                                            uint32_t number) {
    return layout->value.kept_count + position * RP_LAYER_SAVED_MAX + number;
}
/* The least number of parts to offload so that total_bytes is at most limit_bytes; all that are
 * offloadable if that is not enough; 0 if nothing is offloaded. */
uint32_t rp_layout_leave_least(const rp_layout *layout, uint64_t limit_bytes);
/* errors LIMIT if total_bytes > limit_bytes; the message lists the sizes and the largest layer */
rp_err rp_layout_check(const rp_layout *layout, const rp_job *job,
                       size_t limit_bytes) RP_MUST_CHECK;

/* The tensors that cross the lower or upper boundary, and how a sample of each is sent. grad: only
 * those with a gradient. The executor may enlarge samples (boundary_least). */
typedef struct {
    uint32_t count;
    uint32_t tensor[RP_CUT_TENSORS_MAX];
    /* F32, which is no encoding, for token ids and for data of the set that only passes through */
    rp_codec codec[RP_CUT_TENSORS_MAX];
    rp_dtype type[RP_CUT_TENSORS_MAX];   /* of an element as sent */
    rp_shape sample[RP_CUT_TENSORS_MAX]; /* as sent, in elements of the codec's type */
    size_t bytes[RP_CUT_TENSORS_MAX];    /* of one sample */
    size_t sample_bytes;                 /* sum */
} rp_boundary_tensors;
rp_boundary_tensors rp_layout_boundary(const rp_layout *layout, bool upper, bool grad);
/* Its tensors in a step of `time` tokens (rp_model_view); 0: the longest. */
rp_boundary_tensors rp_layout_boundary_at(const rp_layout *layout, uint32_t time, bool upper,
                                          bool grad);
/* Largest tensor in a parcel that enters or leaves the stage, including targets and data. Excludes
 * the gradients of a shared stage, which only its boards exchange. */
size_t rp_layout_part_max(const rp_layout *layout, const rp_job *job);

#endif
