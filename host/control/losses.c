/* What codecs lose: sums of squares of some of the samples that boards send, as they report them
 * at the end of a segment. A loss is told as relative L2 error: 0.01 is 1 % of what was sent. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "control/controller_own.h"

rp_err rp_losses_open(rp_controller *c) {
    return RP_ARENA_NEW(&c->setup.plan_arena, c->setup.plan->hold_count, &c->measure.losses);
}

static void add(rp_codec_loss *to, rp_codec_loss loss) {
    to->lost += loss.lost;
    to->all += loss.all;
}

/* NAN: nothing was measured. */
static double error_of(rp_codec_loss loss) {
    return loss.all > 0 ? sqrt(loss.lost / loss.all) : (double)NAN;
}

rp_err rp_losses_take(rp_controller *c, uint32_t board, const rp_Finished *report) {
    for (uint32_t i = 0; i < report->loss_count; i++) {
        const rp_CodecLoss *loss = &report->loss[i];
        const rp_plan_hold *hold = loss->stage < c->setup.plan->stage_count
                                       ? rp_plan_find_hold(c->setup.plan, board, loss->stage)
                                       : NULL;
        if (!hold) {
            return rp_fail(RP_ERR_PEER,
                           "board %s reports what stage %u has lost, which it does not hold",
                           c->ring.board[board].name, loss->stage);
        }
        if (isfinite(loss->lost) && loss->lost >= 0 && isfinite(loss->all) &&
            loss->all >= 0) { /* else the numbers of the net are none any more */
            rp_hold_losses *to = &c->measure.losses[hold - c->setup.plan->hold];
            add(&to->segment[loss->gradients], (rp_codec_loss){loss->lost, loss->all});
            add(&to->total[loss->gradients], (rp_codec_loss){loss->lost, loss->all});
        }
    }
    return RP_OK;
}

double rp_losses_of_wire(const rp_controller *c, uint32_t from, uint32_t to) {
    rp_codec_loss sum = {0};
    for (uint32_t e = 0; e < c->setup.plan->edge_count; e++) {
        const rp_plan_edge *edge = &c->setup.plan->edge[e];
        const bool up = edge->carries == RP_CARRIES_ACTIVATION;
        const bool down = edge->carries == RP_CARRIES_GRADIENT;
        if ((up || down) && edge->from == from && edge->to == to) {
            const uint32_t sender = up ? edge->stage - 1 : edge->stage + 1;
            const rp_plan_hold *hold = rp_plan_find_hold(c->setup.plan, from, sender);
            add(&sum, c->measure.losses[hold - c->setup.plan->hold].total[down]);
        }
    }
    return error_of(sum);
}

/* Of a stage, in the segment that has ended: of all boards that share it. */
static double segment_error(const rp_controller *c, uint32_t stage, bool gradients) {
    rp_codec_loss sum = {0};
    for (uint32_t h = 0; h < c->setup.plan->hold_count; h++) {
        if (c->setup.plan->hold[h].stage == stage) {
            add(&sum, c->measure.losses[h].segment[gradients]);
        }
    }
    return error_of(sum);
}

/* Of what a stage sends: where more is lost than links.max_error, a milder codec is next. */
static rp_err judge(rp_controller *c, const rp_sink_codec *line, bool gradients) {
    const rp_codec_choice *codecs = &c->setup.codecs;
    char text[200];
    if (codecs->stages != c->setup.plan->stage_count || line->l2_error <= c->run.codec_max_error) {
        return RP_OK;
    }
    const uint32_t boundary = line->stage - gradients;
    const rp_codec milder = rp_cost_milder(codecs->now[boundary][gradients], gradients);
    rp_codec *next = &codecs->next[boundary][gradients];
    if (*next == milder) {
        return RP_OK; /* it waits for empty pipes */
    }
    *next = milder;
    c->setup.codecs.differ = true;
    (void)snprintf(text, sizeof text,
                   "%s of stage %u lose %.2g %% in %s, and links.max_error is %.2g %%: %s is next",
                   line->carries, line->stage, 100 * line->l2_error, line->codec,
                   100 * c->run.codec_max_error, rp_codec_name(*next));
    return rp_record_event(rp_folder_record(c->folder), "codecs", line->step, text);
}

rp_err rp_losses_note(rp_controller *c) {
    rp_err err = RP_OK;
    for (uint32_t k = 0; k < c->setup.plan->stage_count; k++) {
        rp_codec codec[2][2];
        rp_plan_codecs_of(c->setup.plan, k, codec);
        for (uint32_t gradients = 0; gradients < 2; gradients++) {
            const double error = segment_error(c, k, gradients > 0);
            const rp_sink_codec line = {.step = c->train.position.step,
                                        .stage = k,
                                        .carries = gradients ? "gradients" : "activations",
                                        .codec = rp_codec_name(codec[!gradients][gradients]),
                                        .l2_error = error};
            if (!isnan(error)) {
                RP_TRY(rp_record_codec(rp_folder_record(c->folder), &line));
                RP_TRY(judge(c, &line, gradients > 0));
            }
        }
    }
    for (uint32_t h = 0; h < c->setup.plan->hold_count; h++) {
        memset(c->measure.losses[h].segment, 0, sizeof c->measure.losses[h].segment);
    }
fail:
    return err;
}
