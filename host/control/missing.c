/* Boards of a roster that have not greeted yet. Threads next to the links find out why; the reason
 * is reported early, and ends the wait when waiting does not help. A run that has already had its
 * boards keeps waiting. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "control/controller_own.h"

/* Boards that are well have greeted by then; one that dials tries once a second. */
static const int64_t ASK_NS = RP_NS_PER_S;
static const int64_t DIALS_NS = 3 * RP_NS_PER_S;

bool rp_controller_is_return(const rp_controller *c) {
    return c->recovery.is_on ||
           (c->run->safety.wait_s > 0 && rp_machine_had_boards(&c->machine, c->position.step));
}

const rp_cause *rp_missing_cause(const rp_controller *c, uint32_t board) {
    const rp_board_state *state = &c->ring.board[board];
    const int64_t waited_ns = c->ring.now_ns - c->ring.greeted_ns;
    const bool was_greeted = state->hello || state->device; /* before others were greeted again */
    if (!c->env.find_cause || c->run->local || was_greeted || rp_controller_is_return(c) ||
        waited_ns < (state->address.dials ? DIALS_NS : ASK_NS)) {
        return NULL;
    }
    const rp_cause *cause =
        c->env.find_cause(c->env.find_self, &c->run->roster[board], &c->ring.keys);
    return cause && cause->err != RP_OK ? cause : NULL;
}

/* The board may still hold this very run, whose former controller has gone. */
static bool is_hopeless(const rp_controller *c, const rp_cause *cause) {
    return cause && cause->hopeless && cause->run != c->ring.identity.id;
}

/* A spare can take one place as long as no other board is just late. */
bool rp_missing_ends_wait(const rp_controller *c) {
    uint32_t hopeless = 0;
    uint32_t missing = 0;
    for (uint32_t k = 0; k < c->ring.count; k++) {
        missing += !c->ring.board[k].hello;
        hopeless += is_hopeless(c, rp_missing_cause(c, k));
    }
    return hopeless > 0 && c->options.purpose != RP_PURPOSE_WARM &&
           (hopeless == missing || rp_recovery_spares(&c->recovery, c->run) == 0);
}

/* The first missing board for which waiting does not help. */
uint32_t rp_missing_first(const rp_controller *c, uint32_t otherwise) {
    uint32_t k = 0;
    while (k < c->ring.count && !is_hopeless(c, rp_missing_cause(c, k))) {
        k++;
    }
    return k < c->ring.count ? k : otherwise;
}

void rp_missing_say(rp_controller *c, int64_t longest_ns) {
    for (uint32_t k = 0; k < c->ring.count; k++) {
        rp_board_state *board = &c->ring.board[k];
        const rp_cause *cause = rp_missing_cause(c, k);
        if (!cause || board->machine.cause_said) {
            continue;
        }
        board->machine.cause_said = true;
        if (!is_hopeless(c, cause)) { /* else the error says it */
            rp_log_warn("board %s: %s; waiting for it, %" PRId64 " s at most", board->name,
                        cause->text, longest_ns / RP_NS_PER_S);
        }
    }
}

rp_err rp_missing_fail(const rp_controller *c, uint32_t board, int64_t waited_ns) {
    const rp_cause *cause = rp_missing_cause(c, board);
    const rp_err err = cause->err == RP_ERR_REFUSED ? RP_ERR_REFUSED : RP_ERR_TIMEOUT;
    char waited[48] = "";
    if (!is_hopeless(c, cause)) {
        (void)snprintf(waited, sizeof waited, "; no hello within %" PRId64 " s",
                       waited_ns / RP_NS_PER_S);
    }
    return rp_fail(err, "board %s: %s%s", c->ring.board[board].name, cause->text, waited);
}
