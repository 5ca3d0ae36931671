/* Groups of layers whose forward is recomputed for their backward. The inputs of groups stay in the
 * slot. Everything else that the backward reads is in buffers that all groups share, because only
 * one group is recomputed at a time. */
#include "stage/layout_own.h"

static uint32_t group_of(const rp_layout *layout, uint32_t position) {
    uint32_t g = 0;
    while (layout->group[g].end <= position) {
        g++;
    }
    return g;
}

/* The group of a tensor's producer; group_count: it comes from outside the stage. */
static uint32_t group_of_tensor(const rp_layout *layout, uint32_t tensor) {
    return tensor < layout->input_count ? layout->group_count
                                        : group_of(layout, tensor - layout->input_count);
}

static void mark_what_enters(const rp_job *job, const rp_layout *layout, rp_use *use) {
    for (uint32_t i = 0; i < layout->layer_count; i++) {
        const uint32_t index = rp_layout_layer(layout, i);
        const rp_layer *layer = &job->model->layer[index];
        for (uint32_t j = 0; j < layer->input_count; j++) {
            const uint32_t x = rp_layout_tensor_of(layout, layer->input[j]);
            use[x].enters |= group_of_tensor(layout, x) != group_of(layout, i);
            /* both share storage, which must not be overwritten */
            use[layout->input_count + i].enters |= job->model->plan[index].same && use[x].enters;
        }
    }
    if (rp_job_is_last(job)) {
        use[layout->tensor_count - 1].enters = true;
    }
}

rp_err rp_layout_open_groups(rp_arena *arena, const rp_job *job, rp_layout *layout, rp_use *use) {
    rp_err err;
    if (!job->recompute) {
        return RP_OK;
    }
    RP_TRY(RP_ARENA_NEW(arena, layout->layer_count, &layout->group));
    for (uint32_t i = 0; i < layout->layer_count; i++) {
        const bool begins = job->group_begins && job->group_begins[rp_layout_layer(layout, i)];
        if (i == 0 || begins) {
            layout->group[layout->group_count++] = (rp_layout_group){.first = i};
        }
        layout->group[layout->group_count - 1].end = i + 1;
    }
    mark_what_enters(job, layout, use);
fail:
    return err;
}

/* ---- recomputed layers ----------------------------------------------------------------------- */

static rp_layout_storage *storage_of(const rp_layout *layout, uint32_t position) {
    const rp_layout_tensor *y = &layout->tensor[layout->input_count + position];
    return &layout->value.storage[y->storage];
}

static uint32_t saved_count(const rp_job *job, const rp_layout *layout, uint32_t position) {
    const uint32_t index = rp_layout_layer(layout, position);
    return job->model->wants_grad[index] ? job->model->plan[index].saved_count : 0;
}

/* Whether a layer from `end` on overwrites kept storage that an earlier layer of the group has
 * written. Then recomputation must continue up to *until. */
static bool is_half_written(const rp_job *job, const rp_layout *layout,
                            const rp_layout_group *group, uint32_t end, uint32_t *until) {
    for (uint32_t q = group->end; q-- > end;) {
        const bool writes = !job->model->plan[rp_layout_layer(layout, q)].same;
        for (uint32_t p = group->first; writes && p < end; p++) {
            if (storage_of(layout, p) == storage_of(layout, q) && storage_of(layout, q)->kept) {
                *until = q + 1;
                return true;
            }
        }
    }
    return false;
}

static uint32_t recompute_end(const rp_job *job, const rp_layout *layout, const rp_use *use,
                              const rp_layout_group *group) {
    uint32_t end = group->first;
    for (uint32_t i = group->first; i < group->end; i++) {
        const bool is_read = use[layout->input_count + i].read_in_backward;
        if ((is_read && storage_of(layout, i)->recomputed) || saved_count(job, layout, i) > 0) {
            end = i + 1;
        }
    }
    while (is_half_written(job, layout, group, end, &end)) {
    }
    return end;
}

/* ---- buffers --------------------------------------------------------------------------------- */

typedef struct {
    size_t bytes;
    uint32_t *buffer; /* where its index is stored */
} item;

/* Inserts an item; items are sorted by size, largest first. */
static void add_item(item *items, uint32_t *count, size_t bytes, uint32_t *buffer) {
    uint32_t at = (*count)++;
    for (; at > 0 && items[at - 1].bytes < bytes; at--) {
        items[at] = items[at - 1];
    }
    items[at] = (item){bytes, buffer};
}

static uint32_t collect_items(const rp_job *job, rp_layout *layout, const rp_layout_group *group,
                              item *items) {
    const size_t pass = rp_job_pass_samples(job);
    uint32_t count = 0;
    for (uint32_t i = group->first; i < group->end; i++) {
        const rp_layer_plan *plan = &job->model->plan[rp_layout_layer(layout, i)];
        rp_layout_storage *storage = storage_of(layout, i);
        if (storage->recomputed && storage->buffer == RP_NO_STORAGE) {
            storage->buffer = 0;
            add_item(items, &count, storage->sample_bytes * pass, &storage->buffer);
        }
        for (uint32_t s = 0; s < saved_count(job, layout, i); s++) {
            add_item(items, &count, plan->saved[s].fixed_bytes + plan->saved[s].sample_bytes * pass,
                     &layout->recompute_saved[i * RP_LAYER_SAVED_MAX + s]);
        }
    }
    return count;
}

rp_err rp_layout_place_groups(rp_arena *arena, const rp_job *job, rp_layout *layout,
                              const rp_use *use) {
    const size_t most = (size_t)layout->layer_count * (1 + RP_LAYER_SAVED_MAX);
    item *items;
    rp_err err;
    if (layout->group_count == 0) {
        return RP_OK;
    }
    RP_TRY(RP_ARENA_NEW(arena, most, &items));
    RP_TRY(RP_ARENA_NEW(arena, most, &layout->recompute_bytes));
    RP_TRY(RP_ARENA_NEW(arena, most, &layout->recompute_saved));
    for (uint32_t s = 0; s < layout->value.storage_count; s++) {
        rp_layout_storage *storage = &layout->value.storage[s];
        storage->buffer = storage->recomputed ? RP_NO_STORAGE : storage->buffer;
    }
    for (uint32_t g = 0; g < layout->group_count; g++) {
        layout->group[g].recompute_end = recompute_end(job, layout, use, &layout->group[g]);
        const uint32_t count = collect_items(job, layout, &layout->group[g], items);
        for (uint32_t i = 0; i < count;
             i++) { /* the i-th largest items of all groups share buffer i */
            size_t *bytes = &layout->recompute_bytes[i];
            *bytes = items[i].bytes > *bytes ? items[i].bytes : *bytes;
            *items[i].buffer = i;
        }
        layout->recompute_count = count > layout->recompute_count ? count : layout->recompute_count;
    }
fail:
    return err;
}
