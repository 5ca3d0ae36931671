/* Neighbours try links to each other, first in one direction, then back: one listens, its peer
 * dials. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "reach/reach_own.h"

/* Arguments of all trials. */
typedef struct {
    rp_greet *greet;
    const rp_reach_options *options;
} trial;

/* *out: its answer; NULL: none within RP_REACH_NS. */
static rp_err ask_board(const trial *t, uint32_t board, const char *endpoint, const char *key,
                        const rp_TrialDone **out) {
    const rp_clock *clock = t->options->clock;
    const int64_t end_ns = rp_clock_now_ns(clock) + RP_REACH_NS;
    rp_Frame frame = {.which_body = RP_KIND_TRIAL};
    rp_Trial *order = &frame.body.trial;
    const rp_Frame *answer = NULL;
    (void)snprintf(order->endpoint, sizeof order->endpoint, "%s", endpoint);
    (void)snprintf(order->public_key, sizeof order->public_key, "%s", key);
    rp_err err = rp_greet_ask(t->greet, board, &frame);
    RP_TRY(err == RP_ERR_AGAIN ? RP_OK : err); /* the board will then not answer */
    while (out && !answer && rp_clock_now_ns(clock) < end_ns) {
        RP_TRY(rp_greet_round(t->greet));
        answer = rp_greet_take_answer(t->greet, board);
    }
    if (out) {
        *out = answer ? &answer->body.trial_done : NULL;
    }
fail:
    return err;
}

static void set_failed(rp_reach_pair *pair, const char *why) {
    pair->way = RP_REACH_FAILS;
    (void)snprintf(pair->why, sizeof pair->why, "%s", why);
}

static void take_outcome(rp_reach_pair *pair, const rp_TrialDone *done) {
    switch (done->outcome) {
    case RP_TRIAL_REACHED:
        pair->way = RP_REACH_WORKS;
        return;
    case RP_TRIAL_REFUSED:
        set_failed(pair, "the handshake was refused: the keys do not fit");
        return;
    case RP_TRIAL_SILENT:
        pair->way = RP_REACH_FAILS;
        (void)snprintf(pair->why, sizeof pair->why, "nothing came within %" PRId64 " s",
                       RP_TRIAL_NS / RP_NS_PER_S);
        return;
    default:
        set_failed(pair, done->text[0] ? done->text : "it could not be tried");
    }
}

static rp_err try_way(const trial *t, rp_reach_pair *pair) {
    const rp_roster_entry *from = &t->options->roster[pair->from];
    const rp_roster_entry *to = &t->options->roster[pair->to];
    const char *colon = strrchr(to->endpoint, ':');
    const rp_TrialDone *done;
    char endpoint[160];
    rp_err err;
    RP_TRY(ask_board(t, pair->to, "", from->public_text, &done));
    if (!done || done->outcome != RP_TRIAL_LISTENS || done->port > UINT16_MAX) {
        set_failed(pair, done && done->text[0] ? done->text : "the far board does not listen");
        return RP_OK;
    }
    (void)snprintf(endpoint, sizeof endpoint, "%.*s:%u", (int)(colon - to->endpoint), to->endpoint,
                   done->port);
    RP_TRY(ask_board(t, pair->from, endpoint, to->public_text, &done));
    if (done) {
        take_outcome(pair, done);
    } else {
        set_failed(pair, "the board that dials does not report the result");
    }
    RP_TRY(ask_board(t, pair->to, "", "", NULL));
fail:
    return err;
}

rp_err reach_try_pairs(rp_greet *greet, const rp_reach_options *options, rp_reach_result *found) {
    const trial t = {.greet = greet, .options = options};
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
            } else if (from->state != RP_GREET_THERE || to->state != RP_GREET_THERE) {
                pair->way = RP_REACH_UNTRIED;
            } else {
                RP_TRY(try_way(&t, pair));
            }
        }
    }
fail:
    return err;
}
