/* What boards are asked before they train: their layers' times, how far away they are, and to take
 * a stage each. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "run/identity.h"
#include "run/ring_own.h"

enum { FEED_WINDOW = 6 };

static bool is_profiled(const rp_board_state *board) {
    return board->profiled;
}

static bool is_ready(const rp_board_state *board) {
    return board->ready;
}

static rp_err send_texts(rp_ring *ring, uint32_t stage, rp_Frame *frame, const rp_cut *cut) {
    rp_arena arena;
    char *job;
    char *model;
    rp_err err;
    rp_arena_init(&arena, "assignment", 0);
    const char *before = stage > 0 ? ring->board[stage - 1].public_text : NULL;
    RP_TRY(
        rp_runfile_assignment(&arena, ring->run, cut, stage, ring->keys.public_text, before, &job));
    RP_TRY(rp_config_text(&arena, ring->run->model_root, &model));
    const rp_part parts[2] = {rp_part_of_text(job), rp_part_of_text(model)};
    RP_TRY(rp_ring_send(ring, stage, frame, parts, 2));
fail:
    rp_arena_finish(&arena);
    return err;
}

rp_err rp_ring_profile(rp_ring *ring, const double **layer_seconds) {
    rp_cut whole = {.stage_count = 1, .first = {0, ring->run->model->layer_count}};
    rp_Frame frame = {.which_body = RP_KIND_PROFILE};
    rp_err err;
    RP_TRY(send_texts(ring, 0, &frame, &whole));
    RP_TRY(rp_ring_wait(ring, "profile", 1, is_profiled, RP_RING_BUILD_NS));
    *layer_seconds = ring->layer_seconds;
fail:
    return err;
}

static bool has_answered(const rp_board_state *board) {
    rp_link_stats stats;
    rp_link_stats_of(board->control, &stats);
    return stats.round_trips > board->round_trips;
}

static rp_err ping_all(rp_ring *ring) {
    for (uint32_t k = 0; k < ring->count; k++) {
        rp_link_stats stats;
        rp_link_stats_of(ring->board[k].control, &stats);
        ring->board[k].round_trips = stats.round_trips;
        rp_err err = rp_link_ping(ring->board[k].control);
        if (err != RP_OK && err != RP_ERR_AGAIN) {
            return err;
        }
    }
    return RP_OK;
}

rp_err rp_ring_round_trip(rp_ring *ring, uint32_t trips, int64_t *out_ns) {
    int64_t shortest_ns[RP_CUT_STAGES_MAX];
    rp_err err = RP_OK;
    for (uint32_t trip = 0; trip < trips; trip++) {
        RP_TRY(ping_all(ring));
        RP_TRY(
            rp_ring_wait(ring, "answer to a ping", ring->count, has_answered, RP_RING_SILENT_NS));
        for (uint32_t k = 0; k < ring->count; k++) {
            rp_link_stats stats;
            rp_link_stats_of(ring->board[k].control, &stats);
            const bool shorter = trip == 0 || stats.round_trip_ns < shortest_ns[k];
            shortest_ns[k] = shorter ? stats.round_trip_ns : shortest_ns[k];
        }
    }
    *out_ns = 0;
    for (uint32_t k = 0; k < ring->count; k++) {
        *out_ns = shortest_ns[k] > *out_ns ? shortest_ns[k] : *out_ns;
    }
fail:
    return err;
}

/* tcp://HOST of a board's endpoint with another port. */
static void with_port(const rp_board_state *board, uint32_t port, char *out, size_t bytes) {
    const char *colon = strrchr(board->endpoint, ':');
    int host = colon ? (int)(colon - board->endpoint) : 0;
    (void)snprintf(out, bytes, "%.*s:%u", host, board->endpoint, port);
}

static rp_err connect_feed(rp_ring *ring, uint32_t stage) {
    rp_board_state *board = &ring->board[stage];
    const rp_runfile *run = ring->run;
    char endpoint[160];
    with_port(board, board->feed_port, endpoint, sizeof endpoint);
    size_t input = rp_shape_count(&run->data.sample) * run->micro * sizeof(float);
    size_t target = (size_t)run->data.target_width * run->batch * sizeof(float);
    rp_link_options options = {
        .name = "feed",
        .connect = endpoint,
        .peer_public = board->public_text,
        .window = 1,
        .send_window = FEED_WINDOW,
        .part_bytes_max = input > target ? input : target,
        .emulate = run->link,
        .run = ring->identity,
        .wire = ring->wire.max,
    };
    return rp_link_open(ring->links, &options, &board->feed);
}

static rp_err connect_all(rp_ring *ring) {
    rp_err err = RP_OK;
    for (uint32_t k = 0; k < ring->count; k++) {
        rp_Frame frame = {.which_body = RP_KIND_CONNECT};
        rp_Connect *to = &frame.body.connect;
        if (k + 1 < ring->count) {
            const rp_board_state *next = &ring->board[k + 1];
            with_port(next, next->hop_port, to->endpoint, sizeof to->endpoint);
            (void)snprintf(to->public_key, sizeof to->public_key, "%s", next->public_text);
        }
        RP_TRY(rp_ring_send(ring, k, &frame, NULL, 0));
    }
    RP_TRY(connect_feed(ring, 0));
    if (ring->count > 1) {
        RP_TRY(connect_feed(ring, ring->count - 1));
    }
fail:
    return err;
}

static rp_err assign(rp_ring *ring, const rp_cut *cut, int64_t timeout_ns) {
    rp_err err = RP_OK;
    for (uint32_t k = 0; k < ring->count; k++) {
        rp_Frame frame = {.which_body = RP_KIND_ASSIGN,
                          .body.assign = {.wire = ring->wire.max, .features = ring->features}};
        RP_TRY(send_texts(ring, k, &frame, cut));
    }
    RP_TRY(rp_ring_wait(ring, "ready", ring->count, is_ready, timeout_ns));
    for (uint32_t k = 0; k < ring->count && ring->run->link.control; k++) {
        RP_TRY(rp_link_emulate(ring->board[k].control, &ring->run->link));
    }
    RP_TRY(connect_all(ring));
    ring->watching = true;
fail:
    return err;
}

rp_err rp_ring_assign(rp_ring *ring, const rp_cut *cut) {
    return assign(ring, cut, RP_RING_BUILD_NS);
}

rp_err rp_ring_assign_again(rp_ring *ring, const rp_cut *cut) {
    int64_t longest_ns = RP_RING_HELLO_NS;
    rp_err err;
    ring->watching = false; /* building takes a board all its time */
    for (uint32_t k = 0; k < ring->count; k++) {
        rp_board_state *board = &ring->board[k];
        const int64_t before_ns = board->prepare_ns + RP_RING_HELLO_NS;
        longest_ns = before_ns > longest_ns ? before_ns : longest_ns;
        rp_link_close(&board->feed);
        board->ready = false;
        memset(board->applied, 0, sizeof board->applied);
        board->facts_before = board->facts;
    }
    RP_TRY(rp_identity_begin_term(ring->folder, &ring->identity));
    RP_TRY(rp_ring_greet(ring));
    RP_TRY(assign(ring, cut, longest_ns));
fail:
    return err;
}
