#include "run/ring_own.h"

#include <errno.h>
#include <float.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/log.h"
#include "run/identity.h"

_Static_assert(RP_CUT_STAGES_MAX + 2 <= RP_LINKS_WAIT_MAX, "every board and two feeds");

enum { CONTROL_PART_MAX = 4 << 20 };
/* Far beyond any board: a number from outside is not believed blindly. */
static const uint64_t FLIGHT_BYTES_MAX = UINT64_C(1) << 44;

static const int64_t PING_NS = RP_NS_PER_S;

/* ---- signals --------------------------------------------------------------------------------- */

rp_err rp_ring_signals(int *signal_fd) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGCHLD);
    if (sigprocmask(SIG_BLOCK, &set, NULL) != 0) {
        return rp_fail(RP_ERR_IO, "sigprocmask: %s", strerror(errno));
    }
    *signal_fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    return *signal_fd < 0 ? rp_fail(RP_ERR_IO, "signalfd: %s", strerror(errno)) : RP_OK;
}

static rp_err read_signals(rp_ring *ring) {
    struct signalfd_siginfo info;
    while (read(ring->signal_fd, &info, sizeof info) == (ssize_t)sizeof info) {
        if (info.ssi_signo == SIGCHLD) {
            uint32_t index;
            rp_err err = ring->local ? rp_local_reap(ring->local, &index) : RP_OK;
            if (err != RP_OK) {
                return err;
            }
        } else if (++ring->interrupts > 1) {
            return rp_fail(RP_ERR_INTERRUPTED, "interrupted twice: stopped at once");
        }
    }
    return RP_OK;
}

/* ---- messages -------------------------------------------------------------------------------- */

static rp_err on_hello(rp_ring *ring, rp_board_state *board, const rp_Hello *hello) {
    if (board->hello) {
        return RP_OK;
    }
    if (!rp_wire_narrow(&ring->wire, hello->wire_min, hello->wire_max)) {
        return rp_fail(RP_ERR_PEER,
                       "board %s speaks wire versions %u to %u, this host and the other boards %u "
                       "to %u: one of them needs other software",
                       board->name, hello->wire_min, hello->wire_max, ring->wire.min,
                       ring->wire.max);
    }
    ring->features &= hello->features;
    board->hello = true;
    if (board->device) {
        return RP_OK; /* greeted again: it is what it was */
    }
    char *device;
    rp_err err = rp_arena_string(ring->arena, hello->device, &device);
    if (err != RP_OK) {
        return err;
    }
    board->device = device;
    board->clock_offset_ns = rp_clock_now_ns(&ring->clock) - hello->clock_ns;
    board->gemm = hello->gemm == RP_GEMM_PANEL ? RP_GEMM_PANEL : RP_GEMM_CLBLAST;
    return RP_OK;
}

static void on_ready(rp_board_state *board, const rp_Ready *ready) {
    const int64_t build_ns = ready->build_ns > 0 ? ready->build_ns : 0;
    board->ready = true;
    board->hop_port = ready->hop_port;
    board->feed_port = ready->feed_port;
    board->device_bytes = ready->device_bytes;
    board->weight_bytes = ready->weight_bytes;
    board->prepare_ns = build_ns < RP_RING_BUILD_NS ? build_ns : RP_RING_BUILD_NS;
    board->slots = ready->slots;
    board->weight_copies = ready->weight_copies;
    if (board->weight_copies > board->weight_copies_max) {
        board->weight_copies_max = board->weight_copies;
    }
    board->resident_bytes = ready->resident_bytes;
    board->probe_copies = ready->probe_copies;
}

bool rp_ring_are_times(const double *seconds, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (!(seconds[i] >= 0 && seconds[i] <= DBL_MAX)) {
            return false;
        }
    }
    return true;
}

static rp_err on_profile(rp_ring *ring, rp_board_state *board, const rp_message *message) {
    size_t want = 2 * sizeof(double) * ring->run->model->layer_count;
    if (message->part[0].bytes != want) {
        return rp_fail(RP_ERR_PEER, "board %s: its profile has the wrong size", board->name);
    }
    memcpy(ring->layer_seconds, message->part[0].data, want);
    if (!rp_ring_are_times(ring->layer_seconds, want / sizeof(double))) {
        return rp_fail(RP_ERR_PEER, "board %s: its profile has times that are none", board->name);
    }
    board->profiled = true;
    return RP_OK;
}

static uint32_t larger_of(uint32_t a, uint32_t b) {
    return a > b ? a : b;
}

/* Of some facts the most of all assignments counts, the others add up. */
static void take_facts(rp_board_state *board, uint32_t stage, const rp_Finished *report) {
    const rp_board_facts *before = &board->facts_before;
    rp_board_facts *facts = &board->facts;
    *facts = *before;
    facts->busy_ns += report->busy_ns;
    facts->microbatches += report->microbatches;
    facts->in_flight_max = larger_of(before->in_flight_max, report->in_flight_max);
    facts->staleness_max = larger_of(before->staleness_max, report->staleness_max);
    if (report->device_bytes_max > before->device_bytes_max) {
        facts->device_bytes_max = report->device_bytes_max;
    }
    for (uint32_t i = 0; i < report->link_count; i++) {
        rp_board_link *link = report->link[i].peer == stage + 1 ? &facts->up : &facts->down;
        link->bytes += report->link[i].bytes;
        link->busy_s += report->link[i].busy_s;
    }
}

static rp_err on_finished(rp_ring *ring, uint32_t stage, const rp_message *message) {
    rp_board_state *board = &ring->board[stage];
    const rp_Finished *report = &message->frame.body.finished;
    const size_t want =
        rp_method_replicas(&ring->run->method, ring->count, stage) * sizeof(uint64_t);
    if (message->part[0].bytes != want) {
        return rp_fail(RP_ERR_PEER, "board %s does not say what it has applied", board->name);
    }
    board->finished = true;
    memcpy(board->applied, message->part[0].data, want);
    take_facts(board, stage, report);
    board->flight_bytes = report->in_flight_bytes < FLIGHT_BYTES_MAX ? report->in_flight_bytes : 0;
    return RP_OK;
}

static rp_err on_fault(const rp_board_state *board, const rp_Fault *fault) {
    const bool known = fault->err > 0 && fault->err < RP_ERR_COUNT;
    return rp_fail(known ? (rp_err)fault->err : RP_ERR_FAULT, "board %s: %s", board->name,
                   fault->text);
}

static rp_err on_message(rp_ring *ring, uint32_t stage, const rp_message *message) {
    rp_board_state *board = &ring->board[stage];
    const rp_Frame *frame = &message->frame;
    const rp_kind kind = rp_frame_kind(frame);
    if (frame->run_id == ring->identity.id && frame->term > ring->identity.term) {
        return rp_fail(RP_ERR_PEER,
                       "board %s serves a newer start of this run (term %u, this is %u): another "
                       "controller goes on with it",
                       board->name, frame->term, ring->identity.term);
    }
    if (frame->run_id != 0 && !rp_frame_is_of_run(frame, ring->identity)) {
        return RP_OK; /* of an assignment that is over: there another board has failed first */
    }
    switch (kind) {
    case RP_KIND_HELLO:
        return on_hello(ring, board, &frame->body.hello);
    case RP_KIND_READY:
        on_ready(board, &frame->body.ready);
        return RP_OK;
    case RP_KIND_PROFILE_DONE:
        return on_profile(ring, board, message);
    case RP_KIND_FAULT:
        return on_fault(board, &frame->body.fault);
    case RP_KIND_FINISHED:
        return on_finished(ring, stage, message);
    default:
        return ring->on_message ? ring->on_message(ring->context, stage, message)
                                : rp_fail(RP_ERR_PEER, "board %s sent %s too early", board->name,
                                          rp_kind_name(kind));
    }
}

static rp_err drain(rp_ring *ring, uint32_t stage) {
    rp_link *link = ring->board[stage].control;
    for (;;) {
        rp_message *message;
        rp_err err = rp_link_recv(link, &message);
        if (err != RP_OK) {
            return err == RP_ERR_AGAIN ? RP_OK : err;
        }
        err = on_message(ring, stage, message);
        rp_link_release(link, &message);
        if (err != RP_OK) {
            return err;
        }
    }
}

/* Heartbeats: one ping a second on the control link; any answer counts. */
static rp_err watch(rp_ring *ring) {
    int64_t now_ns = rp_clock_now_ns(&ring->clock);
    bool ping = now_ns - ring->last_ping_ns >= PING_NS;
    for (uint32_t k = 0; k < ring->count; k++) {
        rp_board_state *board = &ring->board[k];
        rp_link_stats stats;
        rp_link_stats_of(board->control, &stats);
        if (stats.auth_failed) {
            return rp_fail(RP_ERR_REFUSED,
                           "board %s at %s refused the handshake: its roster does not have our "
                           "key, or its key is not %s",
                           board->name, board->endpoint, board->public_text);
        }
        if (ring->watching && stats.peer_restarted) {
            return rp_fail(RP_ERR_FAULT, "board %s has restarted", board->name);
        }
        if (ring->watching && stats.last_heard_ns &&
            now_ns - stats.last_heard_ns > RP_RING_SILENT_NS) {
            return rp_fail(RP_ERR_FAULT, "board %s has been silent for %" PRId64 " s", board->name,
                           (now_ns - stats.last_heard_ns) / RP_NS_PER_S);
        }
        if (ping) {
            rp_err err = rp_link_ping(board->control);
            if (err != RP_OK && err != RP_ERR_AGAIN) {
                return err;
            }
        }
    }
    ring->last_ping_ns = ping ? now_ns : ring->last_ping_ns;
    return RP_OK;
}

rp_err rp_ring_pump(rp_ring *ring, int extra_fd, int64_t timeout_ns) {
    rp_link *link[RP_LINKS_WAIT_MAX];
    uint32_t links = 0;
    for (uint32_t k = 0; k < ring->count; k++) {
        link[links++] = ring->board[k].control;
        if (ring->board[k].feed) {
            link[links++] = ring->board[k].feed;
        }
    }
    int fd[2] = {ring->signal_fd, extra_fd};
    rp_err err;
    RP_TRY(rp_link_wait(link, links, fd, extra_fd >= 0 ? 2 : 1, timeout_ns));
    for (uint32_t i = 0; i < links; i++) {
        RP_TRY(rp_link_step(link[i]));
    }
    for (uint32_t k = 0; k < ring->count; k++) {
        RP_TRY(drain(ring, k));
    }
    RP_TRY(read_signals(ring));
    RP_TRY(watch(ring));
fail:
    return err;
}

rp_err rp_ring_send(rp_ring *ring, uint32_t stage, rp_Frame *frame, const rp_part *parts,
                    uint32_t part_count) {
    int64_t deadline_ns = rp_clock_now_ns(&ring->clock) + RP_RING_HELLO_NS;
    frame->run_id = ring->identity.id;
    frame->term = ring->identity.term;
    for (;;) {
        rp_err err =
            rp_link_send(ring->board[stage].control, frame, parts, part_count, true, NULL, NULL);
        if (err != RP_ERR_AGAIN) {
            return err;
        }
        if (rp_clock_now_ns(&ring->clock) > deadline_ns) {
            return rp_fail(RP_ERR_TIMEOUT, "board %s takes no message", ring->board[stage].name);
        }
        err = rp_ring_pump(ring, -1, 10 * RP_NS_PER_MS);
        if (err != RP_OK) {
            return err;
        }
    }
}

rp_err rp_ring_send_all(rp_ring *ring, const rp_Frame *frame) {
    for (uint32_t k = 0; k < ring->count; k++) {
        rp_Frame own = *frame;
        rp_err err = rp_ring_send(ring, k, &own, NULL, 0);
        if (err != RP_OK) {
            return err;
        }
    }
    return RP_OK;
}

rp_err rp_ring_wait(rp_ring *ring, const char *what, uint32_t count,
                    bool (*done)(const rp_board_state *), int64_t timeout_ns) {
    int64_t deadline_ns = rp_clock_now_ns(&ring->clock) + timeout_ns;
    for (;;) {
        uint32_t waiting = count;
        for (uint32_t k = 0; k < count; k++) {
            if (done(&ring->board[k])) {
                waiting--;
            }
        }
        if (waiting == 0) {
            return RP_OK;
        }
        if (ring->interrupts > 0) {
            return rp_fail(RP_ERR_INTERRUPTED, "interrupted while waiting for %s", what);
        }
        if (rp_clock_now_ns(&ring->clock) > deadline_ns) {
            uint32_t k = 0;
            while (done(&ring->board[k])) {
                k++;
            }
            return rp_fail(RP_ERR_TIMEOUT, "board %s at %s: no %s within %" PRId64 " s",
                           ring->board[k].name, ring->board[k].endpoint, what,
                           timeout_ns / RP_NS_PER_S);
        }
        rp_err err = rp_ring_pump(ring, -1, 50 * RP_NS_PER_MS);
        if (err != RP_OK) {
            return err;
        }
    }
}

static bool is_hello(const rp_board_state *board) {
    return board->hello;
}

/* ---- opening --------------------------------------------------------------------------------- */

static rp_err name_boards(rp_ring *ring) {
    for (uint32_t k = 0; k < ring->count; k++) {
        rp_board_state *board = &ring->board[k];
        const char *endpoint =
            ring->local ? ring->local->agent[k].endpoint : ring->run->roster[k].endpoint;
        const char *key =
            ring->local ? ring->local->agent[k].public_text : ring->run->roster[k].public_text;
        (void)snprintf(board->endpoint, sizeof board->endpoint, "%s", endpoint);
        (void)snprintf(board->public_text, sizeof board->public_text, "%s", key);
        if (ring->local) {
            char *name;
            rp_err err = rp_arena_printf(ring->arena, &name, "%u", k);
            if (err != RP_OK) {
                return err;
            }
            board->name = name;
        } else {
            board->name = ring->run->roster[k].name;
        }
    }
    return RP_OK;
}

static rp_err open_controls(rp_ring *ring) {
    for (uint32_t k = 0; k < ring->count; k++) {
        rp_board_state *board = &ring->board[k];
        rp_link_options options = {
            .name = "control",
            .connect = board->endpoint,
            .peer_public = board->public_text,
            .window = 1,
            .send_window = 1,
            .part_bytes_max = CONTROL_PART_MAX,
        };
        rp_err err = rp_link_open(ring->links, &options, &board->control);
        if (err != RP_OK) {
            return err;
        }
    }
    return RP_OK;
}

static rp_err take_keys(rp_ring *ring, const char *keys_folder) {
    if (ring->run->local) {
        return rp_keys_make(&ring->keys);
    }
    return keys_folder ? rp_keys_read(keys_folder, &ring->keys)
                       : rp_fail(RP_ERR_REFUSED,
                                 "a roster needs this host's keys: make them with `ringpipe keys "
                                 "new --dir DIR` and give --keys DIR");
}

rp_err rp_ring_greet(rp_ring *ring) {
    rp_Frame frame = {.which_body = RP_KIND_HELLO,
                      .body.hello = {.name = "host",
                                     .software = RP_VERSION,
                                     .clock_ns = rp_clock_now_ns(&ring->clock),
                                     .wire_min = RP_WIRE_MIN,
                                     .wire_max = RP_WIRE_MAX,
                                     .features = RP_WIRE_FEATURES}};
    rp_err err;
    ring->wire = (rp_wire_range){RP_WIRE_MIN, RP_WIRE_MAX};
    ring->features = RP_WIRE_FEATURES;
    for (uint32_t k = 0; k < ring->count; k++) {
        ring->board[k].hello = false;
    }
    RP_TRY(rp_ring_send_all(ring, &frame));
    RP_TRY(rp_ring_wait(ring, "hello", ring->count, is_hello, RP_RING_HELLO_NS));
    for (uint32_t k = 0; k < ring->count; k++) {
        rp_link_set_wire(ring->board[k].control, ring->wire.max);
    }
fail:
    return err;
}

rp_err rp_ring_open(rp_arena *arena, const rp_runfile *run, const char *folder,
                    const char *keys_folder, int signal_fd, rp_ring *ring) {
    *ring = (rp_ring){.arena = arena,
                      .run = run,
                      .folder = folder,
                      .clock = rp_clock_real(),
                      .count = run->stages,
                      .signal_fd = signal_fd};
    rp_err err;
    RP_TRY(rp_identity_begin_term(folder, &ring->identity));
    RP_TRY(take_keys(ring, keys_folder));
    RP_TRY(RP_ARENA_NEW(arena, ring->count, &ring->board));
    RP_TRY(RP_ARENA_NEW(arena, 2 * (size_t)run->model->layer_count, &ring->layer_seconds));
    if (run->local) {
        rp_local_options options = {
            ring->count, run->board, run->threads, folder, ring->keys.public_text, signal_fd};
        RP_TRY(rp_local_open(arena, &options, &ring->local));
    }
    RP_TRY(name_boards(ring));
    RP_TRY(rp_links_open(arena, &ring->keys, &ring->clock, ring->identity.id, &ring->links));
    RP_TRY(open_controls(ring));
    RP_TRY(rp_ring_greet(ring));
    return RP_OK;
fail:
    rp_ring_close(ring);
    return err;
}

void rp_ring_close(rp_ring *ring) {
    if (ring->links) {
        rp_Frame bye = {
            .which_body = RP_KIND_BYE, .run_id = ring->identity.id, .term = ring->identity.term};
        ring->watching = false;
        for (uint32_t k = 0; ring->board && k < ring->count; k++) {
            if (ring->board[k].control && ring->board[k].hello &&
                rp_link_send(ring->board[k].control, &bye, NULL, 0, true, NULL, NULL) == RP_OK) {
                (void)!rp_link_step(ring->board[k].control);
            }
        }
        /* a moment for the goodbyes to leave: closing drops what is queued */
        rp_link *link[RP_LINKS_WAIT_MAX];
        uint32_t links = 0;
        for (uint32_t k = 0; ring->board && k < ring->count; k++) {
            if (ring->board[k].control) {
                link[links++] = ring->board[k].control;
            }
        }
        for (int round = 0; links && round < 10; round++) {
            (void)!rp_link_wait(link, links, NULL, 0, 5 * RP_NS_PER_MS);
            for (uint32_t i = 0; i < links; i++) {
                (void)!rp_link_step(link[i]);
            }
        }
    }
    rp_links_close(&ring->links);
    rp_local_close(&ring->local);
}
