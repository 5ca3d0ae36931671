/* Two boards with one key, as a copied SD card makes them: of those that dial, the host serves the
 * one that it has; the other is kept out, which somebody has to know. */
#include <stdio.h>

#include "control/controller_own.h"

/* Said again as long as it is so, and not for each life of a board that begins again and again. */
static const int64_t SAY_NS = 60 * RP_NS_PER_S;

static rp_err say_twins(const rp_controller *c, const rp_board_state *board) {
    const rp_link_peers peers = rp_link_peers_of(board->control);
    char text[400];
    (void)snprintf(
        text, sizeof text,
        "two boards have the key of board %.40s: the one at %s is in the ring, the one "
        "at %s is kept out; was an SD card or a folder of keys copied? Make a key of its "
        "own on one of them (`ringpipe keys new`), and a line in the roster",
        board->name, peers.served, peers.twin);
    return rp_record_event(rp_folder_record(c->folder), "twins", c->train.position.step, text);
}

rp_err rp_twins_look(rp_controller *c) {
    rp_err err = RP_OK;
    for (uint32_t k = 0;
         err == RP_OK && rp_folder_record(c->folder) && c->ring.board && k < c->ring.count; k++) {
        rp_board_state *board = &c->ring.board[k];
        const uint32_t twins = board->control ? rp_link_health_of(board->control).twins : 0;
        const bool is_news = twins > 0 && twins != board->twins;
        if (is_news &&
            (board->twins_said_ns == 0 || c->ring.now_ns - board->twins_said_ns > SAY_NS)) {
            board->twins_said_ns = c->ring.now_ns;
            err = say_twins(c, board);
        }
        board->twins = twins;
    }
    return err;
}
