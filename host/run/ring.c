#include <stdio.h>
#include <string.h>

#include "run/links.h"
#include "run/runfile_own.h"
#include "run/where.h"

enum { WAIT_S = 30, SPARE_WAIT_S = 2, ORPHAN_S = 60, COPY_STEPS_FIRST = 8, THREADS_MAX = 1024 };

/* `listen`: the address at which boards that dial reach this host. */
static rp_err read_listen(rp_node *ring, rp_runfile *run) {
    const rp_err err = rp_node_string(ring, "listen", &run->listen);
    if (err != RP_OK || (run->listen && rp_roster_is_address(run->listen))) {
        return err;
    }
    if (run->listen) {
        return rp_node_fail(rp_node_find(ring, "listen"),
                            "expected " RP_ROSTER_ADDRESS ", found '%s'", run->listen);
    }
    for (uint32_t i = 0; !run->local && i < run->boards; i++) {
        if (run->roster[i].dials) {
            return rp_node_fail(ring,
                                "listen: is missing, but board '%s' of the roster dials this "
                                "host: expected the address to listen at, as in "
                                "tcp://0.0.0.0:7100",
                                run->roster[i].name);
        }
    }
    return RP_OK;
}

static rp_err read_link(rp_arena *arena, rp_node *link, rp_runfile *run) {
    const char **names = NULL;
    rp_err err = RP_OK;
    if (run->roster) {
        RP_TRY(RP_ARENA_NEW(arena, run->boards, &names));
    }
    for (uint32_t i = 0; run->roster && i < run->boards; i++) {
        names[i] = run->roster[i].name;
    }
    run->emulate = true;
    RP_TRY(rp_links_read(arena, link, run->boards, names, &run->link, &run->hops));
fail:
    return err;
}

/* "1/200": one of 200 microbatches is computed again by another board. */
static rp_err read_verify(rp_node *ring, rp_runfile *run) {
    rp_node *node = rp_node_find(ring, "verify");
    const char *text = NULL;
    unsigned long long every = 0;
    int used = 0;
    rp_err err = RP_OK;
    if (!node) {
        return RP_OK;
    }
    RP_TRY(rp_node_string(ring, "verify", &text));
    if (sscanf(text, "1/%9llu%n", &every, &used) != 1 || text[used] != '\0' || every == 0) {
        return rp_node_fail(node,
                            "expected the share of microbatches to verify as 1/NUMBER, as in "
                            "1/200, found '%s'",
                            text);
    }
    if (run->boards < 2) {
        return rp_node_fail(node, "needs at least two boards, because one board verifies another");
    }
    run->safety.verify = (uint32_t)every;
fail:
    return err;
}

/* auto: the first copies measure the cost, from which the controller derives the interval. */
static rp_err read_copies(rp_node *ring, rp_runfile *run) {
    const rp_node *node = rp_node_find(ring, "copy_steps");
    run->safety.copy_auto =
        node && rp_node_is_scalar(node) && strcmp(rp_node_text(node), "auto") == 0;
    run->safety.copy_steps = run->safety.copy_auto ? COPY_STEPS_FIRST : 0;
    return run->safety.copy_auto
               ? RP_OK
               : rp_node_u32(ring, "copy_steps", 0, RP_COPY_STEPS_MAX, &run->safety.copy_steps);
}

/* Reduces the ring to the boards of one lane. */
static rp_err deal_boards(rp_arena *arena, const rp_node *ring, rp_runfile *run) {
    rp_err err = RP_OK;
    if (run->listen) {
        return rp_node_fail(ring, "listen: a run with lanes has several controllers, and a board "
                                  "can dial only one: expected a roster without boards that dial");
    }
    if (run->roster) {
        RP_TRY(rp_lanes_deal(arena, &run->lanes, ring, &run->roster, &run->boards, &run->spares));
    }
    if (run->safety.at_least > run->boards || (run->safety.copy_steps > 0 && run->boards == 1)) {
        return rp_node_fail(ring,
                            "at_least, copy_steps: a lane has only %u boards; expected at_least up "
                            "to that, and copy_steps only with two boards or more",
                            run->boards);
    }
fail:
    return err;
}

/* A number for all local boards, or a list with one for each. */
static rp_err read_threads(rp_arena *arena, rp_node *ring, rp_runfile *run) {
    const rp_node *node = rp_node_find(ring, "threads");
    uint32_t *each;
    rp_err err;
    if (!node || !rp_node_is_list(node)) {
        return rp_node_u32(ring, "threads", 0, THREADS_MAX, &run->threads);
    }
    if (run->roster || rp_node_count(node) != run->boards) {
        return rp_node_fail(node,
                            run->roster ? "a list is for local boards; a board of a roster gets "
                                          "its number from ringpipe-agent --threads"
                                        : "expected one number, or a list with one for each of "
                                          "the %u boards",
                            run->boards);
    }
    RP_TRY(RP_ARENA_NEW(arena, run->boards, &each));
    for (uint32_t k = 0; k < run->boards; k++) {
        RP_TRY(rp_node_item_u32(node, k, 0, THREADS_MAX, &each[k]));
    }
    run->board_threads = each;
fail:
    return err;
}

const rp_throttle *rp_runfile_throttle_of(const rp_runfile *run, uint32_t board) {
    char place[16];
    (void)snprintf(place, sizeof place, "%u", board);
    return rp_throttles_of(&run->throttle, run->roster ? run->roster[board].name : place);
}

uint64_t rp_runfile_memory_of(const rp_runfile *run, uint32_t board) {
    char place[16];
    (void)snprintf(place, sizeof place, "%u", board);
    return rp_memories_of(&run->memory, run->roster ? run->roster[board].name : place);
}

rp_err rp_runfile_read_ring(rp_arena *arena, rp_node *root, rp_runfile *run) {
    static const char *const keys[] = {
        "boards",     "board",    "roster",   "where",  "wait",   "spare_wait", "orphan_wait",
        "copy_steps", "at_least", "spare",    "link",   "listen", "threads",    "memory_mb",
        "memory_mib", "pace",     "throttle", "verify", NULL};
    rp_node *ring;
    const char *roster = NULL;
    rp_where where;
    rp_err err;
    run->boards = 1;
    run->local = true;
    run->board = "auto";
    run->safety.at_least = 1;
    run->safety.wait_s = WAIT_S;
    run->safety.spare_wait_s = SPARE_WAIT_S;
    run->safety.orphan_s = ORPHAN_S;
    RP_TRY(rp_section_map(root, "ring", "", &ring));
    if (!ring) {
        return RP_OK;
    }
    RP_TRY(rp_node_keys(ring, keys));
    if (!rp_node_find(ring, "roster")) {
        RP_TRY(rp_node_u32(ring, "boards", 1, RP_CUT_STAGES_MAX, &run->boards));
    }
    RP_TRY(rp_node_string(ring, "board", &run->board));
    RP_TRY(rp_node_u32(ring, "wait", 0, 86400, &run->safety.wait_s));
    RP_TRY(rp_node_f64(ring, "spare_wait", 0, 86400, &run->safety.spare_wait_s));
    RP_TRY(rp_node_u32(ring, "orphan_wait", 1, 86400, &run->safety.orphan_s));
    RP_TRY(read_copies(ring, run));
    RP_TRY(rp_node_string(ring, "roster", &roster));
    RP_TRY(rp_where_read(arena, ring, &where));
    if (where.at && !roster) {
        return rp_node_fail(where.at, "chooses boards of a roster, but `roster` is missing");
    }
    if (roster) {
        if (rp_node_find(ring, "boards")) {
            return rp_node_fail(ring, "`boards` and `roster` exclude each other: remove one; the "
                                      "number of boards of a roster follows from it");
        }
        run->local = false;
        RP_TRY(rp_roster_read(arena, roster, &run->roster, &run->boards));
        RP_TRY(rp_where_choose(&where, roster, run->roster, &run->boards));
    }
    RP_TRY(read_threads(arena, ring, run));
    RP_TRY(rp_memories_read(arena, ring, run->roster, run->boards, &run->memory));
    RP_TRY(rp_throttles_read(arena, ring, run->roster, run->boards, &run->throttle));
    if (run->safety.copy_steps > 0 && run->boards == 1) {
        return rp_node_fail(ring,
                            "copy_steps: needs at least two boards, because a neighbour keeps the "
                            "copy");
    }
    RP_TRY(rp_node_u32(ring, "at_least", 1, run->boards, &run->safety.at_least));
    RP_TRY(rp_spares_read(ring, run->roster, &run->boards, &run->spares));
    RP_TRY(read_listen(ring, run));
    RP_TRY(run->lanes.count > 0 ? deal_boards(arena, ring, run) : RP_OK);
    rp_node *link = rp_node_find(ring, "link");
    if (link) {
        RP_TRY(read_link(arena, link, run));
    }
    RP_TRY(read_verify(ring, run));
fail:
    return err;
}
