/* The wires between the host and its boards are measured, over their control links, which nothing
 * else uses then: one after the other, each both ways. What can not be measured stays unknown. */
#include "base/log.h"
#include "control/controller_own.h"

static const int64_t LONGEST_NS = 8 * RP_NS_PER_S; /* of one way */
static const uint32_t SIZES[] = {64, 16 << 10, 256 << 10};
enum { SIZE_COUNT = sizeof SIZES / sizeof *SIZES };

void rp_feed_wires_begin(rp_controller *c, bool wanted) {
    rp_feed_wires *w = &c->measure.feed_wires;
    const bool lent = w->rate.on_way > 0; /* a link still has what was measured with before */
    if (!lent) {
        rp_wire_rate_end(&w->rate);
    }
    const bool may = wanted && !lent && (c->ring.features & RP_WIRE_FEATURE_BESIDES);
    w->at = 0;
    w->count = may ? c->ring.count : 0;
    w->phase = RP_FEED_WIRES_NEXT;
}

static void leave_board(rp_controller *c, const char *why) {
    rp_feed_wires *w = &c->measure.feed_wires;
    if (why) {
        rp_log_warn("controller: the wire between the host and board %s is not measured: %s",
                    c->ring.board[w->at].name, why);
    }
    w->phase = RP_FEED_WIRES_NEXT;
    w->at++;
}

/* False: it is no measurement. */
static bool take(rp_controller *c, bool back, const double *seconds, const double *spread) {
    const uint32_t host = c->measure.profile.board_count;
    const uint32_t board = c->measure.feed_wires.at;
    rp_curve_point point[SIZE_COUNT];
    uint32_t count = 0;
    for (uint32_t i = 0; i < SIZE_COUNT; i++) {
        if (seconds[i] > 0) {
            point[count++] = (rp_curve_point){SIZES[i], seconds[i], spread[i]};
        }
    }
    return rp_profile_take_wire(&c->measure.profile, back ? board : host, back ? host : board,
                                point, count) == RP_OK;
}

static rp_err begin_forth(rp_controller *c) {
    rp_feed_wires *w = &c->measure.feed_wires;
    w->since_ns = c->ring.now_ns;
    w->phase = RP_FEED_WIRES_FORTH;
    return rp_wire_rate_begin(&w->rate, c->env.clock, SIZES, SIZE_COUNT, false);
}

static rp_err ask_back(rp_controller *c) {
    rp_Frame frame = {.which_body = RP_KIND_TRIAL, .body.trial = {.control = true}};
    rp_Trial *trial = &frame.body.trial;
    for (uint32_t i = 0; i < SIZE_COUNT; i++) {
        trial->bytes[trial->bytes_count++] = SIZES[i];
    }
    c->measure.feed_wires.phase = RP_FEED_WIRES_BACK;
    c->measure.feed_wires.since_ns = c->ring.now_ns;
    c->ring.board[c->measure.feed_wires.at].tried = false;
    return rp_ring_post(&c->ring, c->measure.feed_wires.at, &frame, NULL);
}

/* *on: the way is over. */
static rp_err step_forth(rp_controller *c, bool *on) {
    rp_feed_wires *w = &c->measure.feed_wires;
    double seconds[RP_WIRE_SIZES_MAX];
    double spread[RP_WIRE_SIZES_MAX];
    bool over = false;
    rp_err err;
    RP_TRY(rp_wire_rate_step(&w->rate, c->ring.board[w->at].control, &over));
    *on = over;
    if (over) {
        rp_wire_rate_result(&w->rate, seconds, spread);
        rp_wire_rate_end(&w->rate);
        if (take(c, false, seconds, spread)) {
            return ask_back(c);
        }
        leave_board(c, "no size has come through");
    } else if (c->ring.now_ns - w->since_ns > LONGEST_NS) {
        leave_board(c, "its messages are not acked");
        w->count = 0; /* they are still on their way */
        *on = true;
    }
fail:
    return err;
}

static bool step_back(rp_controller *c) {
    const rp_feed_wires *w = &c->measure.feed_wires;
    const rp_board_state *board = &c->ring.board[w->at];
    const rp_TrialDone *done = &board->trial;
    if (!board->tried) {
        const bool late = c->ring.now_ns - w->since_ns > LONGEST_NS;
        if (late) {
            leave_board(c, "the board does not answer");
        }
        return late;
    }
    const bool measured = done->outcome == RP_TRIAL_MEASURED && done->seconds_count == SIZE_COUNT &&
                          done->spread_count == SIZE_COUNT &&
                          take(c, true, done->seconds, done->spread);
    leave_board(c, measured ? NULL : done->text[0] ? done->text : "the board has no answer");
    return true;
}

rp_err rp_feed_wires_step(rp_controller *c, bool *all) {
    rp_feed_wires *w = &c->measure.feed_wires;
    bool on = true;
    rp_err err = RP_OK;
    while (on && w->at < w->count) {
        if (w->phase == RP_FEED_WIRES_NEXT) {
            RP_TRY(begin_forth(c));
        } else if (w->phase == RP_FEED_WIRES_FORTH) {
            RP_TRY(step_forth(c, &on));
        } else {
            on = step_back(c);
        }
    }
    *all = w->at >= w->count;
fail:
    return err;
}

void rp_feed_wires_end(rp_controller *c) {
    rp_wire_rate_end(&c->measure.feed_wires.rate);
}
