/* Assigns storage to the values and gradients of a stage, by their first write and last read. */
#include "nn/rounding.h"
#include "stage/layout_own.h"

static rp_err collect_uses(rp_arena *arena, const rp_job *job, const rp_layout *layout,
                           rp_use **out) {
    rp_use *use;
    rp_err err = RP_ARENA_NEW(arena, layout->tensor_count, &use);
    if (err != RP_OK) {
        return err;
    }
    for (uint32_t i = 0; i < layout->layer_count; i++) {
        uint32_t index = rp_layout_layer(layout, i);
        const rp_layer *layer = &job->model->layer[index];
        const rp_layer_plan *plan = &job->model->plan[index];
        const bool backward = job->model->wants_grad[index];
        for (uint32_t j = 0; j < layer->input_count; j++) {
            rp_use *in = &use[rp_layout_tensor_of(layout, layer->input[j])];
            in->readers++;
            in->last = i;
            in->read_in_backward |= backward && plan->needs_x;
        }
        use[layout->input_count + i].read_in_backward |= backward && plan->needs_y;
    }
    if (rp_job_is_last(job)) {
        use[layout->tensor_count - 1].read_in_backward = true; /* by the loss */
    }
    *out = use;
    return RP_OK;
}

static uint32_t new_storage(rp_layout_memory *memory, size_t bytes, int32_t birth) {
    memory->storage[memory->storage_count] = (rp_layout_storage){.sample_bytes = bytes,
                                                                 .birth = birth,
                                                                 .death = birth,
                                                                 .copy_birth = INT32_MAX,
                                                                 .copy_death = INT32_MIN};
    return memory->storage_count++;
}

static void extend_life(rp_layout_storage *storage, int32_t time) {
    storage->birth = time < storage->birth ? time : storage->birth;
    storage->death = time > storage->death ? time : storage->death;
}

/* Values: time = position of the layer in the forward; inputs are written at -1. */
static void place_values(const rp_job *job, rp_layout *layout, const rp_use *use) {
    rp_layout_memory *memory = &layout->value;
    for (uint32_t t = 0; t < layout->tensor_count; t++) {
        rp_layout_tensor *tensor = &layout->tensor[t];
        int32_t birth = tensor->input ? -1 : (int32_t)(t - layout->input_count);
        const rp_layer *layer = tensor->input ? NULL : &job->model->layer[tensor->producer];
        if (layer && layer->input_count > 0) {
            uint32_t x = rp_layout_tensor_of(layout, layer->input[0]);
            bool alone = use[x].readers == 1 && !layout->tensor[x].output;
            const rp_layer_plan *plan = &job->model->plan[tensor->producer];
            const bool read_later = use[x].read_in_backward || use[x].enters;
            if (plan->in_place && alone && (plan->same || !read_later)) {
                tensor->storage = layout->tensor[x].storage;
            }
        }
        if (tensor->storage == RP_NO_STORAGE) {
            tensor->storage = new_storage(memory, rp_layout_sample_bytes(&tensor->sample), birth);
        }
        rp_layout_storage *storage = &memory->storage[tensor->storage];
        extend_life(storage, birth);
        extend_life(storage, (int32_t)use[t].last);
        if (tensor->output || (!tensor->input && use[t].readers == 0)) {
            extend_life(storage, (int32_t)layout->layer_count);
        }
        storage->kept |= use[t].read_in_backward || use[t].enters;
    }
    for (uint32_t s = 0; s < memory->storage_count; s++) {
        memory->storage[s].recomputed = layout->group_count > 0 && memory->storage[s].kept;
    }
    for (uint32_t t = 0; t < layout->tensor_count; t++) {
        memory->storage[layout->tensor[t].storage].recomputed &= !use[t].enters;
    }
    for (uint32_t s = 0; s < memory->storage_count; s++) {
        memory->storage[s].kept &= !memory->storage[s].recomputed;
    }
}

/* Whether the tensor has the values of its layer's input, in the same memory. */
static bool is_alias(const rp_job *job, const rp_layout *layout, const rp_layout_tensor *tensor) {
    if (tensor->input || !job->model->plan[tensor->producer].same) {
        return false;
    }
    const uint32_t x = rp_layout_tensor_of(layout, job->model->layer[tensor->producer].input[0]);
    return layout->tensor[x].storage == tensor->storage;
}

/* Marks which tensors are rounded, and which kept storage ends a forward with rounded values. */
static void mark_rounded(const rp_job *job, rp_layout *layout) {
    rp_layout_memory *memory = &layout->value;
    for (uint32_t t = 0; t < layout->tensor_count && job->storage != RP_F32; t++) {
        rp_layout_tensor *tensor = &layout->tensor[t];
        rp_layout_storage *storage = &memory->storage[tensor->storage];
        const bool has_rounded = is_alias(job, layout, tensor) && storage->packed;
        tensor->rounds = !has_rounded && rp_rounds_output(job->model, tensor->producer);
        storage->packed = has_rounded || tensor->rounds;
    }
    for (uint32_t s = 0; s < memory->storage_count; s++) {
        memory->storage[s].packed &= memory->storage[s].kept;
    }
}

/* ---- copies of packed storage ---------------------------------------------------------------- */

/* The time at which a backward runs the layer at `position`, after all times of forwards. */
static int32_t backward_time(const rp_layout *layout, uint32_t position) {
    return (int32_t)(2 * layout->layer_count + 1 - position);
}

static void extend_copy(rp_layout *layout, uint32_t tensor, int32_t from, int32_t to) {
    rp_layout_storage *storage = &layout->value.storage[layout->tensor[tensor].storage];
    storage->copy_birth = from < storage->copy_birth ? from : storage->copy_birth;
    storage->copy_death = to > storage->copy_death ? to : storage->copy_death;
}

/* The backward of a layer uses copies at one time, or, in a group, from the beginning of the
 * group's recomputation to the end of its backward. */
static void live_copies(const rp_job *job, rp_layout *layout) {
    for (uint32_t i = 0, g = 0; i < layout->layer_count; i++) {
        const uint32_t index = rp_layout_layer(layout, i);
        const rp_layer *layer = &job->model->layer[index];
        const rp_layer_plan *plan = &job->model->plan[index];
        const bool groups = layout->group_count > 0;
        const bool backward = job->model->wants_grad[index];
        g += groups && layout->group[g].end == i;
        const int32_t from = backward_time(layout, groups ? layout->group[g].end - 1 : i);
        const int32_t to = backward_time(layout, groups ? layout->group[g].first : i);
        for (uint32_t j = 0; (groups || (backward && plan->needs_x)) && j < layer->input_count;
             j++) {
            extend_copy(layout, rp_layout_tensor_of(layout, layer->input[j]), from, to);
        }
        if (groups || (backward && plan->needs_y)) {
            extend_copy(layout, layout->input_count + i, from, to);
        }
    }
}

/* Gradients: time follows the backward, which runs the layer at position i at layer_count - i.
 * Gradients from outside are written at 0; those that leave are read at layer_count + 1. */
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
            uint32_t writer = rp_layout_layer(layout, use[t].last);
            uint32_t y = layout->input_count + use[t].last;
            if (job->model->plan[writer].in_place && layout->tensor[y].grad != RP_NO_STORAGE &&
                job->model->layer[writer].input[0] == tensor->producer) {
                tensor->grad = layout->tensor[y].grad;
            }
        }
        if (tensor->grad == RP_NO_STORAGE) {
            tensor->grad = new_storage(memory, rp_layout_sample_bytes(&tensor->sample), birth);
        }
        extend_life(&memory->storage[tensor->grad], birth);
        extend_life(&memory->storage[tensor->grad], death);
        if (job->method.kind->split_backward && !tensor->input &&
            rp_layer_trains(&job->model->plan[tensor->producer])) {
            memory->storage[tensor->grad].kept = true;
        }
    }
}

/* Linear scan: chooses the smallest free pool buffer that is large enough, otherwise the largest
 * free one, which then grows, otherwise a new one. */
static uint32_t pick_pool(const rp_layout_memory *memory, const int32_t *busy_until, int32_t birth,
                          size_t bytes) {
    uint32_t best = memory->pool_count;
    for (uint32_t p = 0; p < memory->pool_count; p++) {
        if (busy_until[p] >= birth) {
            continue;
        }
        if (best == memory->pool_count) {
            best = p;
            continue;
        }
        bool fits = memory->pool_bytes[p] >= bytes;
        bool best_fits = memory->pool_bytes[best] >= bytes;
        if (fits ? (!best_fits || memory->pool_bytes[p] < memory->pool_bytes[best])
                 : (!best_fits && memory->pool_bytes[p] > memory->pool_bytes[best])) {
            best = p;
        }
    }
    return best;
}

/* Takes a buffer of the pool from `birth` to `death`. */
static uint32_t take_pool(rp_layout_memory *memory, int32_t *busy_until, int32_t birth,
                          int32_t death, size_t bytes) {
    const uint32_t p = pick_pool(memory, busy_until, birth, bytes);
    memory->pool_count += p == memory->pool_count;
    memory->pool_bytes[p] = memory->pool_bytes[p] < bytes ? bytes : memory->pool_bytes[p];
    busy_until[p] = death;
    return p;
}

static void place_storage(rp_layout_memory *memory, int32_t *busy_until, int32_t time,
                          rp_layout_storage *storage) {
    const size_t bytes = storage->sample_bytes;
    if (storage->birth == time && storage->kept) {
        storage->buffer = memory->kept_count++;
        memory->kept_bytes[storage->buffer] = rp_layout_kept_bytes(storage);
    }
    if (storage->birth == time && storage->packed) {
        storage->copy[0] = take_pool(memory, busy_until, time, storage->death, bytes);
    }
    if (storage->copy_birth == time && storage->packed) {
        storage->copy[1] = take_pool(memory, busy_until, time, storage->copy_death, bytes);
    }
    if (storage->birth == time && !storage->kept) {
        storage->buffer = take_pool(memory, busy_until, time, storage->death, bytes);
    }
}

/* A recomputation, from `again` on, writes to all pool buffers that a forward uses. */
static rp_err place_buffers(rp_arena *arena, rp_layout_memory *memory, int32_t time_max,
                            int32_t again) {
    int32_t *busy_until;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(arena, 2 * memory->storage_count + 1, &busy_until));
    RP_TRY(RP_ARENA_NEW(arena, memory->storage_count + 1, &memory->kept_bytes));
    RP_TRY(RP_ARENA_NEW(arena, 2 * memory->storage_count + 1, &memory->pool_bytes));
    for (int32_t time = -1; time <= time_max; time++) {
        for (uint32_t p = 0; p < memory->pool_count && time == again; p++) {
            busy_until[p] = INT32_MAX;
        }
        for (uint32_t s = 0; s < memory->storage_count; s++) {
            if (!memory->storage[s].recomputed) {
                place_storage(memory, busy_until, time, &memory->storage[s]);
            }
        }
    }
fail:
    return err;
}

rp_err rp_layout_place(rp_arena *arena, const rp_job *job, rp_layout *layout) {
    const int32_t layers = (int32_t)layout->layer_count;
    rp_use *use;
    rp_err err;
    RP_TRY(collect_uses(arena, job, layout, &use));
    RP_TRY(rp_layout_open_groups(arena, job, layout, use));
    RP_TRY(RP_ARENA_NEW(arena, layout->tensor_count, &layout->value.storage));
    RP_TRY(RP_ARENA_NEW(arena, layout->tensor_count, &layout->grad.storage));
    place_values(job, layout, use);
    mark_rounded(job, layout);
    if (job->role != RP_ROLE_FORWARD) {
        place_grads(job, layout, use);
        live_copies(job, layout);
    }
    RP_TRY(place_buffers(arena, &layout->value, backward_time(layout, 0),
                         layout->group_count ? layers + 1 : INT32_MAX));
    RP_TRY(place_buffers(arena, &layout->grad, layers + 1, INT32_MAX));
    RP_TRY(rp_layout_place_groups(arena, job, layout, use));
fail:
    return err;
}
