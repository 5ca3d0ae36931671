/* Greets the boards of a ring together; then links between neighbours are tried. */
#include "reach/reach_own.h"

#include <string.h>

static const int64_t PONG_NS = 500 * RP_NS_PER_MS;

rp_reach_board reach_board(const rp_roster_entry *entry) {
    return (rp_reach_board){.name = entry->name,
                            .endpoint = entry->endpoint,
                            .dials = entry->dials,
                            .state = RP_GREET_NOT_DIALLED,
                            .why = ""};
}

void reach_note(const rp_greet *greet, uint32_t board, rp_reach_board *out) {
    const rp_greet_found found = rp_greet_look(greet, board);
    out->state = found.state == RP_GREET_MUTE ? RP_GREET_BUSY : found.state;
    out->round_trip_ns = found.round_trip_ns;
    if (found.hello) {
        memcpy(out->software, found.hello->software, sizeof out->software);
        memcpy(out->device, found.hello->device, sizeof out->device);
    }
}

/* Waits until all boards have answered or refused; a board that dials tries once a second. */
static rp_err greet_all(rp_greet *greet, const rp_reach_options *options, rp_reach_result *out) {
    const int64_t wait_ns = RP_REACH_NS;
    bool all;
    rp_err err;
    RP_TRY(rp_greet_wait(greet, wait_ns, &all));
    for (uint32_t k = 0; k < out->board_count; k++) {
        (void)!rp_link_ping(rp_greet_link(greet, k)); /* AGAIN: it is not there yet */
    }
    for (const int64_t until_ns = rp_clock_now_ns(options->clock) + PONG_NS;
         rp_clock_now_ns(options->clock) < until_ns;) {
        RP_TRY(rp_greet_round(greet));
    }
    for (uint32_t k = 0; k < out->board_count; k++) {
        reach_note(greet, k, &out->board[k]);
        out->strangers += rp_greet_look(greet, k).strangers;
    }
fail:
    return err;
}

static bool is_complete(const rp_reach_result *found) {
    bool complete = true;
    for (uint32_t k = 0; k < found->board_count; k++) {
        complete = complete && found->board[k].state == RP_GREET_THERE;
    }
    for (uint32_t p = 0; p < found->pair_count; p++) {
        complete = complete && (!found->pair[p].chosen || found->pair[p].way == RP_REACH_WORKS);
    }
    return complete;
}

rp_err rp_reach_check_ring(rp_arena *arena, const rp_reach_options *options, rp_reach_result *out) {
    const rp_greet_options links = {.board = options->roster,
                                    .count = options->count,
                                    .listen = options->listen,
                                    .keys = options->keys,
                                    .clock = options->clock,
                                    .link = "control",
                                    .who = "boards",
                                    .stopped = options->stopped,
                                    .context = options->context,
                                    .features = RP_WIRE_FEATURE_TRIALS,
                                    .answer = RP_KIND_TRIAL_DONE};
    rp_greet *greet = NULL;
    rp_err err;
    *out = (rp_reach_result){.board_count = options->count};
    RP_TRY(RP_ARENA_NEW(arena, options->count, &out->board));
    RP_TRY(RP_ARENA_NEW(arena, 2 * (size_t)options->count, &out->pair));
    for (uint32_t k = 0; k < options->count; k++) {
        out->board[k] = reach_board(&options->roster[k]);
    }
    RP_TRY(rp_greet_open(arena, &links, &greet));
    RP_TRY(greet_all(greet, options, out));
    RP_TRY(reach_try_pairs(greet, options, out));
    out->complete = is_complete(out);
fail:
    rp_greet_close(&greet);
    return err;
}
