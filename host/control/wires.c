/* The wires between neighbours are measured, before there is a plan: one after the other, each from
 * either end, then from both at once, over a link that is there for nothing else (TRIAL). What can
 * not be measured stays as it was taken to be; no run fails of it. */
#include <inttypes.h>
#include <stdio.h>

#include "base/log.h"
#include "control/controller_own.h"
#include "sched/split.h"

/* A board that can not reach the other says so within RP_TRIAL_NS. */
static const int64_t ANSWER_NS = 8 * RP_NS_PER_S;
static const uint32_t SIZES[] = {64, 16 << 10, 256 << 10, 2 << 20};
enum { SIZE_COUNT = sizeof SIZES / sizeof *SIZES };

/* Emulated wires are known; a simulation has no others. */
static bool are_wanted(const rp_controller *c) {
    return c->ring.count > 1 && !c->run.emulate && !c->env.links &&
           (c->ring.features & RP_WIRE_FEATURE_WIRES);
}

/* Neighbours in a row; stages that go round more than once need the way from the last to the first,
 * too. Where stages are split, those that sched/split.h names. */
static uint32_t count_wires(const rp_controller *c) {
    const bool round = c->ring.count > 2 && c->run.stages > c->run.boards;
    uint32_t wire[RP_SPLIT_WIRES_MAX][2];
    return !are_wanted(c) ? 0
           : c->run.method.kind->splits
               ? rp_sched_split_wires(c->run.stages, c->run.method.whole, wire)
               : c->ring.count - !round;
}

static void find_ends(const rp_controller *c, uint32_t *left, uint32_t *right) {
    uint32_t wire[RP_SPLIT_WIRES_MAX][2];
    *left = c->measure.wires.at;
    *right = (*left + 1) % c->ring.count;
    if (c->run.method.kind->splits) {
        (void)rp_sched_split_wires(c->run.stages, c->run.method.whole, wire);
        *left = wire[c->measure.wires.at][0];
        *right = wire[c->measure.wires.at][1];
    }
}

void rp_wires_begin(rp_controller *c) {
    c->measure.wires = (rp_wires){.count = count_wires(c)};
    rp_feed_wires_begin(c, !c->run.emulate && !c->env.links);
}

/* ---- asking ---------------------------------------------------------------------------------- */

static rp_err ask(rp_controller *c, uint32_t board, const char *endpoint, const char *key,
                  const uint32_t *size, uint32_t sizes) {
    rp_Frame frame = {.which_body = RP_KIND_TRIAL};
    rp_Trial *trial = &frame.body.trial;
    trial->row = c->measure.wires.phase == RP_WIRES_BOTH;
    (void)snprintf(trial->endpoint, sizeof trial->endpoint, "%s", endpoint);
    (void)snprintf(trial->public_key, sizeof trial->public_key, "%s", key);
    trial->bytes_count = (pb_size_t)sizes;
    for (uint32_t i = 0; i < sizes; i++) {
        trial->bytes[i] = size[i];
    }
    c->ring.board[board].tried = false;
    c->measure.wires.since_ns = c->ring.now_ns;
    return rp_ring_post(&c->ring, board, &frame, NULL);
}

static rp_err end_trials(rp_controller *c) {
    rp_err err;
    RP_TRY(ask(c, c->measure.wires.end[0], "", "", NULL, 0));
    RP_TRY(ask(c, c->measure.wires.end[1], "", "", NULL, 0));
fail:
    return err;
}

/* The one that dials is end 0: boards that dial everybody can not be dialled. */
static rp_err begin_wire(rp_controller *c) {
    rp_wires *w = &c->measure.wires;
    uint32_t left;
    uint32_t right;
    find_ends(c, &left, &right);
    const bool swapped = c->ring.board[right].dials;
    w->end[0] = swapped ? right : left;
    w->end[1] = swapped ? left : right;
    w->phase = RP_WIRES_LISTEN;
    if (c->ring.board[left].dials && swapped) {
        w->at++;
        w->phase = RP_WIRES_NEXT;
        return RP_OK;
    }
    return ask(c, w->end[1], "", c->ring.board[w->end[0]].public_text, NULL, 0);
}

static rp_err dial(rp_controller *c) {
    rp_wires *w = &c->measure.wires;
    const rp_board_state *far = &c->ring.board[w->end[1]];
    char endpoint[160];
    rp_ring_endpoint_at(far, far->trial.port, endpoint, sizeof endpoint);
    w->phase = RP_WIRES_FORTH;
    return ask(c, w->end[0], endpoint, far->public_text, SIZES, SIZE_COUNT);
}

/* ---- answers --------------------------------------------------------------------------------- */

rp_err rp_wires_on_trial(rp_controller *c, uint32_t board, const rp_message *message) {
    rp_board_state *state = &c->ring.board[board];
    state->trial = message->frame.body.trial_done;
    state->tried = true;
    if (c->machine.state == RP_CONTROL_PROFILE) { /* else nobody waits for it any more */
        rp_ring_note_progress(&c->ring);
    }
    return RP_OK;
}

static bool has_measured(const rp_TrialDone *done) {
    return done->outcome == RP_TRIAL_MEASURED && done->seconds_count > 0 &&
           done->spread_count == done->seconds_count;
}

/* Seconds of the largest size that came through, without those of the smallest; 0: none did. */
static double largest_s(const rp_TrialDone *done, uint32_t *bytes) {
    double seconds = 0;
    for (uint32_t i = 1; i < done->seconds_count && i < SIZE_COUNT; i++) {
        if (done->seconds[i] > 0) {
            seconds = done->seconds[i] - done->seconds[0];
            *bytes = SIZES[i];
        }
    }
    return seconds;
}

/* False: it is no measurement, or one that can not be. */
static bool take(rp_controller *c, uint32_t from) {
    rp_wires *w = &c->measure.wires;
    const rp_TrialDone *done = &c->ring.board[w->end[from]].trial;
    rp_curve_point point[SIZE_COUNT];
    uint32_t count = 0;
    if (!has_measured(done)) {
        return false;
    }
    for (uint32_t i = 0; i < done->seconds_count && i < SIZE_COUNT; i++) {
        if (done->seconds[i] > 0) {
            point[count++] = (rp_curve_point){SIZES[i], done->seconds[i], done->spread[i]};
        }
    }
    w->alone_s[from] = largest_s(done, &w->largest[from]);
    return rp_profile_take_wire(&c->measure.profile, w->end[from], w->end[!from], point, count) ==
           RP_OK;
}

/* Bytes of the largest size that has come through in both directions. */
static uint32_t smaller_of_both(const rp_wires *w) {
    return w->largest[0] < w->largest[1] ? w->largest[0] : w->largest[1];
}

static rp_err ask_both(rp_controller *c) {
    rp_wires *w = &c->measure.wires;
    const uint32_t least = smaller_of_both(w);
    rp_err err;
    w->phase = RP_WIRES_BOTH;
    RP_TRY(ask(c, w->end[0], "", "", &least, 1));
    RP_TRY(ask(c, w->end[1], "", "", &least, 1));
fail:
    return err;
}

/* Of as many bytes each. Where both directions take turns, each takes twice as long when both are
 * in use. */
static void take_both(rp_controller *c) {
    static const double SHARED = 1.6;
    const rp_wires *w = &c->measure.wires;
    const uint32_t least = smaller_of_both(w);
    double most = 0;
    for (uint32_t k = 0; k < 2; k++) {
        const rp_TrialDone *done = &c->ring.board[w->end[k]].trial;
        if (has_measured(done) && done->seconds[0] > 0) {
            const double alone_s = w->alone_s[k] * least / w->largest[k];
            const double slower = done->seconds[0] / alone_s;
            most = slower > most ? slower : most;
        }
    }
    rp_profile_take_shared(&c->measure.profile, w->end[0], w->end[1], most > SHARED);
}

static rp_err give_up(rp_controller *c, const char *why) {
    rp_wires *w = &c->measure.wires;
    rp_log_warn("controller: the wire from board %s to board %s is not measured: %s",
                c->ring.board[w->end[0]].name, c->ring.board[w->end[1]].name, why);
    w->phase = RP_WIRES_NEXT;
    w->at++;
    return end_trials(c);
}

static rp_err end_wire(rp_controller *c) {
    c->measure.wires.phase = RP_WIRES_NEXT;
    c->measure.wires.at++;
    return end_trials(c);
}

static rp_err take_answer(rp_controller *c) {
    rp_wires *w = &c->measure.wires;
    const rp_TrialDone *near = &c->ring.board[w->end[0]].trial;
    const rp_TrialDone *far = &c->ring.board[w->end[1]].trial;
    const char *text = w->phase == RP_WIRES_FORTH ? near->text : far->text;
    const char *why = text[0] ? text : "no link came about";
    switch (w->phase) {
    case RP_WIRES_LISTEN:
        return far->outcome == RP_TRIAL_LISTENS && far->port <= UINT16_MAX ? dial(c)
                                                                           : give_up(c, why);
    case RP_WIRES_FORTH:
        if (!take(c, 0)) {
            return give_up(c, why);
        }
        w->phase = RP_WIRES_BACK;
        return ask(c, w->end[1], "", "", SIZES, SIZE_COUNT);
    case RP_WIRES_BACK:
        if (!take(c, 1)) {
            return give_up(c, why);
        }
        return w->alone_s[0] > 0 && w->alone_s[1] > 0 ? ask_both(c) : end_wire(c);
    default:
        take_both(c);
        return end_wire(c);
    }
}

static bool has_answered(const rp_controller *c) {
    const rp_wires *w = &c->measure.wires;
    const bool near = c->ring.board[w->end[0]].tried;
    const bool far = c->ring.board[w->end[1]].tried;
    return w->phase == RP_WIRES_BOTH ? near && far : w->phase == RP_WIRES_FORTH ? near : far;
}

rp_err rp_wires_step(rp_controller *c, bool *all) {
    rp_wires *w = &c->measure.wires;
    rp_err err = RP_OK;
    while (w->at < w->count) {
        if (w->phase == RP_WIRES_NEXT) {
            RP_TRY(begin_wire(c));
        } else if (has_answered(c)) {
            RP_TRY(take_answer(c));
        } else if (c->ring.now_ns - w->since_ns > ANSWER_NS) {
            RP_TRY(give_up(c, "no answer"));
        } else {
            break;
        }
    }
    *all = w->at == w->count;
    RP_TRY(*all ? rp_feed_wires_step(c, all) : RP_OK);
fail:
    return err;
}
