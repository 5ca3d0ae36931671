#include "ring/kept_out.h"

#include <stdio.h>
#include <string.h>

/* Time between two reports of the same key. */
static const int64_t SAY_NS = 60 * RP_NS_PER_S;

/* Lists boards that dial and have not greeted; the unknown key may belong to one of them. */
static void list_awaited(const rp_ring *ring, char *out, size_t bytes) {
    size_t used = 0;
    out[0] = '\0';
    for (uint32_t k = 0; k < ring->count; k++) {
        const rp_board_state *board = &ring->board[k];
        const bool awaited = board->address.dials && (!board->control || !board->hello);
        if (!awaited || used >= bytes) {
            continue;
        }
        const int more =
            snprintf(out + used, bytes - used, "%s%.40s", used ? ", " : "", board->name);
        used += more > 0 ? (size_t)more : 0;
    }
}

static rp_err say_stranger(const rp_ring *ring, const rp_stranger *stranger, rp_record *record,
                           uint64_t step) {
    char fingerprint[RP_KEY_FINGERPRINT];
    char word[RP_KEY_WORD];
    char awaited[160];
    rp_key_write(stranger->key, word);
    rp_key_fingerprint(stranger->key, fingerprint);
    list_awaited(ring, awaited, sizeof awaited);
    return rp_record_event(
        record,
        &(rp_run_event){.kind = RP_EVENT_STRANGER,
                        .step = step,
                        .address = stranger->address[0] ? stranger->address : "an unknown address",
                        .key = word,
                        .fingerprint = fingerprint,
                        .awaited = awaited});
}

static bool is_news(rp_ring *ring, const rp_stranger *stranger) {
    const bool same = strcmp(ring->stranger.key, stranger->key) == 0;
    if (same && ring->stranger.said_ns != 0 && ring->now_ns - ring->stranger.said_ns < SAY_NS) {
        return false;
    }
    (void)snprintf(ring->stranger.key, sizeof ring->stranger.key, "%s", stranger->key);
    ring->stranger.said_ns = ring->now_ns;
    return true;
}

rp_err rp_strangers_look(rp_ring *ring, rp_record *record, uint64_t step) {
    rp_err err = RP_OK;
    RP_ASSERT(ring->stranger.said_ns <= ring->now_ns);
    for (uint32_t k = 0; err == RP_OK && record && k < ring->count; k++) {
        rp_board_state *board = &ring->board[k];
        if (!board->address.dials || !board->control) {
            board->kept_out.strangers = 0;
            continue;
        }
        const rp_stranger stranger = rp_link_stranger_of(board->control);
        if (stranger.count > board->kept_out.strangers && is_news(ring, &stranger)) {
            err = say_stranger(ring, &stranger, record, step);
        }
        board->kept_out.strangers = stranger.count;
    }
    return err;
}
