/* Measures the wires between neighbours, before there is a plan: one by one, from either
 * end and then from both at once, over a link made only for this (TRIAL). A wire that cannot be
 * measured keeps its default; no run fails because of it. */
#include <stdio.h>

#include "base/log.h"
#include "measure/measure_own.h"

/* Longer than RP_TRIAL_NS, within which a board reports that it cannot reach its peer. */
static const int64_t ANSWER_NS = 8 * RP_NS_PER_S;
static const uint32_t SIZES[] = {64, 16 << 10, 256 << 10, 2 << 20};
enum { SIZE_COUNT = sizeof SIZES / sizeof *SIZES };

/* Emulated wires are known, and a simulation has no other wires. */
static bool are_wanted(const rp_measure *m) {
    const rp_ring *ring = m->needs.ring;
    return ring->count > 1 && rp_measure_has_unknown_wires(m) &&
           (ring->features & RP_WIRE_FEATURE_WIRES);
}

/* Finds the boards at the ends of a wire with tensor traffic; false: no more wires. */
static bool find_ends(const rp_measure *m, uint32_t at, uint32_t end[2]) {
    const rp_runfile *run = m->needs.run;
    return rp_method_wire(&run->method, m->needs.ring->count, run->stages, at, end);
}

static uint32_t count_wires(const rp_measure *m) {
    uint32_t end[2];
    uint32_t count = 0;
    while (are_wanted(m) && find_ends(m, count, end)) {
        count++;
    }
    return count;
}

void rp_wires_begin(rp_measure *m) {
    m->wires = (rp_wires){.count = count_wires(m)};
    rp_feed_wires_begin(m);
}

static const rp_board_state *end_of(const rp_measure *m, uint32_t end) {
    return &m->needs.ring->board[m->wires.end[end]];
}

static const rp_TrialDone *answer_of(const rp_measure *m, uint32_t end) {
    return &m->board[m->wires.end[end]].trial;
}

/* ---- asking ---------------------------------------------------------------------------------- */

static rp_err ask_end(rp_measure *m, uint32_t end, const char *endpoint, const char *key,
                      const uint32_t *size, uint32_t sizes) {
    const uint32_t board = m->wires.end[end];
    rp_Frame frame = {.which_body = RP_KIND_TRIAL};
    rp_Trial *trial = &frame.body.trial;
    RP_ASSERT(board < m->needs.ring->count && sizes <= SIZE_COUNT);
    trial->row = m->wires.phase == RP_WIRES_BOTH;
    (void)snprintf(trial->endpoint, sizeof trial->endpoint, "%s", endpoint);
    (void)snprintf(trial->public_key, sizeof trial->public_key, "%s", key);
    trial->bytes_count = (pb_size_t)sizes;
    for (uint32_t i = 0; i < sizes; i++) {
        trial->bytes[i] = size[i];
    }
    m->board[board].tried = false;
    m->wires.since_ns = m->needs.ring->now_ns;
    return rp_ring_post(m->needs.ring, board, &frame, NULL);
}

/* End 0 is the one that dials, because boards that dial cannot be dialled themselves. */
static rp_err begin_wire(rp_measure *m) {
    rp_wires *w = &m->wires;
    const rp_board_state *board = m->needs.ring->board;
    uint32_t end[2];
    RP_ASSERT(w->phase == RP_WIRES_NEXT && w->at < w->count);
    const bool is_there = find_ends(m, w->at, end);
    RP_ASSERT(is_there && end[0] != end[1]);
    const bool swapped = board[end[1]].address.dials;
    if (board[end[0]].address.dials && swapped) {
        w->at++;
        return RP_OK;
    }
    w->end[0] = end[swapped];
    w->end[1] = end[!swapped];
    w->phase = RP_WIRES_LISTEN;
    return ask_end(m, 1, "", end_of(m, 0)->address.public_text, NULL, 0);
}

static rp_err dial_far_end(rp_measure *m) {
    char endpoint[160];
    rp_ring_endpoint_at(end_of(m, 1), answer_of(m, 1)->port, endpoint, sizeof endpoint);
    m->wires.phase = RP_WIRES_FORTH;
    return ask_end(m, 0, endpoint, end_of(m, 1)->address.public_text, SIZES, SIZE_COUNT);
}

/* Both boards close the link. */
static rp_err end_wire(rp_measure *m) {
    rp_err err;
    RP_ASSERT(m->wires.phase != RP_WIRES_NEXT && m->wires.at < m->wires.count);
    m->wires.phase = RP_WIRES_NEXT;
    m->wires.at++;
    RP_TRY(ask_end(m, 0, "", "", NULL, 0));
    RP_TRY(ask_end(m, 1, "", "", NULL, 0));
fail:
    return err;
}

static rp_err give_up(rp_measure *m, const char *why) {
    rp_log_warn("controller: the wire from board %s to board %s is not measured: %s",
                end_of(m, 0)->name, end_of(m, 1)->name, why);
    return end_wire(m);
}

/* ---- answers --------------------------------------------------------------------------------- */

void rp_measure_take_trial(rp_measure *m, uint32_t board, const rp_TrialDone *done) {
    RP_ASSERT(board < m->board_count);
    m->board[board].trial = *done;
    m->board[board].tried = true;
}

static bool has_measured(const rp_TrialDone *done) {
    return done->outcome == RP_TRIAL_MEASURED && done->seconds_count > 0 &&
           done->spread_count == done->seconds_count;
}

/* Seconds of the largest size that arrived, minus those of the smallest; 0: none arrived. */
static double find_largest_s(const rp_TrialDone *done, uint32_t *bytes) {
    double seconds = 0;
    for (uint32_t i = 1; i < done->seconds_count && i < SIZE_COUNT; i++) {
        if (done->seconds[i] > 0) {
            seconds = done->seconds[i] - done->seconds[0];
            *bytes = SIZES[i];
        }
    }
    return seconds;
}

/* False: the end has measured nothing, or impossible values. */
static bool take_curve(rp_measure *m, uint32_t from) {
    rp_wires *w = &m->wires;
    const rp_TrialDone *done = answer_of(m, from);
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
    w->alone_s[from] = find_largest_s(done, &w->largest[from]);
    return rp_profile_take_wire(&m->profile, w->end[from], w->end[!from], point, count) == RP_OK;
}

/* The largest size in bytes that arrived in both directions. */
static uint32_t smaller_of_both(const rp_wires *w) {
    return w->largest[0] < w->largest[1] ? w->largest[0] : w->largest[1];
}

static rp_err ask_both(rp_measure *m) {
    const uint32_t least = smaller_of_both(&m->wires);
    rp_err err;
    RP_ASSERT(m->wires.phase == RP_WIRES_BACK && least > 0);
    m->wires.phase = RP_WIRES_BOTH;
    RP_TRY(ask_end(m, 0, "", "", &least, 1));
    RP_TRY(ask_end(m, 1, "", "", &least, 1));
fail:
    return err;
}

/* A wire is shared if its directions take turns: with both in use, the same bytes take twice as
 * long. */
static void take_both(rp_measure *m) {
    static const double SHARED = 1.6;
    const rp_wires *w = &m->wires;
    const uint32_t least = smaller_of_both(w);
    double most = 0;
    for (uint32_t k = 0; k < 2; k++) {
        const rp_TrialDone *done = answer_of(m, k);
        if (has_measured(done) && done->seconds[0] > 0) {
            const double alone_s = w->alone_s[k] * least / w->largest[k];
            const double slower = done->seconds[0] / alone_s;
            most = slower > most ? slower : most;
        }
    }
    rp_profile_take_shared(&m->profile, w->end[0], w->end[1], most > SHARED);
}

static rp_err take_answer(rp_measure *m) {
    rp_wires *w = &m->wires;
    const rp_TrialDone *near = answer_of(m, 0);
    const rp_TrialDone *far = answer_of(m, 1);
    const char *text = w->phase == RP_WIRES_FORTH ? near->text : far->text;
    const char *why = text[0] ? text : "no link came about";
    switch (w->phase) {
    case RP_WIRES_LISTEN:
        return far->outcome == RP_TRIAL_LISTENS && far->port <= UINT16_MAX ? dial_far_end(m)
                                                                           : give_up(m, why);
    case RP_WIRES_FORTH:
        if (!take_curve(m, 0)) {
            return give_up(m, why);
        }
        w->phase = RP_WIRES_BACK;
        return ask_end(m, 1, "", "", SIZES, SIZE_COUNT);
    case RP_WIRES_BACK:
        if (!take_curve(m, 1)) {
            return give_up(m, why);
        }
        return w->alone_s[0] > 0 && w->alone_s[1] > 0 ? ask_both(m) : end_wire(m);
    default:
        RP_ASSERT(w->phase == RP_WIRES_BOTH);
        take_both(m);
        return end_wire(m);
    }
}

static bool has_answered(const rp_measure *m) {
    const rp_wires *w = &m->wires;
    const bool near = m->board[w->end[0]].tried;
    const bool far = m->board[w->end[1]].tried;
    return w->phase == RP_WIRES_BOTH ? near && far : w->phase == RP_WIRES_FORTH ? near : far;
}

rp_err rp_measure_step_wires(rp_measure *m, bool *all) {
    const rp_wires *w = &m->wires;
    rp_err err = RP_OK;
    RP_ASSERT(m->builders == 0 && w->at <= w->count);
    while (w->at < w->count) {
        if (w->phase == RP_WIRES_NEXT) {
            RP_TRY(begin_wire(m));
        } else if (has_answered(m)) {
            RP_TRY(take_answer(m));
        } else if (m->needs.ring->now_ns - w->since_ns > ANSWER_NS) {
            RP_TRY(give_up(m, "no answer"));
        } else {
            break;
        }
    }
    *all = w->at == w->count;
    RP_TRY(*all ? rp_feed_wires_step(m, all) : RP_OK);
fail:
    return err;
}
