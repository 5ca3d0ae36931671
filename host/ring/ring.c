/* The boards of a ring: which ones, at which place, over which links. */
#include "ring/ring_own.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ring/identity.h"

_Static_assert(RP_RING_BOARDS_MAX + 2 <= RP_LINKS_WAIT_MAX, "every board and two feeds");

/* ---- opening --------------------------------------------------------------------------------- */

void rp_ring_check(const rp_ring *ring) {
    RP_ASSERT(ring->run && ring->board);
    RP_ASSERT(ring->count > 0 && ring->count <= ring->rejoin.boards);
    RP_ASSERT(ring->rejoin.joined <= ring->rejoin.left);
    RP_ASSERT(!ring->owns_links || ring->links);
    RP_ASSERT(!ring->boards_up || ring->spawner || !ring->run->local);
}

rp_err rp_ring_check_size(const rp_runfile *run, const char *run_path) {
    return run->boards <= RP_RING_BOARDS_MAX
               ? RP_OK
               : rp_fail(RP_ERR_USAGE,
                         "%s: ring: %u boards; over a network at most %d are possible; "
                         "choose them by ring.where or plan.boards (`ringpipe sim` takes up to %d)",
                         run_path, run->boards, RP_RING_BOARDS_MAX, RP_CUT_STAGES_MAX);
}

rp_err rp_ring_open(rp_arena *arena, const rp_ring_needs *needs, rp_ring *ring) {
    const rp_runfile *run = needs->run;
    const int64_t now_ns = ring->now_ns;
    rp_err err;
    RP_ASSERT(!ring->links && !ring->spawner);
    *ring = (rp_ring){.arena = arena,
                      .run = run,
                      .clock = needs->clock,
                      .media = needs->media,
                      .origin = needs->origin,
                      .now_ns = now_ns,
                      .progress_ns = now_ns,
                      .pending_bytes = (run->model->param_count + 1) * sizeof(double)};
    RP_TRY(RP_ARENA_NEW(arena, run->boards, &ring->board));
    ring->count = ring->rejoin.boards = run->boards;
    for (uint32_t k = 0; k < ring->count; k++) {
        rp_board_state *board = &ring->board[k];
        char *name;
        RP_TRY(rp_arena_printf(arena, &name, "%u", k));
        board->name = run->local ? name : run->roster[k].name;
        if (!run->local) {
            rp_ring_take_entry(ring, k);
        }
    }
    rp_ring_check(ring);
fail:
    return err;
}

void rp_ring_take_keys(rp_ring *ring, const rp_keypair *keys) {
    RP_ASSERT(!ring->links); /* they use the keys */
    ring->keys = *keys;
}

rp_err rp_ring_begin_term(rp_ring *ring, const char *folder, uint64_t fresh) {
    const uint32_t before = ring->identity.term;
    const rp_err err = rp_identity_begin_term(folder, fresh, &ring->identity);
    RP_ASSERT(ring->identity.term > before || err != RP_OK);
    return err;
}

/* ---- who is in it ---------------------------------------------------------------------------- */

void rp_ring_take_entry(rp_ring *ring, uint32_t board) {
    const rp_roster_entry *entry = &ring->run->roster[board];
    rp_board_state *state = &ring->board[board];
    RP_ASSERT(board < ring->count && !ring->run->local);
    rp_link_close(&state->control);
    rp_queue_drop(state);
    state->name = entry->name;
    state->device = NULL;
    state->build.has_built = false;
    state->silence.has_ended = false;
    state->silence.why = RP_SILENT_UNKNOWN;
    state->silence.is_reported = state->machine.cause_said = false;
    state->address.dials = entry->dials;
    rp_ring_set_address(ring, board, entry->dials ? ring->run->listen : entry->endpoint,
                        entry->public_text);
}

/* Repairs `device` of boards that have moved, which points into the board itself. */
static void repair_texts(rp_ring *ring, uint32_t first) {
    for (uint32_t k = first; k < ring->count; k++) {
        rp_board_state *moved = &ring->board[k];
        moved->device = moved->device ? moved->device_text : NULL;
    }
}

void rp_ring_leave(rp_ring *ring, uint32_t board) {
    rp_board_state *state = &ring->board[board];
    RP_ASSERT(ring->count > 1 && board < ring->count);
    rp_link_close(&state->control);
    rp_link_close(&state->feed);
    rp_queue_drop(state);
    ring->count--;
    memmove(state, state + 1, (ring->count - board) * sizeof *state);
    ring->board[ring->count] = (rp_board_state){0};
    repair_texts(ring, board);
    rp_ring_check(ring);
}

rp_err rp_ring_reorder(rp_ring *ring, const uint32_t *at) {
    rp_board_state *before;
    rp_arena arena;
    rp_err err;
    rp_arena_init(&arena, "boards", 0);
    RP_TRY(RP_ARENA_NEW(&arena, ring->count, &before));
    memcpy(before, ring->board, ring->count * sizeof *before);
    for (uint32_t k = 0; k < ring->count; k++) {
        RP_ASSERT(at[k] < ring->count && before[at[k]].name); /* each place occurs once */
        ring->board[k] = before[at[k]];
        before[at[k]].name = NULL;
    }
    repair_texts(ring, 0);
fail:
    rp_arena_finish(&arena);
    return err;
}

void rp_ring_join(rp_ring *ring, uint32_t board) {
    rp_board_state *state = &ring->board[board];
    RP_ASSERT(board <= ring->count && ring->count < ring->rejoin.boards);
    memmove(state + 1, state, (ring->count - board) * sizeof *state);
    ring->count++;
    *state = (rp_board_state){0};
    repair_texts(ring, board + 1);
    rp_ring_take_entry(ring, board);
    rp_ring_check(ring);
}

void rp_ring_set_address(rp_ring *ring, uint32_t board, const char *endpoint,
                         const char *public_text) {
    rp_board_state *state = &ring->board[board];
    (void)snprintf(state->address.endpoint, sizeof state->address.endpoint, "%s", endpoint);
    (void)snprintf(state->address.public_text, sizeof state->address.public_text, "%s",
                   public_text);
}

/* ---- links ----------------------------------------------------------------------------------- */

rp_err rp_ring_connect(rp_ring *ring, rp_links *links, bool knows_boards) {
    rp_err err = RP_OK;
    RP_ASSERT(ring->board && (!links || !ring->owns_links));
    ring->knows_boards = knows_boards;
    if (!ring->links) {
        ring->links = links;
        ring->owns_links = !links;
    }
    if (!ring->links) {
        const rp_links_options own = {.clock = ring->clock,
                                      .keys = &ring->keys,
                                      .media = ring->media,
                                      .seed =
                                          ~ring->run->seed}; /* differs from those of all boards */
        RP_TRY(rp_links_open(ring->arena, &own, &ring->links));
    }
    for (uint32_t k = 0; k < ring->count; k++) {
        rp_board_state *board = &ring->board[k];
        if (!board->control) {
            RP_TRY(rp_greet_open_link(ring->links, "control", board->address.dials,
                                      board->address.endpoint, board->address.public_text,
                                      &board->control));
        }
    }
fail:
    return err;
}

void rp_ring_endpoint_at(const rp_board_state *board, uint32_t port, char *out, size_t bytes) {
    const char *colon = strrchr(board->address.endpoint, ':');
    const int host = colon ? (int)(colon - board->address.endpoint) : 0;
    (void)snprintf(out, bytes, "%.*s:%u", host, board->address.endpoint, port);
}

void rp_ring_end_assignment(rp_ring *ring) {
    for (uint32_t k = 0; k < ring->count; k++) {
        rp_board_state *board = &ring->board[k];
        rp_link_close(&board->feed);
        memset(board->train.applied, 0, sizeof board->train.applied);
        board->facts_before = board->facts;
    }
}

/* Forgets the board's current work. */
static void reset_board(const rp_ring *ring, rp_board_state *board, bool is_lost) {
    rp_link_close(&board->feed);
    rp_queue_drop(board);
    board->silence.hung = board->silence.hung || rp_watch_is_silent(ring, board);
    board->silence.has_ended |= board->control && rp_link_health_of(board->control).absent;
    if (is_lost || rp_watch_is_lost(ring, board)) {
        rp_link_close(&board->control);
        board->device = NULL;
        board->build.has_built = false; /* its kernel cache may be gone, too */
    }
    board->hello = board->ready = false;
    board->machine.asked = board->train.finished = board->keep.saved = false;
    board->build.now = (rp_board_building){0};
    memset(board->train.applied, 0, sizeof board->train.applied);
}

void rp_ring_reset(rp_ring *ring, uint32_t lost) {
    for (uint32_t k = 0; k < ring->count; k++) {
        reset_board(ring, &ring->board[k], k == lost);
    }
    ring->is_watching = false;
}

void rp_ring_disconnect(rp_ring *ring) {
    for (uint32_t k = 0; k < ring->count; k++) {
        rp_link_close(&ring->board[k].control);
        rp_link_close(&ring->board[k].feed);
        rp_queue_drop(&ring->board[k]);
    }
    if (ring->owns_links) {
        rp_links_close(&ring->links);
    }
    ring->links = NULL;
    ring->owns_links = false;
}
