/* Keys that dial this host and that no board of the roster has: a board that has made another key
 * is waited for in vain, which somebody has to know while there is time. */
#include <stdio.h>
#include <string.h>

#include "control/controller_own.h"

/* Each key is said once, and again as long as it tries. */
static const int64_t SAY_NS = 60 * RP_NS_PER_S;

/* Boards that dial and have not come: it may be one of these. */
static void list_awaited(const rp_controller *c, char *out, size_t bytes) {
    size_t used = 0;
    out[0] = '\0';
    for (uint32_t k = 0; k < c->ring.count; k++) {
        const rp_board_state *board = &c->ring.board[k];
        const bool awaited = board->dials && (!board->control || !board->hello);
        if (!awaited || used >= bytes) {
            continue;
        }
        const int more =
            snprintf(out + used, bytes - used, "%s%.40s", used ? ", " : "", board->name);
        used += more > 0 ? (size_t)more : 0;
    }
}

static rp_err say_stranger(const rp_controller *c, const rp_stranger *stranger) {
    char fingerprint[RP_KEY_FINGERPRINT];
    char word[RP_KEY_WORD];
    char awaited[160];
    char text[500];
    rp_key_write(stranger->key, word);
    rp_key_fingerprint(stranger->key, fingerprint);
    list_awaited(c, awaited, sizeof awaited);
    (void)snprintf(text, sizeof text,
                   "somebody at %s dials with the key %s (fingerprint %s), which no board of the "
                   "roster has%s%s; if it is a board of yours, put the line into the roster that "
                   "`ringpipe keys show --roster NAME dials` prints there",
                   stranger->address[0] ? stranger->address : "an unknown address", word,
                   fingerprint, awaited[0] ? "; awaited: " : "", awaited);
    return rp_record_event(rp_folder_record(c->folder), "refused", c->train.position.step, text);
}

static bool is_news(rp_controller *c, const rp_stranger *stranger) {
    const bool same = strcmp(c->ring.stranger.key, stranger->key) == 0;
    if (same && c->ring.stranger.said_ns != 0 &&
        c->ring.now_ns - c->ring.stranger.said_ns < SAY_NS) {
        return false;
    }
    (void)snprintf(c->ring.stranger.key, sizeof c->ring.stranger.key, "%s", stranger->key);
    c->ring.stranger.said_ns = c->ring.now_ns;
    return true;
}

rp_err rp_strangers_look(rp_controller *c) {
    rp_err err = RP_OK;
    for (uint32_t k = 0;
         err == RP_OK && rp_folder_record(c->folder) && c->ring.board && k < c->ring.count; k++) {
        rp_board_state *board = &c->ring.board[k];
        if (!board->dials || !board->control) {
            board->strangers = 0;
            continue;
        }
        const rp_stranger stranger = rp_link_stranger_of(board->control);
        if (stranger.count > board->strangers && is_news(c, &stranger)) {
            err = say_stranger(c, &stranger);
        }
        board->strangers = stranger.count;
    }
    return err;
}
