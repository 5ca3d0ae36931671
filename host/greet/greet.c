#include "greet/greet.h"

#include <stdio.h>

/* Boards per transport, whose library limits the number of sockets. Boards that dial share one
 * socket, so they form the first group, whatever their number. */
enum { GROUP = 64 };

static const int64_t NAP_NS = 50 * RP_NS_PER_MS;

typedef struct {
    rp_link *link;
    uint32_t group;
    uint64_t session; /* session of the process that was greeted; 0: none was heard yet */
    uint32_t restarts;
    int64_t connected_ns; /* time of the connection; 0: not connected */
    bool said_hello, answered;
    rp_Hello hello;
    rp_Frame *answer; /* NULL: never allocated */
} seat;

struct rp_greet {
    rp_greet_options options;
    rp_arena *arena;
    seat *seat;
    rp_links **links; /* one per group; NULL: the group has no board */
    uint32_t groups, used;
};

const char *rp_greet_state_word(rp_greet_state state) {
    static const char *const words[] = {"there",   "busy",        "old", "silent",
                                        "refused", "not-dialled", "busy"};
    RP_ASSERT((unsigned)state <= RP_GREET_MUTE);
    return words[state];
}

static int64_t now(const rp_greet *g) {
    return rp_clock_now_ns(g->options.clock);
}

/* ---- one link -------------------------------------------------------------------------------- */

rp_Frame rp_greet_hello(int64_t now_ns, const char *origin) {
    rp_Frame frame = {.which_body = RP_KIND_HELLO,
                      .body.hello = {.name = "host",
                                     .software = RP_VERSION,
                                     .clock_ns = now_ns,
                                     .wire_min = RP_WIRE_MIN,
                                     .wire_max = RP_WIRE_MAX,
                                     .features = RP_WIRE_FEATURES}};
    rp_Hello *hello = &frame.body.hello;
    (void)snprintf(hello->origin, sizeof hello->origin, "%s", origin ? origin : "");
    return frame;
}

rp_err rp_greet_open_link(rp_links *links, const char *name, bool dials, const char *endpoint,
                          const char *public_text, rp_link **out) {
    const rp_link_options options = {.name = name,
                                     .bind = dials ? endpoint : NULL,
                                     .connect = dials ? NULL : endpoint,
                                     .peer_public = public_text,
                                     .window = 1,
                                     .send_window = 1,
                                     .part_bytes_max = RP_LINK_CONTROL_PART_MAX};
    return rp_link_open(links, &options, out);
}

/* ---- opening --------------------------------------------------------------------------------- */

static rp_err say_hello(const rp_greet *g, const seat *s) {
    rp_Frame hello = rp_greet_hello(now(g), NULL);
    return rp_link_send(s->link, &hello, NULL, 0, true, NULL, NULL);
}

rp_err rp_greet_again(rp_greet *g, uint32_t board) {
    const rp_roster_entry *entry = &g->options.board[board];
    seat *s = &g->seat[board];
    rp_err err;
    rp_link_close(&s->link);
    *s = (seat){.group = s->group, .answer = s->answer};
    RP_TRY(rp_greet_open_link(g->links[s->group], g->options.link, entry->dials,
                              entry->dials ? g->options.listen : entry->endpoint,
                              entry->public_text, &s->link));
    RP_TRY(say_hello(g, s));
fail:
    return err;
}

static rp_err open_board(rp_greet *g, uint32_t board, uint32_t group) {
    const rp_links_options links = {.clock = g->options.clock,
                                    .keys = g->options.keys,
                                    .transport = g->options.transport,
                                    .loop = g->options.loop};
    rp_err err;
    g->seat[board].group = group;
    if (!g->links[group]) {
        RP_TRY(rp_links_open(g->arena, &links, &g->links[group]));
        g->used++;
    }
    RP_TRY(rp_greet_again(g, board));
fail:
    return err;
}

rp_err rp_greet_open(rp_arena *arena, const rp_greet_options *options, rp_greet **out) {
    uint32_t others = 0;
    rp_greet *g = NULL;
    rp_err err;
    *out = NULL;
    RP_TRY(RP_ARENA_NEW(arena, 1, &g));
    *g = (rp_greet){.options = *options, .arena = arena, .groups = options->count / GROUP + 2};
    RP_TRY(RP_ARENA_NEW(arena, options->count, &g->seat));
    RP_TRY(RP_ARENA_NEW(arena, g->groups, &g->links));
    for (uint32_t k = 0; k < options->count; k++) {
        RP_TRY(open_board(g, k, options->board[k].dials ? 0 : 1 + others++ / GROUP));
    }
    *out = g;
fail:
    if (err != RP_OK) {
        rp_greet_close(&g);
    }
    return err;
}

void rp_greet_close(rp_greet **greet) {
    for (uint32_t i = 0; *greet && (*greet)->links && i < (*greet)->groups; i++) {
        if ((*greet)->links[i]) {
            rp_links_close(&(*greet)->links[i]);
        }
    }
    *greet = NULL;
}

/* ---- rounds ---------------------------------------------------------------------------------- */

static rp_err take_message(const rp_greet *g, seat *s, const rp_Frame *frame) {
    rp_err err = RP_OK;
    if (rp_frame_kind(frame) == RP_KIND_HELLO) {
        s->said_hello = true;
        s->hello = frame->body.hello;
    } else if (rp_frame_kind(frame) == g->options.answer) {
        RP_TRY(s->answer ? RP_OK : RP_ARENA_NEW(g->arena, 1, &s->answer));
        s->answered = true;
        *s->answer = *frame;
    }
fail:
    return err;
}

/* A restarted agent has not received the greeting. */
static rp_err meet_process(const rp_greet *g, seat *s) {
    rp_link_stats stats;
    rp_link_stats_of(s->link, &stats);
    const bool is_another = s->session != 0 && stats.peer_session != s->session;
    s->session = stats.peer_session;
    s->restarts += is_another;
    return is_another ? say_hello(g, s) : RP_OK;
}

static rp_err step_seat(const rp_greet *g, seat *s) {
    rp_message *message;
    rp_err err;
    RP_TRY(rp_link_step(s->link));
    while ((err = rp_link_recv(s->link, &message)) == RP_OK) {
        err = take_message(g, s, &message->frame);
        rp_link_release(s->link, &message);
        RP_TRY(err);
    }
    RP_TRY(err == RP_ERR_AGAIN ? RP_OK : err);
    RP_TRY(meet_process(g, s));
fail:
    return err;
}

static rp_err go_round_group(const rp_greet *g, uint32_t group) {
    rp_link *link[RP_LINKS_WAIT_MAX];
    uint32_t count = 0;
    rp_err err;
    for (uint32_t k = 0; k < g->options.count; k++) {
        if (g->seat[k].group == group) {
            RP_TRY(step_seat(g, &g->seat[k]));
            if (count < RP_LINKS_WAIT_MAX) { /* boards that dial share one socket */
                link[count++] = g->seat[k].link;
            }
        }
    }
    RP_TRY(rp_link_wait(link, count, NULL, 0, NAP_NS / g->used));
fail:
    return err;
}

rp_err rp_greet_round(rp_greet *g) {
    rp_err err = RP_OK;
    if (g->options.stopped && g->options.stopped(g->options.context)) {
        return rp_fail(RP_ERR_INTERRUPTED, "%s: stopped", g->options.who);
    }
    for (uint32_t i = 0; i < g->groups; i++) {
        RP_TRY(g->links[i] ? go_round_group(g, i) : RP_OK);
    }
fail:
    return err;
}

static bool is_decided(const rp_greet *g, seat *s) {
    const rp_link_health health = rp_link_health_of(s->link);
    const int64_t at_ns = now(g);
    s->connected_ns = !health.connected ? 0 : s->connected_ns ? s->connected_ns : at_ns;
    return s->said_hello || health.auth_failed ||
           (g->options.mute_ns > 0 && health.connected &&
            at_ns - s->connected_ns >= g->options.mute_ns);
}

rp_err rp_greet_wait(rp_greet *g, int64_t wait_ns, bool *all) {
    const int64_t end_ns = now(g) + wait_ns;
    rp_err err = RP_OK;
    for (;;) {
        *all = true;
        for (uint32_t k = 0; k < g->options.count; k++) {
            *all = is_decided(g, &g->seat[k]) && *all;
        }
        if (*all || now(g) >= end_ns) {
            break;
        }
        RP_TRY(rp_greet_round(g));
    }
fail:
    return err;
}

/* ---- what was found -------------------------------------------------------------------------- */

static rp_greet_state state_of(const rp_greet *g, uint32_t board) {
    const uint64_t needed = g->options.features;
    const seat *s = &g->seat[board];
    const rp_link_health health = rp_link_health_of(s->link);
    if (s->said_hello) {
        return s->hello.busy                            ? RP_GREET_BUSY
               : (s->hello.features & needed) == needed ? RP_GREET_THERE
                                                        : RP_GREET_OLD;
    }
    if (health.auth_failed) {
        return RP_GREET_REFUSED;
    }
    if (g->options.board[board].dials) {
        return health.last_heard_ns ? RP_GREET_MUTE : RP_GREET_NOT_DIALLED;
    }
    return health.connected ? RP_GREET_MUTE : RP_GREET_SILENT;
}

rp_greet_found rp_greet_look(const rp_greet *g, uint32_t board) {
    const seat *s = &g->seat[board];
    rp_link_stats stats;
    RP_ASSERT(board < g->options.count);
    rp_link_stats_of(s->link, &stats);
    return (rp_greet_found){.state = state_of(g, board),
                            .hello = s->said_hello ? &s->hello : NULL,
                            .round_trip_ns = stats.round_trip_ns,
                            .restarts = s->restarts,
                            .strangers = stats.strangers};
}

rp_link *rp_greet_link(const rp_greet *g, uint32_t board) {
    return g->seat[board].link;
}

/* ---- questions ------------------------------------------------------------------------------- */

rp_err rp_greet_ask(rp_greet *g, uint32_t board, rp_Frame *question) {
    g->seat[board].answered = false;
    return rp_link_send(g->seat[board].link, question, NULL, 0, true, NULL, NULL);
}

const rp_Frame *rp_greet_take_answer(rp_greet *g, uint32_t board) {
    seat *s = &g->seat[board];
    const rp_Frame *answer = s->answered ? s->answer : NULL;
    s->answered = false;
    return answer;
}
