/* Greets any number of boards. */
#include "greet/cause.h"
#include "greet/probe.h"
#include "reach/reach_own.h"

enum { LINK_FILES = 6 /* files that a link takes at most */ };

/* A board that is connected but silent for this long serves another host. */
static const int64_t BUSY_NS = 2 * RP_NS_PER_S;

typedef struct {
    rp_arena *arena;
    const rp_reach_options *options;
    int64_t wait_ns;
    rp_fleet *out;
    rp_probe *probe; /* one per board; boards that dial are not tried */
} fleet;

/* ---- addresses ------------------------------------------------------------------------------- */

static rp_err probe_all(fleet *f) {
    const uint32_t count = f->options->count;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(f->arena, count, &f->probe));
    for (uint32_t k = 0; k < count; k++) {
        const rp_roster_entry *entry = &f->options->roster[k];
        f->probe[k] = (rp_probe){.endpoint = entry->dials ? NULL : entry->endpoint};
    }
    RP_TRY(rp_probe_all(f->options->clock, f->probe, count, f->wait_ns, &f->out->waits));
    for (uint32_t k = 0; k < count; k++) {
        if (!f->out->board[k].dials) {
            f->out->board[k].state = RP_GREET_SILENT;
            f->out->board[k].why = rp_cause_of_probe(f->probe[k].state);
        }
    }
fail:
    return err;
}

/* ---- greeting -------------------------------------------------------------------------------- */

/* Greets the boards listed in `at` concurrently. */
static rp_err greet_group(fleet *f, const uint32_t *at, uint32_t count) {
    rp_greet_options options = {.count = count,
                                .listen = f->options->listen,
                                .keys = f->options->keys,
                                .clock = f->options->clock,
                                .link = "control",
                                .who = "boards",
                                .stopped = f->options->stopped,
                                .context = f->options->context,
                                .features = RP_WIRE_FEATURE_TRIALS,
                                .mute_ns = BUSY_NS};
    rp_roster_entry *entry;
    rp_greet *greet = NULL;
    bool decided;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(f->arena, count, &entry));
    for (uint32_t i = 0; i < count; i++) {
        entry[i] = f->options->roster[at[i]];
        if (!entry[i]
                 .dials) { /* looking up a name in a link's thread would delay all other links */
            entry[i].endpoint = f->probe[at[i]].numeric;
        }
    }
    options.board = entry;
    RP_TRY(rp_greet_open(f->arena, &options, &greet));
    RP_TRY(rp_greet_wait(greet, f->wait_ns, &decided));
    f->out->waits += !decided;
    for (uint32_t i = 0; i < count; i++) {
        rp_reach_board *board = &f->out->board[at[i]];
        reach_note(greet, i, board);
        board->why = board->state == RP_GREET_SILENT ? rp_cause_of_probe(RP_PROBE_OPEN) : "";
        f->out->strangers += rp_greet_look(greet, i).strangers;
    }
fail:
    rp_greet_close(&greet);
    return err;
}

/* Boards that dial share one socket of one transport, so all of them are in the first group. */
static rp_err greet_all(fleet *f) {
    const uint32_t count = f->options->count;
    uint32_t *at;
    uint32_t dials = 0;
    uint32_t all = 0;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(f->arena, count, &at));
    for (uint32_t k = 0; k < count; k++) {
        at[dials] = k;
        dials += f->options->roster[k].dials;
    }
    all = dials;
    for (uint32_t k = 0; k < count; k++) {
        if (!f->options->roster[k].dials && f->probe[k].state == RP_PROBE_OPEN) {
            at[all++] = k;
        }
    }
    const uint32_t others = all - dials;
    const uint32_t room =
        rp_probe_room(others < RP_FLEET_AT_ONCE ? others + 1 : RP_FLEET_AT_ONCE, LINK_FILES);
    for (uint32_t from = 0; from < all;) {
        const uint32_t most = from == 0 ? dials + room : room;
        const uint32_t some = all - from < most ? all - from : most;
        RP_TRY(greet_group(f, at + from, some));
        from += some;
    }
fail:
    return err;
}

rp_err rp_fleet_greet(rp_arena *arena, const rp_reach_options *options, int64_t wait_ns,
                      rp_fleet *out) {
    fleet f = {.arena = arena, .options = options, .wait_ns = wait_ns, .out = out};
    rp_err err;
    *out = (rp_fleet){0};
    RP_TRY(RP_ARENA_NEW(arena, options->count, &out->board));
    for (uint32_t k = 0; k < options->count; k++) {
        out->board[k] = reach_board(&options->roster[k]);
    }
    RP_TRY(probe_all(&f));
    RP_TRY(greet_all(&f));
fail:
    return err;
}
