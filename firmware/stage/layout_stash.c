/* The parts of a slot, and which of them are offloaded. */
#include "stage/layout_own.h"

/* Inserts a part after all parts that the forward has finished with earlier or at the same time. */
static void add_part(rp_layout *layout, int32_t *done_at, uint32_t part, size_t bytes,
                     int32_t done) {
    uint32_t at = layout->order_count++;
    for (; at > 0 && done_at[at - 1] > done; at--) {
        layout->part_order[at] = layout->part_order[at - 1];
        done_at[at] = done_at[at - 1];
    }
    layout->part_order[at] = part;
    layout->part_bytes[part] = bytes;
    done_at[at] = done;
}

static void add_parts(const rp_job *job, rp_layout *layout, int32_t *done_at) {
    const size_t slot = rp_job_slot_samples(job);
    for (uint32_t s = 0; s < layout->value.storage_count; s++) {
        const rp_layout_storage *storage = &layout->value.storage[s];
        if (storage->kept) {
            add_part(layout, done_at, storage->buffer, rp_layout_kept_bytes(storage) * slot,
                     storage->death);
        }
    }
    for (uint32_t i = 0; i < layout->layer_count; i++) {
        const uint32_t index = rp_layout_layer(layout, i);
        const rp_layer_plan *plan = &job->model->plan[index];
        const bool saves = job->model->wants_grad[index] && layout->group_count == 0;
        for (uint32_t s = 0; saves && s < plan->saved_count; s++) {
            add_part(layout, done_at, rp_layout_saved_part(layout, i, s),
                     plan->saved[s].fixed_bytes + plan->saved[s].sample_bytes * slot, (int32_t)i);
        }
    }
}

/* Values of tied tensors, which the backward also reads. */
static void add_far_uses(rp_layout *layout, int32_t *done_at) {
    const uint32_t first = layout->part_count - layout->far_count;
    for (uint32_t i = 0; i < layout->use_count; i++) {
        rp_layout_use *use = &layout->use[i];
        if (use->part != RP_NO_STORAGE) {
            use->part += first;
            add_part(layout, done_at, use->part, use->count * sizeof(float), INT32_MAX);
        }
    }
}

rp_err rp_layout_part_stash(rp_arena *arena, const rp_job *job, rp_layout *layout, uint32_t align) {
    int32_t *done_at;
    rp_err err;
    layout->align_bytes = align;
    layout->part_count = rp_layout_saved_part(layout, layout->layer_count, 0) + layout->far_count;
    RP_TRY(RP_ARENA_NEW(arena, layout->part_count + 1, &layout->part_bytes));
    RP_TRY(RP_ARENA_NEW(arena, layout->part_count + 1, &layout->part_order));
    RP_TRY(RP_ARENA_NEW(arena, layout->part_count + 1, &done_at));
    add_parts(job, layout, done_at);
    add_far_uses(layout, done_at);
    if (layout->order_count == 0) {
        layout->stashes = layout->slots;
    }
    if (layout->stashes < layout->slots) {
        const bool some = job->leave_tensors > 0 && job->leave_tensors < layout->order_count;
        layout->leave_count = some ? job->leave_tensors : layout->order_count;
    }
    for (uint32_t i = 0; i < layout->order_count; i++) {
        const size_t bytes = rp_darena_round(layout->part_bytes[layout->part_order[i]], align);
        layout->slot_bytes += bytes;
        layout->leave_bytes += i < layout->leave_count ? bytes : 0;
    }
fail:
    return err;
}

uint32_t rp_layout_leave_least(const rp_layout *layout, uint64_t limit_bytes) {
    const uint64_t away = layout->slots - layout->stashes;
    uint64_t bytes =
        layout->total_bytes + away * layout->leave_bytes; /* total if nothing were offloaded */
    uint32_t count = 0;
    while (count < layout->leave_count && (count == 0 || bytes > limit_bytes)) {
        const size_t own = layout->part_bytes[layout->part_order[count++]];
        bytes -= away * rp_darena_round(own, layout->align_bytes);
    }
    return count;
}
