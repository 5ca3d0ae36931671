#include "ask/ask.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "link/head.h"

static const int64_t AGAIN_NS = 300 * RP_NS_PER_MS; /* interval between repeated questions */
static const int64_t PING_NS =
    1 * RP_NS_PER_S; /* time without an answer after which the board is pinged */
static const int64_t NAP_NS = 50 * RP_NS_PER_MS;
enum { QUEUE = 16, PACKETS_MAX = 64 /* limit for one round */ };

struct rp_asker {
    rp_ask_options options;
    rp_transport *own_transport; /* to be finished, or NULL */
    rp_port *port;
    rp_loop own_loop, *loop;
    uint64_t session, id;
    uint64_t route;  /* route to a board that has dialled; 0: none yet */
    bool refused;    /* the keys were refused */
    bool introduced; /* it has identified itself, as every version does */
    bool answered;   /* the current question */
    rp_Frame answer;
    int64_t sent_ns, pinged_ns; /* time of the last one; 0: never */
    uint32_t sent;              /* number of times */
};

static int64_t now(const rp_asker *a) {
    return rp_clock_now_ns(a->options.clock);
}

/* ---- opening --------------------------------------------------------------------------------- */

/* Draws a random number that is not 0. */
static rp_err draw_number(uint64_t *out) {
    do {
        if (getrandom(out, sizeof *out, 0) != (ssize_t)sizeof *out && errno != EINTR) {
            return rp_fail(RP_ERR_IO, "getrandom: %s", strerror(errno));
        }
    } while (*out == 0);
    return RP_OK;
}

rp_err rp_asker_open(rp_arena *arena, const rp_ask_options *options, rp_asker **out) {
    const rp_roster_entry *board = options->board;
    const rp_transport_options transport = {.clock = options->clock, .keys = options->keys};
    const rp_port_options port = {.name = "ask",
                                  .bind = board->dials ? options->listen : NULL,
                                  .connect = board->dials ? NULL : board->endpoint,
                                  .peer_public = board->public_text,
                                  .queue = QUEUE,
                                  .frame_bytes_max = RP_HEAD_BYTES_MAX};
    rp_asker *a = NULL;
    rp_err err;
    *out = NULL;
    RP_TRY(RP_ARENA_NEW(arena, 1, &a));
    a->options = *options;
    a->own_loop = rp_loop_poll(options->clock);
    a->loop = options->loop ? options->loop : &a->own_loop;
    RP_TRY(draw_number(&a->session));
    RP_TRY(draw_number(&a->id));
    if (!options->transport) {
        RP_TRY(rp_transport_start(arena, "zmq", &transport, &a->own_transport));
    }
    RP_TRY(
        rp_port_open(options->transport ? options->transport : a->own_transport, &port, &a->port));
    *out = a;
fail:
    if (err != RP_OK) {
        rp_asker_close(&a);
    }
    return err;
}

void rp_asker_close(rp_asker **asker) {
    rp_asker *a = *asker;
    if (a) {
        rp_port_close(&a->port);
        rp_transport_finish(&a->own_transport);
    }
    *asker = NULL;
}

/* ---- rounds ---------------------------------------------------------------------------------- */

static void post_frame(rp_asker *a, rp_Frame *frame) {
    rp_packet packet = {.count = 1, .peer = a->route};
    frame->session = a->session;
    if (rp_frame_seal(frame, NULL, 0) == RP_OK && rp_head_write(frame, &packet.frame[0]) == RP_OK) {
        if (a->port->kind->post(a->port, &packet) == RP_ERR_PEER) {
            a->route = 0;
        }
        rp_packet_drop(&packet);
    }
}

static bool is_there(const rp_asker *a) {
    return a->port->bound ? a->route != 0 : rp_port_is_connected(a->port);
}

/* Sends the question, and a PING: a board identifies itself after a PING of an unknown session. */
static void send_question(rp_asker *a, const rp_Ask *ask, int64_t since_ns) {
    const int64_t at = now(a);
    if (!is_there(a)) {
        return;
    }
    if (a->sent == 0 || at - a->sent_ns >= AGAIN_NS) {
        rp_Frame frame = {.which_body = RP_KIND_ASK, .body.ask = *ask};
        frame.body.ask.id = a->id;
        post_frame(a, &frame);
        a->sent_ns = at;
        a->sent++;
    }
    if (!a->introduced && at - since_ns >= PING_NS && at - a->pinged_ns >= PING_NS) {
        rp_Frame frame = {.which_body = RP_KIND_PING, .body.ping = {.time_ns = at}};
        post_frame(a, &frame);
        a->pinged_ns = at;
    }
}

static uint64_t answered_id(const rp_Frame *frame) {
    switch (rp_frame_kind(frame)) {
    case RP_KIND_CONDITION:
        return frame->body.condition.id;
    case RP_KIND_LINES:
        return frame->body.lines.id;
    case RP_KIND_ORDERED:
        return frame->body.ordered.id;
    default:
        return 0;
    }
}

static void take_packet(rp_asker *a, const rp_packet *packet) {
    rp_Frame frame;
    if (a->port->bound) {
        a->route = packet->peer;
    }
    if (packet->count != 1 || rp_head_read(packet->frame[0], 0, &frame) != RP_OK) {
        return;
    }
    /* A board that dials sends the first message, with a session that is not ours. */
    a->introduced = a->introduced || a->port->bound || frame.peer == a->session;
    if (frame.peer == a->session && answered_id(&frame) == a->id) {
        a->answer = frame;
        a->answered = true;
    }
}

static rp_err round_of(rp_asker *a, int64_t until_ns) {
    rp_handle handle[RP_PORT_HANDLES_MAX];
    rp_port_event event;
    rp_packet packet;
    const rp_transport_kind *kind = a->port->kind;
    while (kind->step(a->port, &event)) {
        a->refused =
            event.kind == RP_PORT_REFUSED || (a->refused && event.kind != RP_PORT_CONNECTED);
        a->sent_ns =
            event.kind == RP_PORT_CONNECTED ? 0 : a->sent_ns; /* what was sent before is lost */
    }
    for (uint32_t i = 0; i < PACKETS_MAX && kind->take(a->port, &packet) == RP_OK; i++) {
        take_packet(a, &packet);
        rp_packet_drop(&packet);
    }
    if (a->answered) {
        return RP_OK;
    }
    const int64_t at = now(a);
    int64_t wake_ns = at + NAP_NS < until_ns ? at + NAP_NS : until_ns;
    const int64_t port_ns = kind->deadline_ns(a->port, at);
    wake_ns = port_ns < wake_ns ? port_ns : wake_ns;
    const uint32_t count = kind->handles(a->port, handle);
    return a->loop->wait(a->loop, wake_ns, handle, count);
}

/* ---- a question ------------------------------------------------------------------------------ */

static rp_greet_state what_came(const rp_asker *a) {
    if (a->answered) {
        return RP_GREET_THERE;
    }
    if (a->refused) {
        return RP_GREET_REFUSED;
    }
    if (a->introduced) {
        return RP_GREET_OLD;
    }
    if (a->port->bound) {
        return rp_port_strangers(a->port) > 0 ? RP_GREET_REFUSED : RP_GREET_NOT_DIALLED;
    }
    return rp_port_is_connected(a->port) ? RP_GREET_MUTE : RP_GREET_SILENT;
}

rp_err rp_asker_try(rp_asker *a, const rp_Ask *ask, int64_t wait_ns, rp_Frame *out,
                    int64_t *round_trip_ns, rp_greet_state *came) {
    const int64_t since_ns = now(a);
    rp_err err = RP_OK;
    a->id = a->id + 1 ? a->id + 1 : 1;
    a->answered = a->refused = a->introduced = false;
    a->sent = 0;
    a->pinged_ns = 0;
    while (!a->answered && !a->refused && now(a) - since_ns < wait_ns) {
        if (a->options.stopped && a->options.stopped(a->options.context)) {
            return rp_fail(RP_ERR_INTERRUPTED, "stopped");
        }
        send_question(a, ask, since_ns);
        RP_TRY(round_of(a, since_ns + wait_ns));
    }
    *came = what_came(a);
    *out = a->answer;
    if (round_trip_ns) {
        *round_trip_ns = a->answered && a->sent == 1 ? now(a) - a->sent_ns : 0;
    }
fail:
    return err;
}

static rp_err say_why(const rp_asker *a, rp_greet_state came) {
    rp_cause cause;
    rp_cause_of_silence(a->options.board, a->options.listen, came, &cause);
    return rp_fail(cause.err, "%s: %s", a->options.board->name, cause.text);
}

rp_err rp_asker_ask(rp_asker *a, const rp_Ask *ask, int64_t wait_ns, rp_Frame *out,
                    int64_t *round_trip_ns) {
    rp_greet_state came;
    rp_err err;
    RP_TRY(rp_asker_try(a, ask, wait_ns, out, round_trip_ns, &came));
    if (came != RP_GREET_THERE) {
        return say_why(a, came);
    }
    if (rp_frame_kind(out) == RP_KIND_ORDERED) {
        const rp_Ordered *said = &out->body.ordered;
        if (said->outcome == RP_ORDERED_REFUSED) {
            return rp_fail(RP_ERR_REFUSED, "%s says: %s", a->options.board->name, said->text);
        }
        if (said->outcome == RP_ORDERED_BUSY) {
            return rp_fail(RP_ERR_FAULT, "%s says: %s", a->options.board->name, said->text);
        }
        if (said->outcome != RP_ORDERED_DONE) {
            return rp_fail(RP_ERR_PEER,
                           "%s: its software does not know this question: install a newer one "
                           "there",
                           a->options.board->name);
        }
    }
fail:
    return err;
}
