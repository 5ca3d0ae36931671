/* Boards of a roster that have not greeted. Threads outside the links find out why. The cause is
 * logged early, and ends the wait if waiting does not help. A run that had its boards before keeps
 * waiting. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "ring/missing.h"

/* Delay before a cause is looked up. Healthy boards greet sooner; one that dials tries once a
 * second. */
static const int64_t ASK_NS = RP_NS_PER_S;
static const int64_t DIALS_NS = 3 * RP_NS_PER_S;

static const rp_cause *find_cause(const rp_missing *m, uint32_t board) {
    const rp_board_state *state = &m->ring->board[board];
    const int64_t waited_ns = m->ring->now_ns - m->ring->greeted_ns;
    const bool was_greeted =
        state->hello || state->device; /* before other boards were greeted again */
    if (!m->find_cause || m->run->local || was_greeted || m->is_return ||
        waited_ns < (state->address.dials ? DIALS_NS : ASK_NS)) {
        return NULL;
    }
    const rp_cause *cause = m->find_cause(m->find_self, &m->run->roster[board], &m->ring->keys);
    return cause && cause->err != RP_OK ? cause : NULL;
}

/* Waiting does not help. A board that still holds this very run of a dead controller is an
 * exception. */
static bool is_hopeless(const rp_missing *m, const rp_cause *cause) {
    return cause && cause->hopeless && cause->run != m->ring->identity.id;
}

/* While another board is only late, a missing one may still be replaced by a spare. */
bool rp_missing_ends_wait(const rp_missing *m) {
    uint32_t hopeless = 0;
    uint32_t missing = 0;
    for (uint32_t k = 0; k < m->ring->count; k++) {
        missing += !m->ring->board[k].hello;
        hopeless += is_hopeless(m, find_cause(m, k));
    }
    return hopeless > 0 && !m->warms && (hopeless == missing || m->spares == 0);
}

uint32_t rp_missing_first(const rp_missing *m, uint32_t otherwise) {
    uint32_t k = 0;
    while (k < m->ring->count && !is_hopeless(m, find_cause(m, k))) {
        k++;
    }
    return k < m->ring->count ? k : otherwise;
}

void rp_missing_say(const rp_missing *m, rp_ring *ring, int64_t longest_ns) {
    RP_ASSERT(m->ring == ring);
    for (uint32_t k = 0; k < m->ring->count; k++) {
        rp_board_state *board = &ring->board[k];
        const rp_cause *cause = find_cause(m, k);
        if (!cause || board->machine.cause_said) {
            continue;
        }
        board->machine.cause_said = true;
        if (!is_hopeless(m, cause)) { /* otherwise the error contains it */
            rp_log_warn("board %s: %s; waiting for it, %" PRId64 " s at most", board->name,
                        cause->text, longest_ns / RP_NS_PER_S);
        }
    }
}

static rp_err fail_for(const rp_missing *m, const rp_cause *cause, const char *name,
                       int64_t waited_ns) {
    const rp_err err = cause->err == RP_ERR_REFUSED ? RP_ERR_REFUSED : RP_ERR_TIMEOUT;
    char waited[48] = "";
    if (!is_hopeless(m, cause)) {
        (void)snprintf(waited, sizeof waited, "; no hello within %" PRId64 " s",
                       waited_ns / RP_NS_PER_S);
    }
    return rp_fail(err, "board %s: %s%s", name, cause->text, waited);
}

rp_err rp_missing_fail(const rp_missing *m, uint32_t k, int64_t waited_ns) {
    const rp_board_state *board = &m->ring->board[k];
    const rp_silent_why why = board->silence.why;
    if (why == RP_SILENT_REFUSES) {
        return rp_ring_why_silent(m->ring, k);
    }
    if (board->address.dials && rp_link_health_of(board->control).last_heard_ns == 0) {
        return rp_ring_never_came(m->ring, k, waited_ns);
    }
    const rp_cause *cause = find_cause(m, k);
    if (cause) {
        return fail_for(m, cause, board->name, waited_ns);
    }
    return rp_fail(RP_ERR_TIMEOUT, "board %s at %s: no hello within %" PRId64 " s%s%s", board->name,
                   board->address.endpoint, waited_ns / RP_NS_PER_S,
                   m->is_return ? " (ring.wait)" : "",
                   why == RP_SILENT_BROKEN_OFF
                       ? ": every handshake there was broken off, as a wrong key causes"
                   : why == RP_SILENT_UNANSWERED
                       ? ": its machine accepts the connection, but its agent does not answer: "
                         "it is stopped or suspended, or has too much to do"
                       : "");
}
