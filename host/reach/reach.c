/* Boards are greeted, all at once. */
#include "reach/reach_own.h"

#include <stdio.h>
#include <string.h>

static const int64_t PONG_NS = 500 * RP_NS_PER_MS;

/* ---- words ----------------------------------------------------------------------------------- */

const char *rp_reach_state_word(rp_reach_state state) {
    static const char *const words[RP_REACH_STATES] = {"there",  "busy",    "old",
                                                       "silent", "refused", "not-dialled"};
    RP_ASSERT((unsigned)state < RP_REACH_STATES);
    return words[state];
}

/* ---- rounds ---------------------------------------------------------------------------------- */

static void take_message(reach_end *end, rp_reach_board *board, const rp_Frame *frame) {
    if (rp_frame_kind(frame) == RP_KIND_HELLO) {
        const rp_Hello *hello = &frame->body.hello;
        end->said_hello = true;
        end->busy = hello->busy;
        end->features = hello->features;
        memcpy(board->software, hello->software, sizeof board->software);
        memcpy(board->device, hello->device, sizeof board->device);
    } else if (rp_frame_kind(frame) == RP_KIND_TRIAL_DONE) {
        end->tried = true;
        end->done = frame->body.trial_done;
    }
}

static rp_err greet(const reach_work *work, reach_end *end) {
    rp_Frame hello = {.which_body = RP_KIND_HELLO,
                      .body.hello = {.name = "host",
                                     .software = RP_VERSION,
                                     .clock_ns = rp_clock_now_ns(work->options->clock),
                                     .wire_min = RP_WIRE_MIN,
                                     .wire_max = RP_WIRE_MAX,
                                     .features = RP_WIRE_FEATURES}};
    return rp_link_send(end->control, &hello, NULL, 0, true, NULL, NULL);
}

/* A restarted agent has not heard the greeting. */
static rp_err meet_process(const reach_work *work, reach_end *end) {
    rp_link_stats stats;
    rp_link_stats_of(end->control, &stats);
    const bool is_another = end->session != 0 && stats.peer_session != end->session;
    end->session = stats.peer_session;
    return is_another ? greet(work, end) : RP_OK;
}

static rp_err step_end(const reach_work *work, reach_end *end, rp_reach_board *board) {
    rp_message *message;
    rp_link_stats stats;
    rp_err err;
    RP_TRY(rp_link_step(end->control));
    while ((err = rp_link_recv(end->control, &message)) == RP_OK) {
        take_message(end, board, &message->frame);
        rp_link_release(end->control, &message);
    }
    RP_TRY(err == RP_ERR_AGAIN ? RP_OK : err);
    RP_TRY(meet_process(work, end));
    rp_link_stats_of(end->control, &stats);
    board->round_trip_ns = stats.round_trip_ns;
fail:
    return err;
}

rp_err reach_round(reach_work *work, int64_t nap_ns) {
    rp_link *link[RP_LINKS_WAIT_MAX];
    uint32_t count = 0;
    rp_err err;
    for (uint32_t k = 0; k < work->options->count; k++) {
        reach_end *end = &work->end[k];
        RP_TRY(step_end(work, end, &work->out->board[k]));
        if (count < RP_LINKS_WAIT_MAX) { /* those that dial share one socket */
            link[count++] = end->control;
        }
    }
    RP_TRY(rp_link_wait(link, count, NULL, 0, nap_ns));
fail:
    return err;
}

/* ---- greeting -------------------------------------------------------------------------------- */

rp_err reach_open(reach_work *work, uint32_t k) {
    const rp_roster_entry *entry = &work->options->roster[k];
    const rp_link_options options = {.name = "control",
                                     .bind = entry->dials ? work->options->listen : NULL,
                                     .connect = entry->dials ? NULL : entry->endpoint,
                                     .peer_public = entry->public_text,
                                     .window = 1,
                                     .send_window = 1,
                                     .part_bytes_max = RP_LINK_CONTROL_PART_MAX};
    rp_err err = RP_OK;
    work->end[k].session = 0;
    RP_TRY(rp_link_open(work->links, &options, &work->end[k].control));
    RP_TRY(greet(work, &work->end[k]));
fail:
    return err;
}

bool reach_is_decided(const reach_end *end) {
    return end->said_hello || rp_link_health_of(end->control).auth_failed;
}

static bool have_all_decided(const reach_work *work) {
    uint32_t k = 0;
    while (k < work->options->count && reach_is_decided(&work->end[k])) {
        k++;
    }
    return k == work->options->count;
}

static rp_reach_state state_of(const reach_end *end, bool dials) {
    const rp_link_health health = rp_link_health_of(end->control);
    if (end->said_hello) {
        return end->busy                                ? RP_REACH_BUSY
               : end->features & RP_WIRE_FEATURE_TRIALS ? RP_REACH_THERE
                                                        : RP_REACH_OLD;
    }
    if (health.auth_failed) {
        return RP_REACH_REFUSED;
    }
    if (dials) {
        return health.last_heard_ns ? RP_REACH_BUSY : RP_REACH_NOT_DIALLED;
    }
    return health.connected ? RP_REACH_BUSY : RP_REACH_SILENT;
}

static void ping_all(reach_work *work) {
    for (uint32_t k = 0; k < work->options->count; k++) {
        (void)!rp_link_ping(work->end[k].control); /* AGAIN: it is not there yet */
    }
}

void reach_note_states(reach_work *work) {
    for (uint32_t k = 0; k < work->options->count; k++) {
        rp_link_stats stats;
        work->out->board[k].state = state_of(&work->end[k], work->options->roster[k].dials);
        rp_link_stats_of(work->end[k].control, &stats);
        work->out->strangers += stats.strangers;
    }
}

/* Until all have answered or been refused; a board that dials tries once a second. */
static rp_err greet_all(reach_work *work) {
    const rp_clock *clock = work->options->clock;
    const int64_t end_ns = rp_clock_now_ns(clock) + RP_REACH_NS;
    rp_err err = RP_OK;
    while (!have_all_decided(work) && rp_clock_now_ns(clock) < end_ns) {
        RP_TRY(reach_round(work, REACH_NAP_NS));
    }
    ping_all(work);
    for (int64_t until_ns = rp_clock_now_ns(clock) + PONG_NS; rp_clock_now_ns(clock) < until_ns;) {
        RP_TRY(reach_round(work, REACH_NAP_NS));
    }
    reach_note_states(work);
fail:
    return err;
}

/* ---- looking --------------------------------------------------------------------------------- */

static bool is_complete(const rp_reach *found) {
    bool complete = true;
    for (uint32_t k = 0; k < found->board_count; k++) {
        complete = complete && found->board[k].state == RP_REACH_THERE;
    }
    for (uint32_t p = 0; p < found->pair_count; p++) {
        complete = complete && (!found->pair[p].chosen || found->pair[p].way == RP_REACH_WORKS);
    }
    return complete;
}

rp_err rp_reach_look(rp_arena *arena, const rp_reach_options *options, rp_reach *out) {
    reach_work work = {.options = options, .out = out};
    const rp_links_options links = {.clock = options->clock, .keys = options->keys};
    rp_err err;
    *out = (rp_reach){.board_count = options->count};
    RP_TRY(RP_ARENA_NEW(arena, options->count, &out->board));
    RP_TRY(RP_ARENA_NEW(arena, 2 * (size_t)options->count, &out->pair));
    RP_TRY(RP_ARENA_NEW(arena, options->count, &work.end));
    RP_TRY(rp_links_open(arena, &links, &work.links));
    for (uint32_t k = 0; k < options->count; k++) {
        out->board[k].name = options->roster[k].name;
        out->board[k].endpoint = options->roster[k].endpoint;
        out->board[k].dials = options->roster[k].dials;
        RP_TRY(reach_open(&work, k));
    }
    RP_TRY(greet_all(&work));
    RP_TRY(reach_try_pairs(&work));
    out->complete = is_complete(out);
fail:
    if (work.links) {
        rp_links_close(&work.links);
    }
    return err;
}
