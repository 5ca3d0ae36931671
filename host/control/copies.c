/* Copies that boards keep of each other (ring.copy_steps): which there are, and who has them. */
#include <inttypes.h>

#include "control/controller_own.h"

/* Who has said it. */
enum { OWN = 1, KEPT = 2 };

/* ---- what there is --------------------------------------------------------------------------- */

rp_copy_set *rp_copies_whole(rp_controller *c) {
    return &c->keep.copies.set[c->keep.copies.newest];
}

rp_copy_set *rp_copies_pending(rp_controller *c) {
    return &c->keep.copies.set[!c->keep.copies.newest];
}

void rp_copies_drop_set(rp_copy_set *set) {
    rp_arena_finish(&set->arena);
    *set = (rp_copy_set){0};
}

void rp_copies_forget(rp_controller *c) {
    rp_copies_drop_set(&c->keep.copies.set[0]);
    rp_copies_drop_set(&c->keep.copies.set[1]);
    c->keep.copies.wanted = false;
    rp_copy_pace_forget(c);
}

const rp_copy_set *rp_copies_newest(const rp_controller *c) {
    const rp_copy_set *newest = &c->keep.copies.set[c->keep.copies.newest];
    return newest->step > c->keep.save.kept_step ? newest : NULL;
}

uint64_t rp_copies_microbatches(const rp_controller *c, uint32_t board) {
    return c->ring.board[board].microbatches_copied[c->keep.copies.newest];
}

/* ---- can it be? ------------------------------------------------------------------------------ */

/* Two of its own and two of every neighbour's whose copy it keeps. */
static uint64_t memory_of(const rp_controller *c, uint32_t board) {
    uint64_t bytes = 0;
    for (uint32_t k = 0; k < c->ring.count; k++) {
        const bool is_here = k == board || rp_plan_keeper(c->setup.plan, k) == board;
        bytes += is_here ? 2 * c->ring.board[k].copy_bytes : 0;
    }
    return bytes;
}

rp_err rp_copies_check_plan(const rp_controller *c) {
    for (uint32_t k = 0; c->run.copy_steps > 0 && k < c->ring.count; k++) {
        if (rp_plan_keeper(c->setup.plan, k) == RP_PLAN_HOST) {
            return rp_fail(RP_ERR_USAGE,
                           "ring.copy_steps: board %s sends nothing to another board, so none can "
                           "keep a copy for it",
                           c->ring.board[k].name);
        }
    }
    return RP_OK;
}

/* Do copies fit beside what else lies where they lie? */
static rp_err check_memory_of(const rp_controller *c, uint32_t k) {
    const rp_board_state *board = &c->ring.board[k];
    const uint64_t asked = board->own_memory ? 0 : rp_runfile_memory_of(&c->run, k);
    const uint64_t has = board->limit_bytes;
    const bool is_asked = asked > 0 && (has == 0 || asked < has);
    const uint64_t most = is_asked ? asked : has;
    const uint64_t stages = board->stash_bytes + (board->own_memory ? 0 : board->device_bytes);
    const uint64_t copies = memory_of(c, k);
    return most == 0 || stages + board->parcel_bytes + copies <= most
               ? RP_OK
               : rp_fail(RP_ERR_LIMIT,
                         "board %s: its %s take %" PRIu64 " KiB, what comes and goes over "
                         "its links %" PRIu64 " KiB and copies (ring.copy_steps) %" PRIu64
                         " KiB, %s allows %" PRIu64 " KiB%s",
                         board->name, board->own_memory ? "offloaded stashes" : "stages",
                         stages >> 10, board->parcel_bytes >> 10, copies >> 10,
                         is_asked ? "ring.memory_mb" : "its memory_fraction", most >> 10,
                         board->own_memory ? " of its processor's memory" : "");
}

rp_err rp_copies_check_memory(const rp_controller *c) {
    rp_err err = RP_OK;
    for (uint32_t k = 0; err == RP_OK && c->run.copy_steps > 0 && k < c->ring.count; k++) {
        err = check_memory_of(c, k);
    }
    return err;
}

/* ---- what boards say ------------------------------------------------------------------------- */

static rp_err note_copied(rp_controller *c, uint32_t board, const rp_Copied *said) {
    rp_copy_set *set = rp_copies_pending(c);
    const bool is_own = board == said->node;
    const uint8_t bit = is_own ? OWN : KEPT;
    if (said->node >= c->ring.count ||
        !(is_own || rp_plan_keeper(c->setup.plan, said->node) == board)) {
        return rp_fail(RP_ERR_PEER, "board %s has a copy of node %u, which it does not keep",
                       c->ring.board[board].name, said->node);
    }
    if (set->step == 0 || said->step != set->step || set->said[said->node] & bit) {
        return RP_OK;
    }
    set->said[said->node] |= bit;
    c->ring.board[board].copied |= is_own;
    rp_ring_note_progress(&c->ring);
    if (--set->missing == 0) { /* those before it are of no use any more */
        rp_copies_drop_set(rp_copies_whole(c));
        c->keep.copies.newest = !c->keep.copies.newest;
        rp_copy_pace_whole(c);
    }
    return RP_OK;
}

/* A board that is greeted says which copies it has. */
static void note_holder(rp_controller *c, uint32_t board, const rp_Copied *said) {
    const rp_copy_set *set = rp_copies_whole(c);
    if (said->term == set->term && said->step == set->step &&
        said->node < c->setup.plan->node_count && set->holder[said->node] == RP_PLAN_HOST) {
        set->holder[said->node] = board;
    }
}

rp_err rp_copies_on_copied(rp_controller *c, uint32_t board, const rp_message *message) {
    const rp_Copied *said = &message->frame.body.copied;
    if (c->keep.copies.wanted) {
        note_holder(c, board, said);
        return RP_OK;
    }
    return c->setup.plan && said->term == c->ring.identity.term ? note_copied(c, board, said)
                                                                : RP_OK;
}

/* ---- going back to them ---------------------------------------------------------------------- */

void rp_copies_want(rp_controller *c) {
    c->keep.copies.wanted = true;
    rp_copies_drop_set(rp_copies_pending(c));
    rp_copy_pace_forget(c);
}

void rp_copies_begin_hello(rp_controller *c) {
    const rp_copy_set *set = rp_copies_whole(c);
    for (uint32_t k = 0; c->keep.copies.wanted && k < c->setup.plan->node_count; k++) {
        set->holder[k] = RP_PLAN_HOST;
    }
}
