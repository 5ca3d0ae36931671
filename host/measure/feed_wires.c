/* Measures the wires between the host and its boards over their otherwise idle control links: one
 * after the other, each in both directions. A wire that cannot be measured stays unknown. */
#include "base/log.h"
#include "measure/measure_own.h"

static const int64_t LONGEST_NS = 8 * RP_NS_PER_S; /* per direction */
static const uint32_t SIZES[] = {64, 16 << 10, 256 << 10};
enum { SIZE_COUNT = sizeof SIZES / sizeof *SIZES };

void rp_feed_wires_begin(rp_measure *m) {
    rp_feed_wires *w = &m->feed_wires;
    const rp_ring *ring = m->needs.ring;
    const bool lent = w->rate.on_way > 0; /* a link still has messages of an earlier measurement */
    if (!lent) {
        rp_wire_rate_end(&w->rate);
    }
    const bool may =
        rp_measure_has_unknown_wires(m) && !lent && (ring->features & RP_WIRE_FEATURE_BESIDES);
    w->at = 0;
    w->count = may ? ring->count : 0;
    w->phase = RP_FEED_WIRES_NEXT;
}

/* `why` NULL: the measurement succeeded. */
static void finish_board(rp_measure *m, const char *why) {
    rp_feed_wires *w = &m->feed_wires;
    RP_ASSERT(w->phase != RP_FEED_WIRES_NEXT && w->at < w->count);
    if (why) {
        rp_log_warn("controller: the wire between the host and board %s is not measured: %s",
                    m->needs.ring->board[w->at].name, why);
    }
    w->phase = RP_FEED_WIRES_NEXT;
    w->at++;
}

/* False: the times cannot be those of a wire. */
static bool take_curve(rp_measure *m, bool back, const double *seconds, const double *spread) {
    const uint32_t host = m->profile.board_count;
    const uint32_t board = m->feed_wires.at;
    rp_curve_point point[SIZE_COUNT];
    uint32_t count = 0;
    RP_ASSERT(board < host);
    for (uint32_t i = 0; i < SIZE_COUNT; i++) {
        if (seconds[i] > 0) {
            point[count++] = (rp_curve_point){SIZES[i], seconds[i], spread[i]};
        }
    }
    return rp_profile_take_wire(&m->profile, back ? board : host, back ? host : board, point,
                                count) == RP_OK;
}

static rp_err begin_forth(rp_measure *m) {
    rp_feed_wires *w = &m->feed_wires;
    w->since_ns = m->needs.ring->now_ns;
    w->phase = RP_FEED_WIRES_FORTH;
    return rp_wire_rate_begin(&w->rate, m->needs.clock, SIZES, SIZE_COUNT, false);
}

static rp_err ask_back(rp_measure *m) {
    rp_feed_wires *w = &m->feed_wires;
    rp_Frame frame = {.which_body = RP_KIND_TRIAL, .body.trial = {.control = true}};
    rp_Trial *trial = &frame.body.trial;
    RP_ASSERT(w->phase == RP_FEED_WIRES_FORTH);
    for (uint32_t i = 0; i < SIZE_COUNT; i++) {
        trial->bytes[trial->bytes_count++] = SIZES[i];
    }
    w->phase = RP_FEED_WIRES_BACK;
    w->since_ns = m->needs.ring->now_ns;
    m->board[w->at].tried = false;
    return rp_ring_post(m->needs.ring, w->at, &frame, NULL);
}

/* *on: this direction is done. */
static rp_err step_forth(rp_measure *m, bool *on) {
    rp_feed_wires *w = &m->feed_wires;
    double seconds[RP_WIRE_SIZES_MAX];
    double spread[RP_WIRE_SIZES_MAX];
    bool over = false;
    rp_err err;
    RP_TRY(rp_wire_rate_step(&w->rate, m->needs.ring->board[w->at].control, &over));
    *on = over;
    if (over) {
        rp_wire_rate_result(&w->rate, seconds, spread);
        rp_wire_rate_end(&w->rate);
        if (take_curve(m, false, seconds, spread)) {
            return ask_back(m);
        }
        finish_board(m, "no size has come through");
    } else if (m->needs.ring->now_ns - w->since_ns > LONGEST_NS) {
        finish_board(m, "its messages are not acked");
        w->count = 0; /* messages are still on their way */
        *on = true;
    }
fail:
    return err;
}

static bool step_back(rp_measure *m) {
    const rp_feed_wires *w = &m->feed_wires;
    const rp_TrialDone *done = &m->board[w->at].trial;
    if (!m->board[w->at].tried) {
        const bool late = m->needs.ring->now_ns - w->since_ns > LONGEST_NS;
        if (late) {
            finish_board(m, "the board does not answer");
        }
        return late;
    }
    const bool measured = done->outcome == RP_TRIAL_MEASURED && done->seconds_count == SIZE_COUNT &&
                          done->spread_count == SIZE_COUNT &&
                          take_curve(m, true, done->seconds, done->spread);
    finish_board(m, measured ? NULL : done->text[0] ? done->text : "the board has no answer");
    return true;
}

rp_err rp_feed_wires_step(rp_measure *m, bool *all) {
    rp_feed_wires *w = &m->feed_wires;
    bool on = true;
    rp_err err = RP_OK;
    RP_ASSERT(m->wires.at == m->wires.count);
    while (on && w->at < w->count) {
        if (w->phase == RP_FEED_WIRES_NEXT) {
            RP_TRY(begin_forth(m));
        } else if (w->phase == RP_FEED_WIRES_FORTH) {
            RP_TRY(step_forth(m, &on));
        } else {
            on = step_back(m);
        }
    }
    *all = w->at >= w->count;
fail:
    return err;
}
