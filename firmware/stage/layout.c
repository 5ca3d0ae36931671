#include "stage/layout.h"

#include <string.h>

#include "stage/slots.h"

static uint32_t layer_of(const rp_layout *layout, uint32_t position) {
    return layout->first_layer + position;
}

static uint32_t tensor_of(const rp_layout *layout, uint32_t producer) {
    return producer == RP_LAYER_DATA ? layout->data_tensor : layout->tensor_of[producer];
}

static size_t sample_bytes(const rp_shape *sample) {
    return rp_shape_count(sample) * sizeof(float);
}

/* Does anything trained lie at or above this layer? */
static rp_err find_trained(rp_arena *arena, const rp_model *model, bool **out) {
    bool *trained;
    rp_err err = RP_ARENA_NEW(arena, model->layer_count, &trained);
    if (err != RP_OK) {
        return err;
    }
    for (uint32_t i = 0; i < model->layer_count; i++) {
        const rp_layer_plan *plan = &model->plan[i];
        for (uint32_t p = 0; p < plan->param_count; p++) {
            trained[i] |= plan->param[p].role == RP_PARAM_TRAINED;
        }
        for (uint32_t j = 0; j < model->layer[i].input_count; j++) {
            uint32_t from = model->layer[i].input[j];
            trained[i] |= from != RP_LAYER_DATA && trained[from];
        }
    }
    *out = trained;
    return RP_OK;
}

static void add_tensor(rp_layout *layout, uint32_t producer, const rp_shape *sample,
                       const bool *trained, bool input) {
    rp_layout_tensor *tensor = &layout->tensor[layout->tensor_count];
    *tensor = (rp_layout_tensor){
        .producer = producer,
        .sample = *sample,
        .input = input,
        .wants_grad = producer != RP_LAYER_DATA && trained[producer],
        .storage = RP_NO_STORAGE,
        .grad = RP_NO_STORAGE,
    };
    if (producer == RP_LAYER_DATA) {
        layout->data_tensor = layout->tensor_count;
    } else {
        layout->tensor_of[producer] = layout->tensor_count;
    }
    layout->tensor_count++;
}

static rp_err collect_tensors(rp_arena *arena, const rp_job *job, rp_layout *layout) {
    const rp_model *model = job->model;
    rp_err err;
    bool *trained;
    rp_boundary boundary = {.count = 1, .producer = {RP_LAYER_DATA}};
    RP_TRY(find_trained(arena, model, &trained));
    RP_TRY(RP_ARENA_NEW(arena, layout->layer_count + RP_CUT_TENSORS_MAX, &layout->tensor));
    RP_TRY(RP_ARENA_NEW(arena, model->layer_count, &layout->tensor_of));
    memset(layout->tensor_of, 0xff, model->layer_count * sizeof *layout->tensor_of);
    layout->data_tensor = RP_NO_STORAGE;
    if (job->stage > 0) {
        RP_TRY(rp_cut_boundary(model, &job->cut, job->stage, &boundary));
    }
    for (uint32_t i = 0; i < boundary.count; i++) {
        uint32_t producer = boundary.producer[i];
        add_tensor(layout, producer, rp_model_shape(model, producer), trained, true);
    }
    layout->input_count = boundary.count;
    for (uint32_t i = 0; i < layout->layer_count; i++) {
        uint32_t layer = layer_of(layout, i);
        add_tensor(layout, layer, &model->plan[layer].out, trained, false);
    }
    if (!rp_job_is_last(job)) {
        RP_TRY(rp_cut_boundary(model, &job->cut, job->stage + 1, &boundary));
        for (uint32_t i = 0; i < boundary.count; i++) {
            layout->outputs[i] = tensor_of(layout, boundary.producer[i]);
            layout->tensor[layout->outputs[i]].output = true;
        }
        layout->output_count = boundary.count;
    }
fail:
    return err;
}

/* ---- lifetimes ------------------------------------------------------------------------------- */

typedef struct {
    uint32_t readers;      /* layers of this stage that take it as input */
    uint32_t last;         /* position of the last of them */
    bool read_in_backward; /* by a reader (needs_x) or its producer (needs_y) */
} rp_use;

static rp_err collect_uses(rp_arena *arena, const rp_job *job, const rp_layout *layout,
                           rp_use **out) {
    rp_use *use;
    rp_err err = RP_ARENA_NEW(arena, layout->tensor_count, &use);
    if (err != RP_OK) {
        return err;
    }
    for (uint32_t i = 0; i < layout->layer_count; i++) {
        uint32_t index = layer_of(layout, i);
        const rp_layer *layer = &job->model->layer[index];
        const rp_layer_plan *plan = &job->model->plan[index];
        for (uint32_t j = 0; j < layer->input_count; j++) {
            rp_use *in = &use[tensor_of(layout, layer->input[j])];
            in->readers++;
            in->last = i;
            in->read_in_backward |= plan->needs_x;
        }
        use[layout->input_count + i].read_in_backward |= plan->needs_y;
    }
    if (rp_job_is_last(job)) {
        use[layout->tensor_count - 1].read_in_backward = true; /* by the loss */
    }
    *out = use;
    return RP_OK;
}

static uint32_t new_storage(rp_layout_memory *memory, size_t bytes, int32_t birth) {
    memory->storage[memory->storage_count] =
        (rp_layout_storage){.sample_bytes = bytes, .birth = birth, .death = birth};
    return memory->storage_count++;
}

static void extend_life(rp_layout_storage *storage, int32_t time) {
    storage->birth = time < storage->birth ? time : storage->birth;
    storage->death = time > storage->death ? time : storage->death;
}

/* Values: time = position of the layer in the forward; inputs are born at -1. */
static void place_values(const rp_job *job, rp_layout *layout, const rp_use *use) {
    rp_layout_memory *memory = &layout->value;
    for (uint32_t t = 0; t < layout->tensor_count; t++) {
        rp_layout_tensor *tensor = &layout->tensor[t];
        int32_t birth = tensor->input ? -1 : (int32_t)(t - layout->input_count);
        if (!tensor->input) {
            const rp_layer *layer = &job->model->layer[tensor->producer];
            uint32_t x = tensor_of(layout, layer->input[0]);
            bool alone = use[x].readers == 1 && !layout->tensor[x].output;
            const rp_layer_plan *plan = &job->model->plan[tensor->producer];
            if (plan->in_place && alone && (plan->same || !use[x].read_in_backward)) {
                tensor->storage = layout->tensor[x].storage;
            }
        }
        if (tensor->storage == RP_NO_STORAGE) {
            tensor->storage = new_storage(memory, sample_bytes(&tensor->sample), birth);
        }
        rp_layout_storage *storage = &memory->storage[tensor->storage];
        extend_life(storage, birth);
        extend_life(storage, (int32_t)use[t].last);
        if (tensor->output || (!tensor->input && use[t].readers == 0)) {
            extend_life(storage, (int32_t)layout->layer_count);
        }
        storage->kept |= use[t].read_in_backward;
    }
}

/* Gradients: time runs with the backward, layer at position i works at layer_count - i; what comes
 * from outside is born at 0, what leaves lives to layer_count + 1. */
static void place_grads(const rp_job *job, rp_layout *layout, const rp_use *use) {
    rp_layout_memory *memory = &layout->grad;
    const int32_t count = (int32_t)layout->layer_count;
    for (uint32_t t = layout->tensor_count; t-- > 0;) {
        rp_layout_tensor *tensor = &layout->tensor[t];
        bool outside = tensor->output || use[t].readers == 0;
        if (!tensor->wants_grad) {
            continue;
        }
        tensor->grad_first = outside ? layout->layer_count : use[t].last;
        int32_t birth = count - (int32_t)tensor->grad_first;
        int32_t death = tensor->input ? count + 1 : count - (int32_t)(t - layout->input_count);
        if (!outside) {
            uint32_t writer = layer_of(layout, use[t].last);
            uint32_t y = layout->input_count + use[t].last;
            if (job->model->plan[writer].in_place && layout->tensor[y].grad != RP_NO_STORAGE &&
                job->model->layer[writer].input[0] == tensor->producer) {
                tensor->grad = layout->tensor[y].grad;
            }
        }
        if (tensor->grad == RP_NO_STORAGE) {
            tensor->grad = new_storage(memory, sample_bytes(&tensor->sample), birth);
        }
        extend_life(&memory->storage[tensor->grad], birth);
        extend_life(&memory->storage[tensor->grad], death);
        if (job->method.kind->split_backward && !tensor->input &&
            job->model->plan[tensor->producer].param_count > 0) {
            memory->storage[tensor->grad].kept = true;
        }
    }
}

/* Linear scan: a scratch storage takes the smallest free pool buffer that is large enough, else
 * grows the largest free one, else opens another. */
static uint32_t pick_pool(const rp_layout_memory *memory, const int32_t *busy_until,
                          const rp_layout_storage *storage) {
    uint32_t best = memory->pool_count;
    for (uint32_t p = 0; p < memory->pool_count; p++) {
        if (busy_until[p] >= storage->birth) {
            continue;
        }
        if (best == memory->pool_count) {
            best = p;
            continue;
        }
        bool fits = memory->pool_bytes[p] >= storage->sample_bytes;
        bool best_fits = memory->pool_bytes[best] >= storage->sample_bytes;
        if (fits ? (!best_fits || memory->pool_bytes[p] < memory->pool_bytes[best])
                 : (!best_fits && memory->pool_bytes[p] > memory->pool_bytes[best])) {
            best = p;
        }
    }
    return best;
}

static rp_err place_buffers(rp_arena *arena, rp_layout_memory *memory, int32_t time_max) {
    int32_t *busy_until;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(arena, memory->storage_count + 1, &busy_until));
    RP_TRY(RP_ARENA_NEW(arena, memory->storage_count + 1, &memory->kept_bytes));
    RP_TRY(RP_ARENA_NEW(arena, memory->storage_count + 1, &memory->pool_bytes));
    for (int32_t time = -1; time <= time_max; time++) {
        for (uint32_t s = 0; s < memory->storage_count; s++) {
            rp_layout_storage *storage = &memory->storage[s];
            if (storage->birth != time) {
                continue;
            }
            if (storage->kept) {
                storage->buffer = memory->kept_count++;
                memory->kept_bytes[storage->buffer] = storage->sample_bytes;
                continue;
            }
            uint32_t p = pick_pool(memory, busy_until, storage);
            memory->pool_count += p == memory->pool_count;
            if (memory->pool_bytes[p] < storage->sample_bytes) {
                memory->pool_bytes[p] = storage->sample_bytes;
            }
            busy_until[p] = storage->death;
            storage->buffer = p;
        }
    }
fail:
    return err;
}

/* ---- counts and bytes ------------------------------------------------------------------------ */

/* Microbatches, and so steps at most, that the first stage, which is furthest ahead, may have begun
 * and not finished, where replicas or versions hold it back no further. */
static uint32_t steps_open_max(const rp_job *job) {
    rp_sched_shape first = rp_job_sched_shape(job, 0, job->steps);
    first.stage = 0;
    first.steps_open = 0;
    return job->method.kind->flushed ? 1 : rp_sched_in_flight(job->method.kind, &first);
}

/* As much of the job as shows all slots and versions: pipes that fill, full steps until nothing new
 * comes, and the end of an epoch, where a short step lets more steps into the pipes. Of a long
 * epoch the steps in its middle are left out, for they are all alike. */
static rp_job walked_job(const rp_job *job) {
    rp_job out = *job;
    const rp_sched_shape shape = rp_job_sched_shape(job, 0, job->steps);
    const uint64_t epoch = rp_sched_epoch_steps(&shape);
    const uint64_t open = steps_open_max(job);
    const uint64_t enough = 2 * (open + (uint64_t)RP_REPLICAS_MAX) + 2;
    if (epoch > enough && job->steps >= epoch) {
        out.epoch_samples -= (epoch - enough) * job->batch;
        out.steps -= epoch - enough;
    }
    out.steps = out.steps < 2 * enough ? out.steps : 2 * enough;
    return out;
}

static void take_or_add(rp_slots *slots, const rp_op *op) {
    if (rp_slots_take(slots, op, false) == RP_NO_SLOT) {
        slots->count++; /* there is room for one a forward */
        (void)rp_slots_take(slots, op, false);
    }
}

static void release_slots(rp_slots *slots, const rp_op *op) {
    const rp_stash stash = rp_slots_find(slots, op, false);
    RP_ASSERT(stash.slot != RP_NO_SLOT);
    rp_slots_release(slots, stash.slot, op);
}

static void walk_slots(rp_slots *slots, rp_slots *deferred, const rp_op *op) {
    switch (op->kind) {
    case RP_OP_FORWARD:
        take_or_add(slots, op);
        break;
    case RP_OP_BACKWARD_INPUT:
        take_or_add(deferred, op);
        break;
    case RP_OP_BACKWARD_WEIGHT:
        release_slots(deferred, op);
        release_slots(slots, op);
        break;
    case RP_OP_BACKWARD:
        release_slots(slots, op);
        break;
    default:
        break;
    }
}

/* Slots, deferred ones too, by walking this stage's own op list with the bookkeeping of the
 * stage. */
static rp_err count_slots(const rp_job *job, rp_layout *layout) {
    const rp_sched_kind *kind = job->method.kind;
    const rp_sched_shape shape = rp_job_sched_shape(job, 0, job->steps);
    rp_slots slots = {.count = 1};
    rp_slots deferred = {.count = kind->split_backward};
    rp_sched_state state;
    rp_arena arena;
    size_t forwards = 1;
    rp_op op;
    rp_err err;
    rp_arena_init(&arena, "slots", 0);
    for (rp_sched_start(&state, &shape); rp_sched_next_of_stage(kind, &state, &op);) {
        forwards += op.kind == RP_OP_FORWARD || op.kind == RP_OP_BACKWARD_INPUT;
    }
    RP_TRY(RP_ARENA_NEW(&arena, forwards, &slots.slot));
    RP_TRY(RP_ARENA_NEW(&arena, forwards, &deferred.slot));
    for (rp_sched_start(&state, &shape); rp_sched_next_of_stage(kind, &state, &op);) {
        walk_slots(&slots, &deferred, &op);
    }
    layout->slots = slots.count;
    layout->deferred_slots = deferred.count;
fail:
    rp_arena_finish(&arena);
    return err;
}

/* Copies of the weights, by walking the same list with the bookkeeping of the stage. */
static rp_err count_versions(const rp_job *job, rp_layout *layout) {
    const rp_method *method = &job->method;
    rp_arena arena;
    rp_versions versions;
    rp_op op;
    rp_err err;
    rp_arena_init(&arena, "versions", 0);
    RP_TRY(rp_versions_open(&arena, job, layout->slots, &versions));
    uint32_t ahead = rp_versions_ahead_max(&versions);
    for (rp_sched_state list = versions.list; rp_sched_next_of_stage(method->kind, &list, &op);) {
        if (op.kind == RP_OP_FORWARD) {
            ahead |= rp_versions_forward(&versions, &op).ahead; /* exact: at a short step */
        } else if (op.kind == RP_OP_UPDATE) {
            (void)rp_versions_update(&versions, &op);
        } else {
            (void)rp_versions_backward(&versions, &op);
        }
    }
    layout->versions = versions.block_count;
    layout->replicas = versions.replicas;
    layout->predicted = method->weights == RP_WEIGHTS_XPIPE ? 2 : ahead > 0 ? 1 : 0;
    /* one probe at a time: the next begins when the last has met its backward */
    const uint32_t least = steps_open_max(job);
    layout->probe_steps = method->probe == 0 || method->probe > least ? method->probe : least;
    layout->probes = layout->probe_steps > 0 ? 2 : 0;
    layout->centres = method->kind->average != RP_AVERAGE_NONE;
    layout->scratches = method->before || method->kind->average == RP_AVERAGE_REFERENCE ||
                        method->evaluate == RP_EVALUATE_MEAN;
fail:
    rp_arena_finish(&arena);
    return err;
}

rp_err rp_layout_count(const rp_job *job, rp_layout *layout) {
    const rp_job walked = walked_job(job);
    rp_err err = count_slots(&walked, layout);
    return err == RP_OK ? count_versions(&walked, layout) : err;
}

uint32_t rp_layout_weight_copies(const rp_layout *layout) {
    return layout->versions + layout->predicted + layout->centres + layout->scratches;
}

static rp_err count_params(rp_arena *arena, const rp_job *job, rp_layout *layout, uint32_t align) {
    const rp_model *model = job->model;
    layout->param_first = model->param_first[layout->first_layer];
    layout->param_count =
        model->param_first[layout->first_layer + layout->layer_count] - layout->param_first;
    rp_err err = RP_ARENA_NEW(arena, layout->param_count + 1, &layout->trained);
    for (uint32_t i = 0; err == RP_OK && i < layout->param_count; i++) {
        const rp_model_param *param = &model->param[layout->param_first + i];
        const size_t bytes = rp_darena_round(sample_bytes(&param->shape), align);
        const bool trained = param->role == RP_PARAM_TRAINED;
        layout->trained[i] = trained ? layout->trained_count++ : RP_NOT_TRAINED;
        *(trained ? &layout->weight_bytes : &layout->running_bytes) += bytes;
    }
    layout->state_count = job->optim.kind->state_count(&job->optim);
    return err;
}

/* The ends of the op list: labels, losses, and the norms of the gradients. */
static void count_ends(const rp_job *job, rp_layout *layout, uint32_t align) {
    const uint32_t trained = layout->trained_count;
    layout->scratch_bytes += rp_darena_round((2 * (size_t)trained + 2) * sizeof(uint32_t), align);
    const uint32_t sums = 1 + (layout->probes ? RP_PROBE_NORMS : 0);
    layout->scratch_bytes +=
        sums * rp_darena_round(rp_grad_sumsq_bytes(layout->weight_bytes, trained), align);
    if (layout->probe_steps) {
        layout->scratch_bytes += rp_darena_round(((size_t)trained + 1) * sizeof(float), align);
    }
    if (rp_job_is_last(job)) {
        size_t width = job->loss->class_target ? 1 : job->target_width;
        layout->scratch_bytes += rp_darena_round(width * job->micro * sizeof(float), align);
        layout->scratch_bytes += rp_darena_round(2 * (size_t)job->batch * sizeof(float), align);
    }
}

static void count_scratch(const rp_job *job, rp_layout *layout, rp_gemm_choice gemm,
                          uint32_t align) {
    const rp_model *model = job->model;
    for (uint32_t i = 0; i < layout->layer_count; i++) {
        uint32_t index = layer_of(layout, i);
        const rp_layer *layer = &model->layer[index];
        const rp_layer_plan *plan = &model->plan[index];
        size_t work =
            layer->kind->workspace_bytes
                ? layer->kind->workspace_bytes(layer, plan, model->in[index], job->micro, gemm)
                : 0;
        if (work > layout->workspace_bytes) {
            layout->workspace_bytes = work;
            layout->workspace_layer = index;
        }
        for (uint32_t s = 0; s < plan->saved_count; s++) {
            layout->slot_bytes += rp_darena_round(
                plan->saved[s].fixed_bytes + job->micro * plan->saved[s].sample_bytes, align);
        }
    }
    for (uint32_t i = 0; i < layout->value.kept_count; i++) {
        layout->slot_bytes += rp_darena_round(layout->value.kept_bytes[i] * job->micro, align);
    }
    for (uint32_t i = 0; i < layout->grad.kept_count; i++) {
        layout->deferred_bytes += rp_darena_round(layout->grad.kept_bytes[i] * job->micro, align);
    }
    for (uint32_t i = 0; i < layout->value.pool_count; i++) {
        layout->scratch_bytes += rp_darena_round(layout->value.pool_bytes[i] * job->micro, align);
    }
    for (uint32_t i = 0; i < layout->grad.pool_count; i++) {
        layout->scratch_bytes += rp_darena_round(layout->grad.pool_bytes[i] * job->micro, align);
    }
    layout->scratch_bytes += rp_darena_round(layout->workspace_bytes, align);
}

rp_err rp_layout_make(rp_arena *arena, const rp_job *job, rp_gemm_choice gemm, uint32_t align_bytes,
                      rp_layout **out) {
    rp_err err;
    rp_layout *layout;
    rp_use *use;
    RP_TRY(RP_ARENA_NEW(arena, 1, &layout));
    layout->first_layer = job->cut.first[job->stage];
    layout->layer_count = job->cut.first[job->stage + 1] - layout->first_layer;
    RP_TRY(collect_tensors(arena, job, layout));
    RP_TRY(collect_uses(arena, job, layout, &use));
    RP_TRY(RP_ARENA_NEW(arena, layout->tensor_count, &layout->value.storage));
    RP_TRY(RP_ARENA_NEW(arena, layout->tensor_count, &layout->grad.storage));
    place_values(job, layout, use);
    place_grads(job, layout, use);
    RP_TRY(place_buffers(arena, &layout->value, (int32_t)layout->layer_count));
    RP_TRY(place_buffers(arena, &layout->grad, (int32_t)layout->layer_count + 1));
    RP_TRY(rp_layout_count(job, layout));
    RP_TRY(count_params(arena, job, layout, align_bytes));
    count_ends(job, layout, align_bytes);
    count_scratch(job, layout, gemm, align_bytes);
    uint32_t flat = 1 + rp_layout_weight_copies(layout) + layout->probes +
                    layout->replicas * layout->state_count;
    layout->total_bytes = layout->weight_bytes * flat + layout->running_bytes +
                          layout->slots * layout->slot_bytes +
                          layout->deferred_slots * layout->deferred_bytes + layout->scratch_bytes;
    *out = layout;
fail:
    return err;
}

/* The layer whose output costs most in the slots, to name it in a refusal. */
static uint32_t largest_layer(const rp_layout *layout) {
    uint32_t best = layout->input_count;
    for (uint32_t t = layout->input_count; t < layout->tensor_count; t++) {
        if (sample_bytes(&layout->tensor[t].sample) > sample_bytes(&layout->tensor[best].sample)) {
            best = t;
        }
    }
    return layout->tensor[best].producer;
}

rp_err rp_layout_check(const rp_layout *layout, const rp_job *job, size_t limit_bytes) {
    if (layout->total_bytes <= limit_bytes) {
        return RP_OK;
    }
    const double mib = 1.0 / (1 << 20);
    uint32_t layer = largest_layer(layout);
    return rp_fail(RP_ERR_LIMIT,
                   "stage %u needs %.1f MiB of device memory and may have %.1f: %u copies of the "
                   "weights of %.1f, "
                   "gradients %.1f, optimiser %.1f, %u slots of %.1f, scratch %.1f; the largest "
                   "activation is %s's, %.2f MiB "
                   "a microbatch of %u. Use smaller microbatches, another schedule or more stages",
                   job->stage, (double)layout->total_bytes * mib, (double)limit_bytes * mib,
                   rp_layout_weight_copies(layout) + layout->probes,
                   (double)layout->weight_bytes * mib, (double)layout->weight_bytes * mib,
                   (double)(layout->weight_bytes * layout->state_count * layout->replicas) * mib,
                   layout->slots, (double)layout->slot_bytes * mib,
                   (double)layout->scratch_bytes * mib, job->model->layer[layer].name,
                   (double)(sample_bytes(&job->model->plan[layer].out) * job->micro) * mib,
                   job->micro);
}

/* One sample of a boundary tensor as it travels. */
static rp_shape parcel_shape(const rp_layout *layout, uint32_t tensor) {
    const bool data = layout->tensor[tensor].producer == RP_LAYER_DATA;
    return layout->boundary_floats && !data ? rp_shape_1(layout->boundary_floats)
                                            : layout->tensor[tensor].sample;
}

rp_boundary_tensors rp_layout_boundary(const rp_layout *layout, bool upper, bool grad) {
    rp_boundary_tensors out = {0};
    uint32_t count = upper ? layout->output_count : layout->input_count;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t t = upper ? layout->outputs[i] : i;
        if (grad && !layout->tensor[t].wants_grad) {
            continue;
        }
        out.tensor[out.count] = t;
        out.sample[out.count] = parcel_shape(layout, t);
        out.bytes[out.count] = sample_bytes(&out.sample[out.count]);
        out.sample_bytes += out.bytes[out.count++];
    }
    return out;
}

size_t rp_layout_part_max(const rp_layout *layout, const rp_job *job) {
    size_t most = (size_t)job->batch * job->target_width * sizeof(float);
    for (uint32_t t = 0; t < layout->tensor_count; t++) {
        const bool crosses = layout->tensor[t].input || layout->tensor[t].output;
        const rp_shape shape = parcel_shape(layout, t);
        const size_t bytes = crosses ? sample_bytes(&shape) * job->micro : 0;
        most = bytes > most ? bytes : most;
    }
    return most;
}
