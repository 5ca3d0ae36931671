/* Format of a message in a copy: sizes of its frame and its part, 32 bits each, then both. */
#include "agent/copies.h"

#include <inttypes.h>
#include <string.h>

#include "base/arena.h"

enum { HEAD = 2 * sizeof(uint32_t), PART_MAX = 4 << 20 };

static bool is_of(const rp_copy *copy, rp_run_identity run) {
    return copy->run.id == run.id && copy->run.term == run.term;
}

rp_copy *rp_copies_find(rp_copies *copies, rp_run_identity run, uint64_t step, uint32_t node) {
    for (uint32_t i = 0; i < RP_COPIES_MAX; i++) {
        rp_copy *copy = &copies->copy[i];
        if (copy->bytes && is_of(copy, run) && copy->step == step && copy->node == node) {
            return copy;
        }
    }
    return NULL;
}

rp_err rp_copies_begin(rp_copies *copies, rp_run_identity run, uint64_t step, uint32_t node,
                       size_t room, rp_copy **out) {
    rp_copy *free_place = NULL;
    void *bytes;
    rp_err err;
    for (uint32_t i = 0; i < RP_COPIES_MAX && !free_place; i++) {
        free_place = copies->copy[i].bytes ? NULL : &copies->copy[i];
    }
    if (!free_place) {
        return rp_fail(RP_ERR_LIMIT, "no room for another copy: this board keeps at most %d",
                       RP_COPIES_MAX);
    }
    RP_TRY(rp_block_new(room, &bytes));
    *free_place = (rp_copy){.run = run, .step = step, .node = node, .bytes = bytes, .room = room};
    *out = free_place;
fail:
    return err;
}

static void drop_copy(rp_copy *copy) {
    rp_block_free(copy->bytes);
    *copy = (rp_copy){0};
}

void rp_copies_drop_others(rp_copies *copies, rp_run_identity run, uint64_t keep) {
    for (uint32_t i = 0; i < RP_COPIES_MAX; i++) {
        rp_copy *copy = &copies->copy[i];
        if (!is_of(copy, run) || keep == 0 || copy->step != keep) {
            drop_copy(copy);
        }
    }
}

void rp_copies_drop(rp_copies *copies) {
    rp_copies_drop_others(copies, (rp_run_identity){0}, 0);
}

/* ---- writing --------------------------------------------------------------------------------- */

rp_err rp_copy_add(rp_copy *copy, rp_Frame *frame, const rp_part *part) {
    uint8_t encoded[RP_FRAME_BYTES_MAX];
    size_t bytes;
    rp_err err;
    RP_TRY(rp_frame_encode(frame, part, 1, encoded, &bytes));
    const uint32_t head[] = {(uint32_t)bytes, (uint32_t)part->bytes};
    if (bytes + part->bytes + HEAD > copy->room - copy->got) {
        return rp_fail(RP_ERR_LIMIT, "the copy of step %" PRIu64 " does not fit in its %zu bytes",
                       copy->step, copy->room);
    }
    memcpy(copy->bytes + copy->got, head, HEAD);
    memcpy(copy->bytes + copy->got + HEAD, encoded, bytes);
    memcpy(copy->bytes + copy->got + HEAD + bytes, part->data, part->bytes);
    copy->got += HEAD + bytes + part->bytes;
fail:
    return err;
}

rp_err rp_copy_add_bytes(rp_copy *copy, uint64_t first, const void *bytes, size_t count) {
    if (first != copy->got || count > copy->room - copy->got || (count == 0 && copy->room > 0)) {
        return rp_fail(RP_ERR_PEER,
                       "a copy of %zu bytes, of which %zu were received: [%" PRIu64
                       ", +%zu) is not the next piece",
                       first, count, copy->room, copy->got);
    }
    if (count > 0) {
        memcpy(copy->bytes + copy->got, bytes, count);
    }
    copy->got += count;
    copy->is_whole = copy->got == copy->room;
    return RP_OK;
}

/* ---- reading --------------------------------------------------------------------------------- */

rp_err rp_copy_next(const rp_copy *copy, size_t *at, rp_Frame *frame, rp_part *part) {
    const size_t rest = copy->got - *at;
    const uint8_t *bytes = copy->bytes + *at;
    uint32_t head[2] = {0};
    rp_err err;
    memcpy(head, bytes, rest >= HEAD ? HEAD : 0);
    if (rest < HEAD || head[0] > rest - HEAD || head[1] > rest - HEAD - head[0]) {
        return rp_fail(RP_ERR_FORMAT, "the copy of step %" PRIu64 " is cut off at byte %zu of %zu",
                       copy->step, *at, copy->got);
    }
    RP_TRY(rp_frame_decode(bytes + HEAD, head[0], PART_MAX, frame));
    const rp_kind kind = rp_frame_kind(frame);
    if ((kind != RP_KIND_TENSOR && kind != RP_KIND_IN_FLIGHT) || frame->part_count != 1) {
        return rp_fail(RP_ERR_FORMAT,
                       "the copy of step %" PRIu64 " has an unexpected %s at byte %zu", copy->step,
                       rp_kind_name(kind), *at);
    }
    *part = rp_frame_part(frame, 0, bytes + HEAD + head[0], head[1]);
    RP_TRY(rp_frame_check_parts(frame, part, 1));
    *at += HEAD + head[0] + head[1];
fail:
    return err;
}
