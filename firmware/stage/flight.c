/* What microbatches in flight need, as one run of bytes: versions of the weights, predictions,
 * probes, and every slot. Gradients need none: a segment ends behind an update. The books need no
 * bytes: they are walked again. */
#include "stage/stage_own.h"

static size_t padded(const rp_buffer *buffer) {
    return (rp_buffer_bytes(buffer) + 3) / 4 * 4;
}

/* Buffer `index` of the run, NULL behind the last. */
static rp_buffer *flat_buffer(const rp_stage *stage, uint32_t *index) {
    const rp_layout *layout = stage->layout;
    if (*index < layout->versions) {
        return rp_darena_whole(stage->weights[*index].arena);
    }
    *index -= layout->versions;
    if (*index < layout->predicted) {
        return rp_darena_whole(stage->predicted[*index].arena);
    }
    *index -= layout->predicted;
    if (*index < layout->probes) {
        return rp_darena_whole(stage->probe[*index].arena);
    }
    *index -= layout->probes;
    return NULL;
}

static rp_buffer *buffer_at(const rp_stage *stage, uint32_t index) {
    const rp_layout *layout = stage->layout;
    const uint32_t saved = layout->layer_count * RP_LAYER_SAVED_MAX;
    rp_buffer *flat = flat_buffer(stage, &index);
    const uint32_t each = layout->value.kept_count + saved;
    if (flat || index / each >= layout->slots) {
        return flat;
    }
    const rp_slot *slot = &stage->slot[index / each];
    index %= each;
    return index < layout->value.kept_count ? slot->kept[index]
                                            : slot->saved[index - layout->value.kept_count];
}

static uint32_t buffer_count(const rp_stage *stage) {
    const rp_layout *layout = stage->layout;
    const uint32_t each = layout->value.kept_count + layout->layer_count * RP_LAYER_SAVED_MAX;
    return layout->versions + layout->predicted + layout->probes + layout->slots * each;
}

size_t rp_stage_flight_bytes(const rp_stage *stage) {
    size_t bytes = 0;
    for (uint32_t i = 0; i < buffer_count(stage); i++) {
        const rp_buffer *buffer = buffer_at(stage, i);
        bytes += buffer ? padded(buffer) : 0;
    }
    return bytes;
}

/* The part of [first, first + count) that lies in each buffer; `in` or `out` is NULL. */
static rp_err move(rp_stage *stage, size_t first, size_t count, const char *in, char *out) {
    size_t begin = 0;
    rp_err err = RP_OK;
    for (uint32_t i = 0; i < buffer_count(stage) && begin < first + count; i++) {
        rp_buffer *buffer = buffer_at(stage, i);
        const size_t bytes = buffer ? rp_buffer_bytes(buffer) : 0;
        const size_t from = first > begin ? first - begin : 0;
        const size_t end = first + count - begin < bytes ? first + count - begin : bytes;
        if (buffer && from < end) {
            const size_t at = begin + from - first;
            RP_TRY(in ? rp_buffer_write_now(stage->device, buffer, from, in + at, end - from)
                      : rp_buffer_read_now(stage->device, out + at, buffer, from, end - from));
        }
        begin += buffer ? padded(buffer) : 0;
    }
fail:
    return err;
}

rp_err rp_stage_flight_read(rp_stage *stage, size_t first, size_t count, void *out) {
    return move(stage, first, count, NULL, out);
}

rp_err rp_stage_flight_write(rp_stage *stage, size_t first, size_t count, const void *bytes) {
    return move(stage, first, count, bytes, NULL);
}

static void walk_slot(rp_stage *stage, const rp_op *op) {
    for (uint32_t i = 0; i < stage->layout->slots; i++) {
        rp_slot *slot = &stage->slot[i];
        if (op->kind == RP_OP_FORWARD ? !slot->busy
                                      : slot->busy && slot->step == op->step &&
                                            slot->samples.first == op->samples.first) {
            slot->busy = op->kind == RP_OP_FORWARD;
            slot->evaluating = false;
            slot->step = op->step;
            slot->samples = op->samples;
            return;
        }
    }
}

void rp_stage_resume(rp_stage *stage, uint64_t fill, uint64_t step) {
    rp_versions *versions = &stage->versions;
    rp_op op;
    rp_stage_start(stage, fill);
    for (uint32_t i = 0; i < stage->layout->slots; i++) {
        stage->slot[i].busy = false;
    }
    while (versions->list.step < step) {
        rp_sched_state list = versions->list;
        rp_sight sight = {0};
        if (!stage->job->method.kind->next(&list, &op)) {
            return;
        }
        if (op.kind == RP_OP_FORWARD) {
            sight = rp_versions_forward(versions, &op);
        } else if (op.kind == RP_OP_UPDATE) {
            (void)rp_versions_update(versions, &op);
        } else {
            sight = rp_versions_backward(versions, &op);
        }
        (void)rp_stage_probe_walk(stage, &op, &sight);
        if (op.kind != RP_OP_UPDATE) {
            walk_slot(stage, &op);
        }
    }
}
