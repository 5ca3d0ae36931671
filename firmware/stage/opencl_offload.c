/* Stashes of an offloaded stage: a few are on the device, the rest in host memory or on flash.
 *
 * A stash is copied out when its forward has ended, except the one whose backward comes next. It is
 * copied back while the op before its backward runs. A stash never changes after its forward, so
 * one that was copied back can be dropped without copying it out again. If only some parts of each
 * stash are offloaded, "stash" here means these parts; all other parts have their own memory in
 * each slot. */
#include "device/flash.h"
#include "stage/opencl_own.h"

static const uint32_t NONE = RP_NO_SLOT;

rp_err rp_opencl_open_offload(rp_opencl *e) {
    const rp_layout *layout = e->base.layout;
    const char *folder = e->base.job->offload == RP_OFFLOAD_FLASH ? rp_flash_folder() : NULL;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(e->arena, layout->slots, &e->place));
    for (uint32_t c = 0; c < layout->stashes; c++) {
        e->chunk[c].slot = NONE;
    }
    for (uint32_t s = 0; s < layout->slots; s++) {
        e->place[s].chunk = NONE;
    }
    RP_TRY(
        rp_spill_open(e->arena, e->device, layout->slots, layout->leave_bytes, folder, &e->spill));
fail:
    return err;
}

void rp_opencl_close_offload(rp_opencl *e) {
    for (uint32_t s = 0; e->spill && s < e->base.layout->slots; s++) {
        rp_event_release(&e->place[s].left);
    }
    for (uint32_t c = 0; e->chunk && c < e->base.layout->stashes; c++) {
        rp_event_release(&e->chunk[c].used);
        rp_event_release(&e->chunk[c].left);
        rp_event_release(&e->chunk[c].here);
    }
    rp_spill_close(&e->spill);
}

/* ---- leaving and coming back ----------------------------------------------------------------- */

static rp_err copy_out(rp_opencl *e, rp_opencl_chunk *chunk) {
    rp_opencl_place *place = &e->place[chunk->slot];
    rp_err err;
    rp_event_release(&place->left);
    RP_TRY(rp_spill_leave(e->spill, rp_darena_whole(chunk->arena), chunk->slot, &chunk->used,
                          &place->left));
    rp_event_release(&chunk->left);
    chunk->left = rp_event_copy(&place->left);
    place->stored = true;
fail:
    return err;
}

/* Finds a chunk that holds neither slot `a` nor `b`: a free one, otherwise one whose stash is
 * stored already, otherwise one whose stash is then copied out. */
static rp_err find_room(rp_opencl *e, uint32_t a, uint32_t b, rp_opencl_chunk **out) {
    rp_opencl_chunk *best = NULL;
    uint32_t best_cost = UINT32_MAX;
    rp_err err = RP_OK;
    for (uint32_t c = 0; c < e->base.layout->stashes; c++) {
        rp_opencl_chunk *chunk = &e->chunk[c];
        const bool is_free = chunk->slot == NONE;
        const uint32_t cost = is_free ? 0 : e->place[chunk->slot].stored ? 1 : 2;
        if (cost < best_cost && (is_free || (chunk->slot != a && chunk->slot != b))) {
            best = chunk;
            best_cost = cost;
        }
    }
    RP_ASSERT(best); /* one of the RP_OFFLOAD_STASHES is neither */
    RP_TRY(best_cost == 2 ? copy_out(e, best) : RP_OK);
    if (best->slot != NONE) {
        e->place[best->slot].chunk = NONE;
        best->slot = NONE;
    }
    *out = best;
fail:
    return err;
}

static void assign_chunk(rp_opencl *e, rp_opencl_chunk *chunk, uint32_t slot) {
    const rp_layout *layout = e->base.layout;
    chunk->slot = slot;
    e->place[slot].chunk = (uint32_t)(chunk - e->chunk);
    for (uint32_t i = 0; i < layout->leave_count; i++) {
        e->slot[slot][layout->part_order[i]] = chunk->part[layout->part_order[i]];
    }
}

static rp_err come_back(rp_opencl *e, uint32_t slot, uint32_t other) {
    rp_opencl_chunk *chunk;
    rp_err err;
    RP_TRY(find_room(e, slot, other, &chunk));
    const rp_event *const after[] = {&chunk->used, &chunk->left, &e->place[slot].left};
    assign_chunk(e, chunk, slot);
    rp_event_release(&chunk->here);
    RP_TRY(rp_spill_arrive(e->spill, rp_darena_whole(chunk->arena), slot, after, 3, &chunk->here));
fail:
    return err;
}

/* ---- around an op ---------------------------------------------------------------------------- */

static rp_err begin_forward(rp_opencl *e, uint32_t slot, uint32_t soon) {
    rp_opencl_chunk *chunk;
    rp_err err;
    e->place[slot].stored = false;
    if (e->place[slot].chunk == NONE) {
        RP_TRY(find_room(e, slot, soon, &chunk));
        assign_chunk(e, chunk, slot);
    }
    chunk = &e->chunk[e->place[slot].chunk];
    RP_TRY(
        rp_spill_await(e->spill, &chunk->here)); /* pending copy of a stash that was never used */
    RP_TRY(rp_spill_await(e->spill, &chunk->left));
    rp_event_release(&chunk->here);
    rp_event_release(&chunk->left);
fail:
    return err;
}

static rp_err begin_backward(rp_opencl *e, uint32_t slot, uint32_t soon) {
    rp_err err = RP_OK;
    if (e->place[slot].chunk == NONE) {
        RP_TRY(come_back(e, slot, soon));
    }
    rp_opencl_chunk *chunk = &e->chunk[e->place[slot].chunk];
    RP_TRY(rp_spill_await(e->spill, &chunk->here));
    rp_event_release(&chunk->here);
fail:
    return err;
}

rp_err rp_opencl_begin_pass(rp_opencl *e, const rp_pass *pass, bool forward) {
    const uint32_t slot = pass->stash.slot;
    if (!e->spill) {
        return RP_OK;
    }
    return forward ? begin_forward(e, slot, pass->soon - 1)
                   : begin_backward(e, slot, pass->soon - 1);
}

rp_err rp_opencl_end_pass(rp_opencl *e, const rp_pass *pass, bool forward) {
    const uint32_t slot = pass->stash.slot;
    const uint32_t soon = pass->soon - 1;
    rp_err err = RP_OK;
    if (!e->spill) {
        return RP_OK;
    }
    rp_opencl_chunk *chunk = &e->chunk[e->place[slot].chunk];
    rp_event_release(&chunk->used);
    RP_TRY(rp_spill_point(e->spill, &chunk->used));
    if (pass->ends) {
        e->place[slot].chunk = NONE;
        e->place[slot].stored = false;
        chunk->slot = NONE;
    } else if (forward && pass->training && slot != soon) {
        RP_TRY(copy_out(e, chunk));
    }
    if (pass->soon > 0 && e->place[soon].chunk == NONE) {
        RP_TRY(come_back(e, soon, slot));
    }
fail:
    return err;
}

/* ---- a stash that travels -------------------------------------------------------------------- */

rp_err rp_opencl_begin_move(rp_opencl *e, uint32_t slot, bool in) {
    return !e->spill ? RP_OK : in ? begin_forward(e, slot, NONE) : begin_backward(e, slot, NONE);
}

rp_err rp_opencl_end_move(rp_opencl *e, uint32_t slot) {
    rp_err err = RP_OK;
    if (e->spill) {
        rp_opencl_chunk *chunk = &e->chunk[e->place[slot].chunk];
        rp_event_release(&chunk->used);
        RP_TRY(rp_spill_point(e->spill, &chunk->used));
    }
fail:
    return err;
}

/* ---- checkpoints ----------------------------------------------------------------------------- */

/* Offset of the part in an offloaded stash; false: the part is not offloaded. */
static bool find_part(const rp_opencl *e, uint32_t part, size_t *offset) {
    const rp_layout *layout = e->base.layout;
    *offset = 0;
    for (uint32_t i = 0; i < layout->leave_count; i++) {
        if (layout->part_order[i] == part) {
            return true;
        }
        *offset += rp_darena_round(layout->part_bytes[layout->part_order[i]], layout->align_bytes);
    }
    return false;
}

rp_err rp_opencl_move_stored(rp_opencl *e, uint32_t slot, uint32_t part, size_t from, size_t bytes,
                             const char *in, char *out, bool *moved) {
    size_t offset;
    rp_err err;
    *moved = false;
    if (!e->spill || !find_part(e, part, &offset)) {
        return RP_OK;
    }
    *moved = e->place[slot].chunk == NONE;
    RP_TRY(rp_device_drain(e->device));
    RP_TRY(rp_spill_drain(e->spill));
    if (*moved) {
        RP_TRY(rp_spill_move(e->spill, slot, offset + from, bytes, in, out));
        e->place[slot].stored = true;
    } else if (in) {
        e->place[slot].stored = false;
    }
fail:
    return err;
}
