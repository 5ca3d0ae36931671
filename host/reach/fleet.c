#include "reach/fleet.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "reach/probe.h"
#include "reach/reach_own.h"

enum {
    GROUP = 64,    /* boards of one transport: its library bounds how many sockets it has */
    LINK_FILES = 6 /* that a link takes, at most */
};

/* One that has taken our key and says nothing for so long serves somebody else. */
static const int64_t BUSY_NS = 2 * RP_NS_PER_S;

/* Boards of one transport. */
typedef struct {
    reach_work work;
    rp_reach_options options;
    rp_reach found;
    uint32_t *at; /* in the roster */
} group;

typedef struct {
    rp_arena *arena;
    const rp_reach_options *options;
    int64_t wait_ns;
    bool (*stopped)(void *context);
    void *context;
    rp_fleet *out;
    rp_probe *probe; /* one a board; of those that dial nothing is tried */
    group *groups;
    uint32_t group_count;
} fleet;

/* ---- addresses ------------------------------------------------------------------------------- */

static const char *word_of(rp_probe_state state) {
    return state == RP_PROBE_REFUSED   ? "nobody listens there"
           : state == RP_PROBE_NO_NAME ? "its name has no address"
                                       : "its machine does not answer";
}

static rp_err probe_all(fleet *f) {
    const uint32_t count = f->options->count;
    rp_probe *some;
    uint32_t have = 0;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(f->arena, count, &f->probe));
    RP_TRY(RP_ARENA_NEW(f->arena, count, &some));
    for (uint32_t k = 0; k < count; k++) {
        if (!f->options->roster[k].dials) {
            some[have++] = (rp_probe){.endpoint = f->options->roster[k].endpoint};
        }
    }
    RP_TRY(rp_probe_all(f->options->clock, some, have, f->wait_ns, &f->out->waits));
    for (uint32_t k = count; k-- > 0;) {
        rp_reach_board *board = &f->out->board[k];
        if (!board->dials) {
            f->probe[k] = some[--have];
            board->state = RP_REACH_SILENT;
            board->why = f->probe[k].state == RP_PROBE_OPEN ? "" : word_of(f->probe[k].state);
        }
    }
fail:
    return err;
}

/* ---- groups ---------------------------------------------------------------------------------- */

/* By its number: a name that is looked up in a transport's thread would hold up the others. */
static rp_err numeric(rp_arena *arena, const rp_probe *probe, const char **out) {
    char host[INET_ADDRSTRLEN];
    char *text;
    (void)inet_ntop(AF_INET, &probe->address.sin_addr, host, sizeof host);
    const rp_err err = rp_arena_printf(arena, &text, "tcp://%s:%u", host,
                                       (unsigned)ntohs(probe->address.sin_port));
    if (err == RP_OK) {
        *out = text;
    }
    return err;
}

/* The boards of `at`: all dial, or none does. */
static rp_err open_group(fleet *f, const uint32_t *at, uint32_t count) {
    group *g = &f->groups[f->group_count];
    const rp_links_options links = {.clock = f->options->clock, .keys = f->options->keys};
    rp_roster_entry *roster;
    rp_err err;
    *g = (group){.options = *f->options, .found = {.board_count = count}};
    RP_TRY(RP_ARENA_NEW(f->arena, count, &roster));
    RP_TRY(RP_ARENA_NEW(f->arena, count, &g->at));
    RP_TRY(RP_ARENA_NEW(f->arena, count, &g->found.board));
    RP_TRY(RP_ARENA_NEW(f->arena, count, &g->work.end));
    for (uint32_t i = 0; i < count; i++) {
        g->at[i] = at[i];
        roster[i] = f->options->roster[at[i]];
        g->found.board[i] = f->out->board[at[i]];
        RP_TRY(roster[i].dials ? RP_OK : numeric(f->arena, &f->probe[at[i]], &roster[i].endpoint));
    }
    g->options.roster = roster;
    g->options.count = count;
    g->work.options = &g->options;
    g->work.out = &g->found;
    RP_TRY(rp_links_open(f->arena, &links, &g->work.links));
    f->group_count++; /* from here on it is closed */
    for (uint32_t i = 0; i < count; i++) {
        RP_TRY(reach_open(&g->work, i));
    }
fail:
    return err;
}

static rp_err open_groups(fleet *f, const uint32_t *at, uint32_t count) {
    rp_err err = RP_OK;
    for (uint32_t first = 0; first < count; first += GROUP) {
        RP_TRY(open_group(f, at + first, count - first < GROUP ? count - first : GROUP));
    }
fail:
    return err;
}

/* What was found goes to the roster's places. */
static void close_groups(fleet *f) {
    for (uint32_t i = 0; i < f->group_count; i++) {
        group *g = &f->groups[i];
        for (uint32_t k = 0; k < g->found.board_count; k++) {
            rp_reach_board *board = &f->out->board[g->at[k]];
            *board = g->found.board[k];
            board->why = board->state == RP_REACH_SILENT ? "who listens there does not answer" : "";
        }
        f->out->strangers += g->found.strangers;
        rp_links_close(&g->work.links);
    }
    f->group_count = 0;
}

/* ---- greeting -------------------------------------------------------------------------------- */

static bool is_decided(reach_end *end, int64_t now_ns) {
    const bool connected = rp_link_health_of(end->control).connected;
    end->connected_ns = !connected ? 0 : end->connected_ns ? end->connected_ns : now_ns;
    return reach_is_decided(end) || (connected && now_ns - end->connected_ns >= BUSY_NS);
}

static bool are_decided(const fleet *f) {
    const int64_t now_ns = rp_clock_now_ns(f->options->clock);
    bool all = true;
    for (uint32_t i = 0; i < f->group_count; i++) {
        const group *g = &f->groups[i];
        for (uint32_t k = 0; k < g->options.count; k++) {
            all = is_decided(&g->work.end[k], now_ns) && all;
        }
    }
    return all;
}

static rp_err await_answers(fleet *f) {
    const int64_t end_ns = rp_clock_now_ns(f->options->clock) + f->wait_ns;
    bool decided = false;
    rp_err err = RP_OK;
    while (!(decided = are_decided(f)) && rp_clock_now_ns(f->options->clock) < end_ns) {
        if (f->stopped(f->context)) {
            return rp_fail(RP_ERR_INTERRUPTED, "boards: stopped");
        }
        for (uint32_t i = 0; i < f->group_count; i++) {
            RP_TRY(reach_round(&f->groups[i].work, REACH_NAP_NS / f->group_count));
        }
    }
    f->out->waits += !decided;
    for (uint32_t i = 0; i < f->group_count; i++) {
        reach_note_states(&f->groups[i].work);
    }
fail:
    return err;
}

/* Those that dial share one socket of one transport, so all of them come with the first others. */
static rp_err greet(fleet *f, const uint32_t *others, uint32_t count, const uint32_t *dialling,
                    uint32_t dialling_count) {
    rp_err err;
    RP_TRY(dialling_count > 0 ? open_group(f, dialling, dialling_count) : RP_OK);
    RP_TRY(open_groups(f, others, count));
    RP_TRY(f->group_count > 0 ? await_answers(f) : RP_OK);
fail:
    close_groups(f);
    return err;
}

static rp_err greet_all(fleet *f) {
    const uint32_t count = f->options->count;
    uint32_t *dialling;
    uint32_t *others;
    uint32_t dials = 0;
    uint32_t have = 0;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(f->arena, count, &dialling));
    RP_TRY(RP_ARENA_NEW(f->arena, count, &others));
    for (uint32_t k = 0; k < count; k++) {
        if (f->options->roster[k].dials) {
            dialling[dials++] = k;
        } else if (f->probe[k].state == RP_PROBE_OPEN) {
            others[have++] = k;
        }
    }
    const uint32_t room =
        rp_probe_room(have < RP_FLEET_AT_ONCE ? have + 1 : RP_FLEET_AT_ONCE, LINK_FILES);
    RP_TRY(RP_ARENA_NEW(f->arena, room / GROUP + 3, &f->groups));
    uint32_t at = 0;
    do {
        const uint32_t some = have - at < room ? have - at : room;
        RP_TRY(greet(f, others + at, some, dialling, at == 0 ? dials : 0));
        at += some;
    } while (at < have);
fail:
    return err;
}

rp_err rp_fleet_look(rp_arena *arena, const rp_reach_options *options, int64_t wait_ns,
                     bool (*stopped)(void *context), void *context, rp_fleet *out) {
    fleet f = {.arena = arena,
               .options = options,
               .wait_ns = wait_ns,
               .stopped = stopped,
               .context = context,
               .out = out};
    rp_err err;
    *out = (rp_fleet){0};
    RP_TRY(RP_ARENA_NEW(arena, options->count, &out->board));
    for (uint32_t k = 0; k < options->count; k++) {
        out->board[k] = (rp_reach_board){.name = options->roster[k].name,
                                         .endpoint = options->roster[k].endpoint,
                                         .dials = options->roster[k].dials,
                                         .state = RP_REACH_NOT_DIALLED,
                                         .why = ""};
    }
    RP_TRY(probe_all(&f));
    RP_TRY(greet_all(&f));
fail:
    return err;
}
