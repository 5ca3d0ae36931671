/* A round: the waiting lanes are averaged with the centre, and continue. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "lanes/lanes_own.h"

/* Minimum wait for working lanes before the first round, because building kernels takes minutes and
 * the duration of a round is unknown. */
static const int64_t FIRST_NS = 900 * RP_NS_PER_S;
static const int64_t LEAST_NS = 30 * RP_NS_PER_S;
enum { TIMES_A_ROUND = 3 };
/* lag: auto. The loss of a roster board is only noticed after some seconds. */
static const int64_t LEAST_AUTO_NS = 3 * RP_NS_PER_S;

static uint32_t bound_count(uint32_t count) {
    return count < RP_ROUND_TIMES_MAX ? count : RP_ROUND_TIMES_MAX;
}

static int64_t bound_ns(const rp_lanes *lanes) {
    const int64_t usual_ns = rp_round_p95(lanes->round_ns, bound_count(lanes->rounds));
    const bool is_auto = lanes->keys.lag_auto;
    const int64_t bound = (is_auto ? 1 : TIMES_A_ROUND) * usual_ns;
    const int64_t least = is_auto ? LEAST_AUTO_NS : LEAST_NS;
    return lanes->closed_ns == 0 ? FIRST_NS : bound > least ? bound : least;
}

int64_t rp_lanes_meet_ns(const rp_lanes *lanes) {
    if (lanes->retry_ns > lanes->now_ns) {
        return lanes->retry_ns;
    }
    return lanes->waiting_ns > 0 && lanes->phase == RP_LANES_WORK
               ? lanes->waiting_ns + bound_ns(lanes)
               : INT64_MAX;
}

static rp_round_facts facts_of(const rp_lanes *lanes) {
    const uint32_t rounds = bound_count(lanes->rounds);
    rp_round_facts facts = {.count = lanes->keys.count,
                            .alpha = lanes->keys.alpha,
                            .waited_ns = lanes->now_ns - lanes->waiting_ns,
                            .bound_ns = bound_ns(lanes)};
    for (uint32_t k = 0; k < facts.count; k++) {
        const rp_lane_child *lane = &lanes->lane[k];
        const uint64_t missed = lanes->round - lane->joined;
        facts.lane[k] =
            (rp_round_lane){.condition = lane->reached ? RP_LANE_WAITS : lane->condition,
                            .missed = missed < UINT32_MAX / 2 ? (uint32_t)missed : UINT32_MAX / 2,
                            .may_lag = lanes->keys.lag_auto
                                           ? rp_round_lag(lane->delay_ns, bound_count(lane->delays),
                                                          lanes->round_ns, rounds)
                                           : lanes->keys.lag};
    }
    return facts;
}

/* ---- averaging ------------------------------------------------------------------------------- */

/* Ends a lane with an unusable checkpoint; it will resume from an older one. */
static rp_err refuse_checkpoint(rp_lanes *lanes, rp_lane_child *lane) {
    char why[RP_ERR_MESSAGE_BYTES];
    (void)snprintf(why, sizeof why, "%s", rp_err_message());
    lane->reached = false;
    lane->condition = RP_LANE_AWAY;
    lane->child.told = 2;
    rp_child_tell(&lane->child, lanes->now_ns);
    return rp_lanes_log_event(
        lanes, &(rp_run_event){.kind = RP_EVENT_LANE_REFUSED, .lane = lane->index, .error = why});
}

static rp_err average_members(rp_lanes *lanes, const rp_round_decision *decision, bool *done) {
    char from[RP_LANES_MAX][RP_LANE_PATH_BYTES];
    char to[RP_LANES_MAX][RP_LANE_PATH_BYTES];
    uint32_t of[RP_LANES_MAX];
    uint32_t bad;
    rp_average all = {.center = lanes->round > 0 ? lanes->center : NULL,
                      .next = lanes->next_center,
                      .round = lanes->round + 1};
    for (uint32_t k = 0; k < lanes->keys.count; k++) {
        if (decision->alpha[k] > 0) {
            of[all.count] = k;
            rp_lanes_name_checkpoint(&lanes->lane[k], lanes->lane[k].step, from[k]);
            rp_lanes_name_made(&lanes->lane[k], to[k]);
            all.member[all.count++] = (rp_average_member){from[k], to[k], decision->alpha[k]};
        }
    }
    const rp_err err = rp_average_make(&all, lanes->digest, &bad);
    *done = err == RP_OK;
    return err != RP_OK && bad < all.count ? refuse_checkpoint(lanes, &lanes->lane[of[bad]]) : err;
}

/* ---- closing --------------------------------------------------------------------------------- */

static void note_times(rp_lanes *lanes) {
    if (lanes->closed_ns > 0) {
        lanes->round_ns[lanes->rounds++ % RP_ROUND_TIMES_MAX] = lanes->now_ns - lanes->closed_ns;
    }
    lanes->closed_ns = lanes->now_ns;
    lanes->speed[lanes->round % RP_LANES_SPEEDS].at_ns = lanes->now_ns;
    lanes->speed[lanes->round % RP_LANES_SPEEDS].samples = rp_lanes_samples(lanes);
}

static void note_members(rp_lanes *lanes, const rp_round_decision *decision) {
    double loss = 0;
    for (uint32_t k = 0; k < lanes->keys.count; k++) {
        rp_lane_child *lane = &lanes->lane[k];
        if (decision->alpha[k] > 0) {
            loss += lane->loss / decision->members;
            lane->joined = lanes->round;
            lane->averaged = lane->step;
            lane->rounds++;
            lane->late += decision->lag[k] > 0;
            lane->tries = 0;
            lane->condition = RP_LANE_AT_WORK;
            lanes->last_steps = lane->step == lanes->steps ? lanes->steps : lanes->last_steps;
        }
    }
    lanes->loss = loss;
}

/* Working lanes that did not come in time count as away until they reach a round. */
static void note_absent(rp_lanes *lanes, const rp_round_facts *facts) {
    for (uint32_t k = 0; k < lanes->keys.count; k++) {
        if (facts->lane[k].condition == RP_LANE_AT_WORK && facts->waited_ns >= facts->bound_ns) {
            lanes->lane[k].condition = RP_LANE_AWAY;
        }
    }
}

static void release_members(rp_lanes *lanes, const rp_round_decision *decision) {
    for (uint32_t k = 0; k < lanes->keys.count; k++) {
        rp_lane_child *lane = &lanes->lane[k];
        if (lanes->last_steps > 0 && lane->step < lanes->steps) {
            rp_child_tell(&lane->child,
                          lanes->now_ns); /* its remaining steps would come too late */
        } else if (decision->alpha[k] > 0) {
            rp_lane_release(lane, lane->step);
        }
    }
}

/* Can be repeated after any part of it has failed. */
static rp_err end_round(rp_lanes *lanes) {
    rp_err err;
    RP_TRY(rp_lanes_write_journal(lanes));
    RP_TRY(rp_lanes_place_files(lanes));
    RP_TRY(rp_lanes_log_round(lanes, lanes->closing.alpha, lanes->closing.lag));
    release_members(lanes, &lanes->closing);
    lanes->phase = lanes->last_steps > 0 ? RP_LANES_LAST : lanes->phase;
    lanes->is_closing = false;
fail:
    return err;
}

static rp_err close_round(rp_lanes *lanes, const rp_round_facts *facts,
                          const rp_round_decision *decision) {
    bool done;
    rp_err err;
    RP_TRY(average_members(lanes, decision, &done));
    if (!done) {
        return RP_OK; /* the remaining lanes try again without the refused one */
    }
    lanes->round++;
    note_members(lanes, decision);
    note_absent(lanes, facts);
    note_times(lanes);
    lanes->is_closing = true;
    lanes->closing = *decision;
    RP_TRY(end_round(lanes));
fail:
    return err;
}

/* ---- a full disk ----------------------------------------------------------------------------- */

static const int64_t FULL_NS = 30 * RP_NS_PER_S;
static const int64_t REST_NS = RP_NS_PER_S;

/* Retries failed writes for a limited time. */
static rp_err handle_full_disk(rp_lanes *lanes, rp_err err) {
    if (err != RP_ERR_IO) {
        lanes->full_ns = 0;
        return err;
    }
    const bool is_first = lanes->full_ns == 0;
    lanes->full_ns = is_first ? lanes->now_ns : lanes->full_ns;
    lanes->retry_ns = lanes->now_ns + REST_NS;
    if (lanes->now_ns - lanes->full_ns >= FULL_NS) {
        return err;
    }
    return is_first ? rp_lanes_log_event(
                          lanes, &(rp_run_event){.kind = RP_EVENT_LANES_UNSAVED,
                                                 .error = rp_err_message(),
                                                 .wait_s = (uint64_t)(FULL_NS / RP_NS_PER_S)})
                    : RP_OK;
}

rp_err rp_lanes_meet(rp_lanes *lanes) {
    rp_round_decision decision;
    if (lanes->now_ns < lanes->retry_ns) {
        return RP_OK;
    }
    if (lanes->is_closing) {
        return handle_full_disk(lanes, end_round(lanes));
    }
    lanes->waiting_ns = 0;
    for (uint32_t k = 0; k < lanes->keys.count; k++) {
        const rp_lane_child *lane = &lanes->lane[k];
        if (lane->reached && (lanes->waiting_ns == 0 || lane->reached_ns < lanes->waiting_ns)) {
            lanes->waiting_ns = lane->reached_ns;
        }
    }
    if (lanes->waiting_ns == 0) {
        return RP_OK;
    }
    const rp_round_facts facts = facts_of(lanes);
    rp_round_decide(&facts, &decision);
    return decision.closes ? handle_full_disk(lanes, close_round(lanes, &facts, &decision)) : RP_OK;
}
