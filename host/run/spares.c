#include "run/spares.h"

#include <string.h>

/* Looks among the first `boards` of the roster. The `listed` ones after them are already taken. */
static rp_err find_board(const rp_node *item, const rp_roster_entry *roster, uint32_t boards,
                         uint32_t listed, uint32_t *out) {
    for (uint32_t k = 0; k < boards + listed; k++) {
        if (strcmp(roster[k].name, rp_node_text(item)) == 0) {
            *out = k;
            return k < boards
                       ? RP_OK
                       : rp_node_fail(item, "board '%s' is listed twice", rp_node_text(item));
        }
    }
    return rp_node_fail(item, "board '%s' is not in the roster", rp_node_text(item));
}

static void move_to_end(rp_roster_entry *roster, uint32_t board, uint32_t count) {
    const rp_roster_entry entry = roster[board];
    memmove(&roster[board], &roster[board + 1], (count - board - 1) * sizeof *roster);
    roster[count - 1] = entry;
}

static rp_err take_name(const rp_node *item, rp_roster_entry *roster, uint32_t *boards,
                        uint32_t *spares) {
    uint32_t board = 0;
    rp_err err;
    if (!rp_node_is_scalar(item)) {
        return rp_node_fail(item, "expected names of boards");
    }
    RP_TRY(find_board(item, roster, *boards, *spares, &board));
    if (roster[board].dials) {
        return rp_node_fail(item,
                            "board '%s' dials the host (address: dials); a spare needs an address "
                            "that its neighbours can reach",
                            roster[board].name);
    }
    move_to_end(roster, board, *boards + *spares);
    (*boards)--;
    (*spares)++;
fail:
    return err;
}

rp_err rp_spares_read(rp_node *ring, rp_roster_entry *roster, uint32_t *boards, uint32_t *spares) {
    rp_node *names = rp_node_find(ring, "spare");
    rp_err err = RP_OK;
    if (!names) {
        return RP_OK;
    }
    if (!roster) {
        return rp_node_fail(names,
                            "needs `ring.roster`, which lists the spare boards; local agents "
                            "are restarted instead");
    }
    if (!rp_node_is_list(names)) {
        return rp_node_fail(names, "expected a list of names, like [east, west]");
    }
    for (uint32_t i = 0; i < rp_node_count(names); i++) {
        RP_TRY(take_name(rp_node_item(names, i), roster, boards, spares));
    }
    if (*boards == 0) {
        return rp_node_fail(names, "names every board of the roster; at least one must remain in "
                                   "the ring");
    }
fail:
    return err;
}

rp_err rp_spares_arrange(const rp_node *names, rp_roster_entry *roster, uint32_t *boards,
                         uint32_t *spares) {
    const uint32_t all = *boards;
    rp_err err = RP_OK;
    if (!roster) {
        return rp_node_fail(names, "a list needs `ring.roster`, which has these boards");
    }
    if (!rp_node_is_list(names) || rp_node_count(names) == 0) {
        return rp_node_fail(names, "expected all, auto, or a list of boards in their order");
    }
    for (uint32_t i = 0; i < rp_node_count(names); i++) { /* unnamed boards end up first */
        uint32_t board = 0;
        const rp_node *item = rp_node_item(names, i);
        if (!rp_node_is_scalar(item)) {
            return rp_node_fail(item, "expected names of boards");
        }
        RP_TRY(find_board(item, roster, all - i, i, &board));
        move_to_end(roster, board, all);
    }
    while (*boards > rp_node_count(names)) {
        rp_spares_leave(roster, boards, spares, 0);
    }
fail:
    return err;
}

uint32_t rp_spares_untried(const rp_roster_entry *roster, uint32_t boards, uint32_t spares,
                           uint32_t tried) {
    uint32_t count = 0;
    for (uint32_t i = 0; i + tried < spares; i++) {
        count += !roster[boards + i].dials;
    }
    return count;
}

bool rp_spares_take(rp_roster_entry *roster, uint32_t boards, uint32_t spares, uint32_t lost) {
    const uint32_t count = boards + spares;
    uint32_t spare = boards;
    while (spare < count && roster[spare].dials) {
        spare++; /* a lost board that dials: new neighbours may not be able to reach it */
    }
    if (spare == count) {
        return false;
    }
    const rp_roster_entry entry = roster[lost];
    roster[lost] = roster[spare];
    roster[spare] = entry;
    roster[spare].place = roster[lost].place;
    roster[lost].place = entry.place;
    move_to_end(roster, spare, count);
    return true;
}

void rp_spares_leave(rp_roster_entry *roster, uint32_t *boards, uint32_t *spares, uint32_t lost) {
    RP_ASSERT(*boards > 1 && lost < *boards);
    move_to_end(roster, lost, *boards + *spares);
    (*boards)--;
    (*spares)++;
}

void rp_spares_put_aside(rp_roster_entry *roster, uint32_t *boards, uint32_t *spares,
                         uint32_t board) {
    RP_ASSERT(*boards > 1 && board < *boards);
    move_to_end(roster, board, *boards);
    (*boards)--;
    (*spares)++;
}

uint32_t rp_spares_return(rp_roster_entry *roster, uint32_t *boards, uint32_t *spares,
                          uint32_t spare) {
    const rp_roster_entry entry = roster[spare];
    uint32_t at = 0;
    RP_ASSERT(spare >= *boards && spare < *boards + *spares);
    while (at < *boards && roster[at].place < entry.place) {
        at++;
    }
    memmove(&roster[at + 1], &roster[at], (spare - at) * sizeof *roster);
    roster[at] = entry;
    (*boards)++;
    (*spares)--;
    return at;
}
