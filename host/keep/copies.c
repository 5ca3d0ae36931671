/* Copies that boards keep for each other (ring.copy_steps): which ones exist, and on which
 * boards. */
#include <inttypes.h>

#include "keep/copies.h"
#include "keep/keep_own.h"

/* Which board reported the copy: the node itself, or its keeper. */
enum { OWN = 1, KEPT = 2 };

/* ---- what there is --------------------------------------------------------------------------- */

rp_copy_set *rp_copies_whole(rp_keep *keep) {
    return &keep->copies.set[keep->copies.newest];
}

rp_copy_set *rp_copies_pending(rp_keep *keep) {
    return &keep->copies.set[!keep->copies.newest];
}

void rp_copies_drop_set(rp_copy_set *set) {
    rp_arena_finish(&set->arena);
    *set = (rp_copy_set){0};
}

void rp_keep_forget_copies(rp_keep *keep) {
    rp_copies_drop_set(&keep->copies.set[0]);
    rp_copies_drop_set(&keep->copies.set[1]);
    keep->copies.wanted = false;
    rp_copy_pace_forget(keep);
}

bool rp_keep_is_copying(const rp_keep *keep) {
    return keep->copies.set[!keep->copies.newest].step > 0;
}

const rp_position *rp_keep_newest_copies(const rp_keep *keep) {
    const rp_copy_set *newest = &keep->copies.set[keep->copies.newest];
    return newest->step > keep->save.kept_step ? &newest->position : NULL;
}

uint64_t rp_keep_copied_microbatches(const rp_keep *keep, uint32_t board) {
    RP_ASSERT(board < keep->needs.ring->count);
    return keep->needs.ring->board[board].keep.microbatches_copied[keep->copies.newest];
}

/* ---- can it be? ------------------------------------------------------------------------------ */

/* Memory for copies on a board: two of its own, and two of every neighbour for which it is the
 * keeper. */
static uint64_t memory_of(const rp_ring *ring, const rp_plan *plan, uint32_t board) {
    uint64_t bytes = 0;
    for (uint32_t k = 0; k < ring->count; k++) {
        const bool is_here = k == board || rp_plan_keeper(plan, k) == board;
        bytes += is_here ? 2 * ring->board[k].memory.copy_bytes : 0;
    }
    return bytes;
}

rp_err rp_keep_check_plan(const rp_keep *keep, const rp_plan *plan) {
    const rp_ring *ring = keep->needs.ring;
    RP_ASSERT(plan->node_count == ring->count);
    for (uint32_t k = 0; keep->needs.run->safety.copy_steps > 0 && k < ring->count; k++) {
        if (rp_plan_keeper(plan, k) == RP_PLAN_HOST) {
            return rp_fail(RP_ERR_USAGE,
                           "ring.copy_steps: board %s sends nothing to another board, so none can "
                           "keep a copy for it",
                           ring->board[k].name);
        }
    }
    return RP_OK;
}

/* Checks that copies fit into a board's memory, next to everything else there. */
static rp_err check_memory_of(const rp_keep *keep, const rp_plan *plan, uint32_t k) {
    const rp_board_state *board = &keep->needs.ring->board[k];
    const uint64_t asked = board->memory.own_memory ? 0 : rp_runfile_memory_of(keep->needs.run, k);
    const uint64_t has = board->memory.limit_bytes;
    const bool is_asked = asked > 0 && (has == 0 || asked < has);
    const uint64_t most = is_asked ? asked : has;
    const uint64_t stages =
        board->memory.stash_bytes + (board->memory.own_memory ? 0 : board->memory.device_bytes);
    const uint64_t copies = memory_of(keep->needs.ring, plan, k);
    return most == 0 || stages + board->memory.parcel_bytes + copies <= most
               ? RP_OK
               : rp_fail(RP_ERR_LIMIT,
                         "board %s: its %s take %" PRIu64 " KiB, traffic over "
                         "its links %" PRIu64 " KiB and copies (ring.copy_steps) %" PRIu64
                         " KiB, %s allows %" PRIu64 " KiB%s",
                         board->name, board->memory.own_memory ? "offloaded stashes" : "stages",
                         stages >> 10, board->memory.parcel_bytes >> 10, copies >> 10,
                         is_asked ? "ring.memory_mb" : "its memory_fraction", most >> 10,
                         board->memory.own_memory ? " of its processor's memory" : "");
}

rp_err rp_keep_check_memory(const rp_keep *keep, const rp_plan *plan) {
    const uint32_t boards = keep->needs.run->safety.copy_steps > 0 ? keep->needs.ring->count : 0;
    rp_err err = RP_OK;
    RP_ASSERT(plan->node_count == keep->needs.ring->count);
    for (uint32_t k = 0; err == RP_OK && k < boards; k++) {
        err = check_memory_of(keep, plan, k);
    }
    return err;
}

/* ---- making ---------------------------------------------------------------------------------- */

/* Upper bound for the copy of any board; in-flight state has an overhead for each message. */
static uint64_t find_bytes_max(const rp_ring *ring) {
    enum { MESSAGE = 4096 };
    uint64_t most = 0;
    for (uint32_t k = 0; k < ring->count; k++) {
        const rp_board_state *board = &ring->board[k];
        const uint64_t in_flight =
            board->train.in_flight_bytes + board->train.in_flight_bytes / 64 + MESSAGE;
        most = board->memory.copy_bytes + in_flight > most ? board->memory.copy_bytes + in_flight
                                                           : most;
    }
    return most;
}

/* Stores the run's position as a checkpoint would. */
static rp_err note_position(rp_ring *ring, rp_copy_set *set, const rp_plan *plan,
                            const rp_position *position, const rp_gain_estimator *estimator) {
    rp_err err;
    rp_copies_drop_set(set);
    rp_arena_init(&set->arena, "copies", 0);
    RP_TRY(rp_applied_gather(ring, plan, &set->arena, &set->applied, &set->in_flight_bytes));
    RP_TRY(RP_ARENA_NEW(&set->arena, ring->count, &set->said));
    RP_TRY(RP_ARENA_NEW(&set->arena, ring->count, &set->holder));
    if (estimator) {
        double *packed;
        RP_TRY(RP_ARENA_NEW(&set->arena, rp_gain_estimator_size(estimator), &packed));
        RP_TRY(rp_gain_estimator_open(&set->arena, estimator->params, &set->estimator));
        rp_gain_estimator_pack(estimator, packed);
        RP_TRY(rp_gain_estimator_unpack(&set->estimator, "copies", packed));
    }
    set->position = *position;
fail:
    return err;
}

/* While the last copies are incomplete no new ones are made, because boards keep only two. */
rp_err rp_keep_begin_copy(rp_keep *keep, const rp_plan *plan, const rp_position *position,
                          const rp_gain_estimator *estimator) {
    rp_ring *ring = keep->needs.ring;
    rp_copy_set *set = rp_copies_pending(keep);
    const bool is_copying = rp_keep_is_copying(keep);
    rp_err err = RP_OK;
    RP_ASSERT(!keep->copies.wanted);
    RP_ASSERT(position->step > 0 && position->step >= rp_copies_whole(keep)->step);
    for (uint32_t k = 0; k < ring->count; k++) {
        ring->board[k].keep.copied = is_copying;
    }
    if (is_copying) {
        keep->copies.pace.from = position->step;
        return RP_OK;
    }
    RP_TRY(note_position(ring, set, plan, position, estimator));
    rp_copy_pace_note_order(keep, position->step);
    const rp_Frame order = {.which_body = RP_KIND_COPY,
                            .body.copy = {.step = position->step,
                                          .keep = rp_copies_whole(keep)->step,
                                          .bytes_max = find_bytes_max(ring)}};
    for (uint32_t k = 0; k < ring->count; k++) {
        rp_board_state *board = &ring->board[k];
        board->keep.microbatches_copied[!keep->copies.newest] = board->facts.microbatches;
    }
    set->step = position->step;
    set->term = ring->identity.term;
    set->missing = 2 * ring->count; /* on the node itself, and on its keeper */
    RP_TRY(rp_ring_post_all(ring, &order));
fail:
    return err;
}

/* ---- what boards say ------------------------------------------------------------------------- */

static rp_err note_copied(rp_keep *keep, const rp_plan *plan, uint32_t board,
                          const rp_Copied *said) {
    rp_ring *ring = keep->needs.ring;
    rp_copy_set *set = rp_copies_pending(keep);
    const bool is_own = board == said->node;
    const uint8_t bit = is_own ? OWN : KEPT;
    if (said->node >= ring->count || !(is_own || rp_plan_keeper(plan, said->node) == board)) {
        return rp_fail(RP_ERR_PEER, "board %s has a copy of node %u, which it does not keep",
                       ring->board[board].name, said->node);
    }
    if (set->step == 0 || said->step != set->step || set->said[said->node] & bit) {
        return RP_OK;
    }
    RP_ASSERT(set->missing > 0 && set->missing <= 2 * ring->count);
    set->said[said->node] |= bit;
    ring->board[board].keep.copied |= is_own;
    rp_ring_note_progress(ring);
    if (--set->missing == 0) { /* older ones are no longer needed */
        rp_copies_drop_set(rp_copies_whole(keep));
        keep->copies.newest = !keep->copies.newest;
        rp_copy_pace_note_whole(keep);
        RP_ASSERT(!rp_keep_is_copying(keep));
    }
    return RP_OK;
}

/* While boards are greeted each reports which copies it has. */
static void note_holder(rp_keep *keep, const rp_plan *plan, uint32_t board, const rp_Copied *said) {
    const rp_copy_set *set = rp_copies_whole(keep);
    if (said->term == set->term && said->step == set->step && said->node < plan->node_count &&
        set->holder[said->node] == RP_PLAN_HOST) {
        set->holder[said->node] = board;
    }
}

rp_err rp_keep_on_copied(rp_keep *keep, const rp_plan *plan, uint32_t board,
                         const rp_message *message) {
    const rp_Copied *said = &message->frame.body.copied;
    RP_ASSERT(board < keep->needs.ring->count);
    if (keep->copies.wanted) {
        RP_ASSERT(plan != NULL);
        note_holder(keep, plan, board, said);
        return RP_OK;
    }
    return plan && said->term == keep->needs.ring->identity.term
               ? note_copied(keep, plan, board, said)
               : RP_OK;
}

/* ---- going back to them ---------------------------------------------------------------------- */

void rp_keep_want_copies(rp_keep *keep) {
    RP_ASSERT(rp_keep_newest_copies(keep) != NULL);
    keep->copies.wanted = true;
    rp_copies_drop_set(rp_copies_pending(keep));
    rp_copy_pace_forget(keep);
    RP_ASSERT(!rp_keep_is_copying(keep));
}

bool rp_keep_wants_copies(const rp_keep *keep) {
    return keep->copies.wanted;
}

void rp_keep_ask_for_holders(rp_keep *keep, const rp_plan *plan) {
    const rp_copy_set *set = rp_copies_whole(keep);
    RP_ASSERT(!keep->copies.wanted || (set->step > 0 && plan != NULL));
    for (uint32_t k = 0; keep->copies.wanted && k < plan->node_count; k++) {
        set->holder[k] = RP_PLAN_HOST;
    }
}

const char *rp_keep_find_lost(const rp_keep *keep, const rp_plan *plan) {
    const rp_copy_set *set = &keep->copies.set[keep->copies.newest];
    RP_ASSERT(keep->copies.wanted && set->step > 0);
    for (uint32_t k = 0; k < plan->node_count; k++) {
        if (rp_plan_saves(plan, k) && set->holder[k] == RP_PLAN_HOST) {
            return rp_plan_node_name(plan, k);
        }
    }
    return NULL;
}

const rp_position *rp_keep_wanted_position(const rp_keep *keep) {
    RP_ASSERT(keep->copies.wanted);
    return &keep->copies.set[keep->copies.newest].position;
}
