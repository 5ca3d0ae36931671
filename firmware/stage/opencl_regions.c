/* Bytes to and from the host between segments: parameters, and all that microbatches in flight need
 * as one sequence of bytes: versions of the weights, predictions, prediction-error samples, and
 * every slot. It has no gradients, because a segment ends after an update. */
#include "stage/opencl_own.h"

/* Block `*index` of the sequence; NULL after the last one, where *index counts from the first
 * slot. */
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

/* A piece of the sequence or of a slot as sent. */
typedef struct {
    rp_buffer *buffer; /* NULL: offloaded */
    size_t bytes;      /* 0: unused */
} piece;

/* Size in whole words. It depends only on the layout, not on where a part is stored. */
static size_t pad_bytes(size_t bytes) {
    return (bytes + 3) / 4 * 4;
}

static piece piece_of_slot(const rp_opencl *e, uint32_t slot, uint32_t part) {
    return (piece){e->slot[slot][part], e->base.layout->part_bytes[part]};
}

size_t rp_opencl_stash_bytes(const rp_opencl *e) {
    const rp_layout *layout = e->base.layout;
    size_t bytes = 0;
    for (uint32_t i = 0; i < layout->part_count; i++) {
        bytes += pad_bytes(layout->part_bytes[i]);
    }
    return bytes;
}

rp_err rp_opencl_move_slot(rp_opencl *e, uint32_t slot, void *out, const void *from) {
    size_t at = 0;
    rp_err err;
    RP_TRY(rp_opencl_begin_move(e, slot, from != NULL));
    for (uint32_t i = 0; i < e->base.layout->part_count; i++) {
        const piece own = piece_of_slot(e, slot, i);
        if (own.bytes > 0) {
            RP_TRY(out ? rp_buffer_read(e->device, (char *)out + at, own.buffer, 0, own.bytes)
                       : rp_buffer_write(e->device, own.buffer, 0, (const char *)from + at,
                                         own.bytes));
            at += pad_bytes(own.bytes);
        }
    }
    RP_TRY(rp_opencl_end_move(e, slot));
fail:
    return err;
}

static uint32_t blocks_in_flight(const rp_layout *layout) {
    return layout->copies.versions + layout->copies.predicted + layout->probes;
}

static piece piece_in_flight(const rp_opencl *e, uint32_t index) {
    const rp_layout *layout = e->base.layout;
    const uint32_t blocks = blocks_in_flight(layout);
    if (index >= blocks) {
        return piece_of_slot(e, (index - blocks) / layout->part_count,
                             (index - blocks) % layout->part_count);
    }
    rp_buffer *buffer = in_flight_block(e, &index);
    return (piece){buffer, buffer ? rp_buffer_bytes(buffer) : 0};
}

static uint32_t pieces_in_flight(const rp_opencl *e) {
    const rp_layout *layout = e->base.layout;
    return blocks_in_flight(layout) + layout->slots * layout->part_count;
}

size_t rp_opencl_in_flight_bytes(const rp_opencl *e) {
    size_t bytes = 0;
    for (uint32_t i = 0; i < pieces_in_flight(e); i++) {
        bytes += pad_bytes(piece_in_flight(e, i).bytes);
    }
    return bytes;
}

/* Moves bytes of piece `index` if its stash is offloaded. */
static rp_err move_stored(rp_opencl *e, uint32_t index, size_t from, size_t bytes, const char *in,
                          char *out, bool *moved) {
    const rp_layout *layout = e->base.layout;
    const uint32_t blocks = blocks_in_flight(layout);
    const uint32_t each = layout->part_count;
    *moved = false;
    return index < blocks
               ? RP_OK
               : rp_opencl_move_stored(e, (index - blocks) / each, (index - blocks) % each, from,
                                       bytes, in, out, moved);
}

/* Moves the bytes [first, first + count) of the sequence, piece by piece; exactly one of `in` and
 * `out` is not NULL. */
static rp_err move_in_flight(rp_opencl *e, size_t first, size_t count, const char *in, char *out) {
    size_t begin = 0;
    rp_err err = RP_OK;
    for (uint32_t i = 0; i < pieces_in_flight(e) && begin < first + count; i++) {
        const piece own = piece_in_flight(e, i);
        const size_t from = first > begin ? first - begin : 0;
        const size_t end = first + count - begin < own.bytes ? first + count - begin : own.bytes;
        if (from < end) {
            const size_t at = begin + from - first;
            bool moved = false;
            RP_TRY(move_stored(e, i, from, end - from, in ? in + at : NULL, out ? out + at : NULL,
                               &moved));
            RP_TRY(moved ? RP_OK
                   : in  ? rp_buffer_write_now(e->device, own.buffer, from, in + at, end - from)
                         : rp_buffer_read_now(e->device, out + at, own.buffer, from, end - from));
        }
        begin += pad_bytes(own.bytes);
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

static rp_err write_param(rp_opencl *e, const rp_region *region, uint32_t param, size_t first,
                          size_t count, const void *from) {
    return region->kind == RP_REGION_EVERYWHERE
               ? write_everywhere(e, param, first, count, from)
               : rp_buffer_write_now(e->device, buffer_of(e, region->block, param), first, from,
                                     count);
}

rp_err rp_opencl_write(rp_executor *executor, const rp_region *region, size_t first, size_t count,
                       const void *from) {
    rp_opencl *e = rp_opencl_of(executor);
    const rp_layout *layout = e->base.layout;
    rp_err err = RP_OK;
    if (region->kind == RP_REGION_IN_FLIGHT) {
        return move_in_flight(e, first, count, from, NULL);
    }
    for (uint32_t p = 0; p < layout->param_count; p++) {
        if (rp_layout_is_same_tensor(layout, e->base.job->model, p, region->param)) {
            RP_TRY(write_param(e, region, p, first, count, from));
        }
    }
fail:
    return err;
}
