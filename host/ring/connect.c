/* Opens the links of an assignment: CONNECT for neighbours, feeds of the host. */
#include "ring/connect.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

double rp_ring_lines_age_s(const rp_ring *ring) {
    RP_ASSERT(ring->now_ns >= ring->lines_ns);
    return ring->lines_ns > 0 ? (double)(ring->now_ns - ring->lines_ns) * 1e-9 : 0;
}

static rp_link_profile find_line(const rp_ring *ring, uint32_t board) {
    const rp_runfile *run = ring->run;
    rp_link_profile line = rp_link_profile_of(&run->link, &run->hops, RP_LINK_HOST, board);
    line.since_s = rp_ring_lines_age_s(ring);
    return line;
}

/* ---- neighbours ------------------------------------------------------------------------------ */

uint32_t rp_ring_dialled_by(const rp_plan *plan, uint32_t board,
                            uint32_t out[RP_PLAN_NEIGHBOURS_MAX]) {
    uint32_t node[RP_PLAN_NEIGHBOURS_MAX];
    const uint32_t count = rp_plan_neighbours(plan, board, node);
    uint32_t dialled = 0;
    RP_ASSERT(board < plan->node_count);
    for (uint32_t i = 0; i < count; i++) {
        if (!rp_plan_dials(plan, board, node[i])) {
            out[dialled++] = node[i];
        }
    }
    return dialled;
}

/* The port at which `board` listens for a neighbour that dials it. */
static uint32_t port_for(const rp_ring *ring, const rp_plan *plan, uint32_t board, uint32_t from) {
    uint32_t dialled[RP_PLAN_NEIGHBOURS_MAX];
    const uint32_t count = rp_ring_dialled_by(plan, board, dialled);
    uint32_t at = 0;
    while (at < count && dialled[at] != from) {
        at++;
    }
    RP_ASSERT(at < count); /* each neighbour that dials it is in the list */
    return ring->board[board].ports.hop[at];
}

/* Sends a board the addresses that it dials. Always at least one message, which marks the end. */
static rp_err connect_board(rp_ring *ring, const rp_plan *plan, uint32_t board) {
    uint32_t node[RP_PLAN_NEIGHBOURS_MAX];
    const uint32_t neighbours = rp_plan_neighbours(plan, board, node);
    rp_Frame frame = {.which_body = RP_KIND_CONNECT};
    rp_Connect *to = &frame.body.connect;
    uint32_t sent = 0;
    rp_err err = RP_OK;
    for (uint32_t i = 0; i < neighbours; i++) {
        const rp_board_state *far = &ring->board[node[i]];
        if (!rp_plan_dials(plan, board, node[i])) {
            continue;
        }
        to->node = node[i];
        rp_ring_endpoint_at(far, port_for(ring, plan, node[i], board), to->endpoint,
                            sizeof to->endpoint);
        (void)snprintf(to->public_key, sizeof to->public_key, "%s", far->address.public_text);
        RP_TRY(rp_ring_post(ring, board, &frame, NULL));
        sent++;
    }
    RP_TRY(sent ? RP_OK : rp_ring_post(ring, board, &frame, NULL));
fail:
    return err;
}

/* ---- feeds ----------------------------------------------------------------------------------- */

/* For a board that dials, its feed is bound to the port after that of the control links. */
static void write_feed_endpoint(const rp_ring *ring, char *out, size_t bytes) {
    const char *colon = strrchr(ring->run->listen, ':');
    (void)snprintf(out, bytes, "%.*s:%lu", (int)(colon - ring->run->listen), ring->run->listen,
                   strtoul(colon + 1, NULL, 10) + 1);
}

/* Window of a board for parcels from the host, by the plan. */
static uint32_t feed_window(const rp_plan *plan, uint32_t board) {
    uint32_t count;
    uint32_t window = RP_PLAN_LINK_SLACK;
    const uint32_t *edge = rp_plan_node_edges(plan, board, &count);
    for (uint32_t i = 0; i < count; i++) {
        window += plan->edge[edge[i]].from == RP_PLAN_HOST ? plan->edge[edge[i]].window : 0;
    }
    return window;
}

/* The largest message of a feed: the inputs of a microbatch, or the targets of a batch. */
static size_t feed_bytes(const rp_runfile *run, const rp_plan *plan) {
    const uint32_t micro = plan->stage[0].micro_forward;
    const size_t input = rp_shape_count(&run->data.sample) * micro * sizeof(float);
    const size_t target = (size_t)rp_data_row_width(&run->data) * run->batch * sizeof(float);
    return input > target ? input : target;
}

static rp_err open_feed(rp_ring *ring, const rp_plan *plan, uint32_t board) {
    const rp_runfile *run = ring->run;
    rp_board_state *state = &ring->board[board];
    rp_link_options options = {
        .name = "feed",
        .window = 1,
        .send_window = feed_window(plan, board),
        .part_bytes_max = feed_bytes(run, plan),
        .emulate = find_line(ring, board),
        .far = rp_link_profile_of(&run->link, &run->hops, board, RP_LINK_HOST),
        .peer_public = state->address.public_text,
        .run = ring->identity,
        .wire = ring->wire.max,
    };
    char endpoint[160];
    RP_ASSERT(!state->feed && state->control && state->ready);
    if (state->address.dials) {
        write_feed_endpoint(ring, endpoint, sizeof endpoint);
        options.bind = endpoint;
    } else {
        rp_ring_endpoint_at(state, state->ports.feed, endpoint, sizeof endpoint);
        options.connect = endpoint;
    }
    return rp_link_open(ring->links, &options, &state->feed);
}

/* ---- all of them ----------------------------------------------------------------------------- */

rp_err rp_ring_connect_boards(rp_ring *ring, const rp_plan *plan) {
    uint32_t fed;
    const uint32_t *feed = rp_plan_node_edges(plan, RP_PLAN_HOST, &fed);
    rp_err err = RP_OK;
    RP_ASSERT(ring->links && plan->node_count == ring->count);
    ring->lines_ns = ring->lines_ns > 0 ? ring->lines_ns : ring->now_ns; /* set once in a run */
    for (uint32_t k = 0; k < ring->count && ring->run->emulate; k++) {
        const rp_link_profile line = find_line(ring, k);
        RP_TRY(line.control ? rp_link_emulate(ring->board[k].control, &line) : RP_OK);
    }
    for (uint32_t k = 0; k < ring->count; k++) {
        RP_TRY(connect_board(ring, plan, k));
    }
    for (uint32_t i = 0; i < fed; i++) { /* one link for inputs and labels of a board */
        const uint32_t to = plan->edge[feed[i]].to;
        RP_TRY(ring->board[to].feed ? RP_OK : open_feed(ring, plan, to));
    }
    rp_ring_watch_boards(ring, true);
fail:
    return err;
}
