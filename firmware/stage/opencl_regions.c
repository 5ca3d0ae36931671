/* The opencl executor's bytes, to and from the host, between segments: parameters, and what
 * microbatches in flight need as one run of bytes: versions of the weights, predictions, probes,
 * and every slot. Gradients need none: a segment ends behind an update. Where samples are
 * remembered, which asks for a schedule that flushes, the run is what is remembered. */
#include "stage/opencl_own.h"

static size_t padded_bytes(const rp_buffer *buffer) {
    return (rp_buffer_bytes(buffer) + 3) / 4 * 4;
}

/* Block `*index` of the run, NULL behind the last; `*index` then counts from the first slot. */
static rp_buffer *in_flight_block(const rp_opencl *e, uint32_t *index) {
    static const rp_block_kind kinds[] = {RP_BLOCK_WEIGHTS, RP_BLOCK_PREDICTED, RP_BLOCK_PROBE};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        const uint32_t count = rp_block_count(e->base.layout, kinds[k]);
        if (*index < count) {
            return rp_opencl_whole(e, (rp_block){kinds[k], *index});
        }
        *index -= count;
    }
    return NULL;
}

static uint32_t buffers_a_slot(const rp_layout *layout) {
    return layout->value.kept_count + layout->layer_count * RP_LAYER_SAVED_MAX;
}

/* NULL: the layer saves nothing there. */
static rp_buffer *slot_buffer(const rp_opencl *e, uint32_t slot, uint32_t index) {
    const uint32_t kept = e->base.layout->value.kept_count;
    return index < kept ? e->slot[slot].kept[index] : e->slot[slot].saved[index - kept];
}

size_t rp_opencl_stash_bytes(const rp_opencl *e) {
    size_t bytes = 0;
    for (uint32_t i = 0; i < buffers_a_slot(e->base.layout); i++) {
        const rp_buffer *buffer = slot_buffer(e, 0, i);
        bytes += buffer ? padded_bytes(buffer) : 0;
    }
    return bytes;
}

rp_err rp_opencl_move_slot(rp_opencl *e, uint32_t slot, void *out, const void *from) {
    size_t at = 0;
    rp_err err;
    RP_TRY(rp_opencl_begin_move(e, slot, from != NULL));
    for (uint32_t i = 0; i < buffers_a_slot(e->base.layout); i++) {
        rp_buffer *buffer = slot_buffer(e, slot, i);
        const size_t bytes = buffer ? rp_buffer_bytes(buffer) : 0;
        if (bytes > 0) {
            RP_TRY(out ? rp_buffer_read(e->device, (char *)out + at, buffer, 0, bytes)
                       : rp_buffer_write(e->device, buffer, 0, (const char *)from + at, bytes));
            at += padded_bytes(buffer);
        }
    }
    RP_TRY(rp_opencl_end_move(e, slot));
fail:
    return err;
}

static rp_buffer *in_flight_buffer(const rp_opencl *e, uint32_t index) {
    const rp_layout *layout = e->base.layout;
    if (layout->remembered_bytes) {
        return e->remembered[index / RP_CUT_TENSORS_MAX][index % RP_CUT_TENSORS_MAX];
    }
    rp_buffer *block = in_flight_block(e, &index);
    const uint32_t each = buffers_a_slot(layout);
    if (block || index / each >= layout->slots) {
        return block;
    }
    return slot_buffer(e, index / each, index % each);
}

static uint32_t in_flight_buffers(const rp_opencl *e) {
    const rp_layout *layout = e->base.layout;
    if (layout->remembered_bytes) {
        return 2 * RP_CUT_TENSORS_MAX;
    }
    return layout->versions + layout->predicted + layout->probes +
           layout->slots * buffers_a_slot(layout);
}

size_t rp_opencl_in_flight_bytes(const rp_opencl *e) {
    size_t bytes = 0;
    for (uint32_t i = 0; i < in_flight_buffers(e); i++) {
        const rp_buffer *buffer = in_flight_buffer(e, i);
        bytes += buffer ? padded_bytes(buffer) : 0;
    }
    return bytes;
}

/* Buffer `index` of the run, where its stash lies with the host. */
static rp_err move_stored(rp_opencl *e, uint32_t index, size_t from, size_t bytes, const char *in,
                          char *out, bool *moved) {
    const rp_layout *layout = e->base.layout;
    const uint32_t blocks = layout->versions + layout->predicted + layout->probes;
    const uint32_t each = buffers_a_slot(layout);
    *moved = false;
    return layout->remembered_bytes || index < blocks
               ? RP_OK
               : rp_opencl_move_stored(e, (index - blocks) / each, (index - blocks) % each, from,
                                       bytes, in, out, moved);
}

/* The part of [first, first + count) that lies in each buffer; `in` or `out` is NULL. */
static rp_err move_in_flight(rp_opencl *e, size_t first, size_t count, const char *in, char *out) {
    size_t begin = 0;
    rp_err err = RP_OK;
    for (uint32_t i = 0; i < in_flight_buffers(e) && begin < first + count; i++) {
        rp_buffer *buffer = in_flight_buffer(e, i);
        const size_t bytes = buffer ? rp_buffer_bytes(buffer) : 0;
        const size_t from = first > begin ? first - begin : 0;
        const size_t end = first + count - begin < bytes ? first + count - begin : bytes;
        if (buffer && from < end) {
            const size_t at = begin + from - first;
            bool moved = false;
            RP_TRY(move_stored(e, i, from, end - from, in ? in + at : NULL, out ? out + at : NULL,
                               &moved));
            RP_TRY(moved ? RP_OK
                   : in  ? rp_buffer_write_now(e->device, buffer, from, in + at, end - from)
                         : rp_buffer_read_now(e->device, out + at, buffer, from, end - from));
        }
        begin += buffer ? padded_bytes(buffer) : 0;
    }
fail:
    return err;
}

static rp_buffer *buffer_of(const rp_opencl *e, rp_block block, uint32_t param) {
    const uint32_t trained = e->base.layout->trained[param];
    return trained == RP_NOT_TRAINED ? e->param[param].value.buffer
                                     : rp_opencl_flat(e, block)->part[trained];
}

static rp_err write_everywhere(rp_opencl *e, uint32_t param, size_t first, size_t count,
                               const void *from) {
    static const rp_block_kind kinds[] = {RP_BLOCK_WEIGHTS, RP_BLOCK_CENTRE};
    const bool trained = e->base.layout->trained[param] != RP_NOT_TRAINED;
    rp_err err = RP_OK;
    if (!trained) {
        return rp_buffer_write_now(e->device, e->param[param].value.buffer, first, from, count);
    }
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        for (uint32_t i = 0; i < rp_block_count(e->base.layout, kinds[k]); i++) {
            rp_buffer *to = buffer_of(e, (rp_block){kinds[k], i}, param);
            RP_TRY(rp_buffer_write_now(e->device, to, first, from, count));
        }
    }
fail:
    return err;
}

rp_err rp_opencl_read(rp_executor *executor, const rp_region *region, size_t first, size_t count,
                      void *out) {
    rp_opencl *e = rp_opencl_of(executor);
    return region->kind == RP_REGION_IN_FLIGHT
               ? move_in_flight(e, first, count, NULL, out)
               : rp_buffer_read_now(e->device, out, buffer_of(e, region->block, region->param),
                                    first, count);
}

rp_err rp_opencl_write(rp_executor *executor, const rp_region *region, size_t first, size_t count,
                       const void *from) {
    rp_opencl *e = rp_opencl_of(executor);
    switch (region->kind) {
    case RP_REGION_IN_FLIGHT:
        return move_in_flight(e, first, count, from, NULL);
    case RP_REGION_EVERYWHERE:
        return write_everywhere(e, region->param, first, count, from);
    case RP_REGION_BLOCK:
        break;
    }
    return rp_buffer_write_now(e->device, buffer_of(e, region->block, region->param), first, from,
                               count);
}
