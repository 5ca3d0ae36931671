/* Boards that had left the ring and answer again: they join it at a pause. */
#include <stdio.h>

#include "control/controller_own.h"

bool rp_join_is_possible(const rp_controller *c) {
    return c->machine.interrupts == 0 && c->machine.state >= RP_CONTROL_TRAIN &&
           c->machine.state <= RP_CONTROL_DRAIN;
}

/* False: the board does not fit, for example because its neighbours could not reach it. */
static bool join_board(rp_controller *c, uint32_t spare) {
    const uint32_t at = rp_arrangement_return_board(c->setup, spare);
    rp_split_count_stages(c->setup, false);
    if (rp_runfile_check_cut(c->run) != RP_OK) {
        rp_arrangement_leave_board(c->setup, at);
        rp_split_count_stages(c->setup, false);
        return false;
    }
    rp_away_join(&c->ring, at);
    return true;
}

/* Boards that do not fit become the last spares, so the spares are visited from the end. */
bool rp_join_boards(rp_controller *c) {
    char *names = c->machine.joined;
    const size_t bytes = sizeof c->machine.joined;
    const bool in_pairs = c->run->method.kind->splits && !rp_split_is_listed(c->setup);
    size_t used = 0;
    names[0] = '\0';
    if (!rp_join_is_possible(c) || !rp_away_is_wanted(&c->ring) ||
        rp_keep_saved_step(c->keep) != c->position.step) {
        return false;
    }
    const uint32_t most = c->ring.count + rp_away_count_joining(&c->ring, in_pairs);
    for (uint32_t i = c->run->spares; i-- > 0 && c->ring.count < most;) {
        const char *name = c->run->roster[c->run->boards + i].name;
        if (rp_away_has_answered(&c->ring, name) && join_board(c, c->run->boards + i)) {
            const int more = snprintf(names + used, bytes - used, "%s%s", used ? ", " : "", name);
            used += more > 0 && used + (size_t)more < bytes ? (size_t)more : 0;
        }
    }
    if (in_pairs && c->ring.count % 2 > 0) { /* one did not fit */
        rp_arrangement_leave_board(c->setup, c->ring.count - 1);
        rp_ring_leave(&c->ring, c->ring.count - 1);
        rp_split_count_stages(c->setup, false);
    }
    if (used > 0) {
        rp_away_close(&c->ring);
    }
    return used > 0;
}
