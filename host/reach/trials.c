/* Neighbours try links to each other, one direction after the other: one listens, the other dials.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "reach/reach_own.h"

static rp_err send_trial(reach_work *work, uint32_t board, const char *endpoint, const char *key) {
    rp_Frame frame = {.which_body = RP_KIND_TRIAL};
    rp_Trial *trial = &frame.body.trial;
    (void)snprintf(trial->endpoint, sizeof trial->endpoint, "%s", endpoint);
    (void)snprintf(trial->public_key, sizeof trial->public_key, "%s", key);
    work->end[board].tried = false;
    const rp_err err = rp_link_send(work->end[board].control, &frame, NULL, 0, true, NULL, NULL);
    return err == RP_ERR_AGAIN ? RP_OK : err; /* it does not answer then */
}

/* Its answer; false within RP_REACH_NS none. */
static rp_err await(reach_work *work, uint32_t board, bool *came) {
    const rp_clock *clock = work->options->clock;
    const int64_t end_ns = rp_clock_now_ns(clock) + RP_REACH_NS;
    rp_err err = RP_OK;
    while (!work->end[board].tried && rp_clock_now_ns(clock) < end_ns) {
        RP_TRY(reach_round(work, REACH_NAP_NS));
    }
    *came = work->end[board].tried;
fail:
    return err;
}

static void say_failed(rp_reach_pair *pair, const char *why) {
    pair->way = RP_REACH_FAILS;
    (void)snprintf(pair->why, sizeof pair->why, "%s", why);
}

static void take_outcome(rp_reach_pair *pair, const rp_TrialDone *done) {
    switch (done->outcome) {
    case RP_TRIAL_REACHED:
        pair->way = RP_REACH_WORKS;
        return;
    case RP_TRIAL_REFUSED:
        say_failed(pair, "the handshake was refused: the keys do not fit");
        return;
    case RP_TRIAL_SILENT:
        pair->way = RP_REACH_FAILS;
        (void)snprintf(pair->why, sizeof pair->why, "nothing came within %" PRId64 " s",
                       RP_TRIAL_NS / RP_NS_PER_S);
        return;
    default:
        say_failed(pair, done->text[0] ? done->text : "it could not be tried");
    }
}

static rp_err try_way(reach_work *work, rp_reach_pair *pair) {
    const rp_roster_entry *roster = work->options->roster;
    const rp_roster_entry *to = &roster[pair->to];
    const char *colon = strrchr(to->endpoint, ':');
    const rp_TrialDone *done = &work->end[pair->to].done;
    char endpoint[160];
    bool came = false;
    rp_err err;
    RP_TRY(send_trial(work, pair->to, "", roster[pair->from].public_text));
    RP_TRY(await(work, pair->to, &came));
    if (!came || done->outcome != RP_TRIAL_LISTENS || done->port > UINT16_MAX) {
        say_failed(pair, came && done->text[0] ? done->text : "the other board does not listen");
        return RP_OK;
    }
    (void)snprintf(endpoint, sizeof endpoint, "%.*s:%u", (int)(colon - to->endpoint), to->endpoint,
                   done->port);
    RP_TRY(send_trial(work, pair->from, endpoint, to->public_text));
    RP_TRY(await(work, pair->from, &came));
    if (came) {
        take_outcome(pair, &work->end[pair->from].done);
    } else {
        say_failed(pair, "the board that dials does not say what came of it");
    }
    RP_TRY(send_trial(work, pair->to, "", ""));
fail:
    return err;
}

rp_err reach_try_pairs(reach_work *work) {
    rp_reach *found = work->out;
    rp_err err = RP_OK;
    for (uint32_t k = 0; k + 1 < found->board_count; k++) {
        for (uint32_t back = 0; back < 2; back++) {
            rp_reach_pair *pair = &found->pair[found->pair_count++];
            *pair = (rp_reach_pair){.from = k + back, .to = k + 1 - back};
            const rp_reach_board *from = &found->board[pair->from];
            const rp_reach_board *to = &found->board[pair->to];
            pair->chosen = from->dials != to->dials ? from->dials : back == 0;
            if (to->dials) {
                pair->way = RP_REACH_IMPOSSIBLE;
            } else if (from->state != RP_REACH_THERE || to->state != RP_REACH_THERE) {
                pair->way = RP_REACH_UNTRIED;
            } else {
                RP_TRY(try_way(work, pair));
            }
        }
    }
fail:
    return err;
}
