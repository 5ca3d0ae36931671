/* Losses of codecs, by hold of the plan in force. */
#include <math.h>
#include <string.h>

#include "measure/losses.h"
#include "measure/measure_own.h"

rp_err rp_losses_open(rp_measure *m, const rp_plan *plan) {
    RP_ASSERT(plan->hold_count > 0 && (m->holds == 0 || m->holds == plan->hold_count));
    m->holds = plan->hold_count;
    return RP_ARENA_NEW(&m->plan_arena, plan->hold_count, &m->losses);
}

static void add_loss(rp_codec_loss *to, rp_codec_loss loss) {
    to->lost += loss.lost;
    to->all += loss.all;
    RP_ASSERT(to->lost >= 0 && to->all >= 0);
}

/* NAN: nothing was measured. */
static double error_of(rp_codec_loss loss) {
    return loss.all > 0 ? sqrt(loss.lost / loss.all) : (double)NAN;
}

static rp_hold_losses *losses_of(const rp_measure *m, const rp_plan *plan,
                                 const rp_plan_hold *hold) {
    RP_ASSERT(m->losses && m->holds == plan->hold_count);
    RP_ASSERT(hold >= plan->hold && hold < plan->hold + plan->hold_count);
    return &m->losses[hold - plan->hold];
}

rp_err rp_losses_take(rp_measure *m, const rp_plan *plan, uint32_t board,
                      const rp_Finished *report) {
    RP_ASSERT(board < m->needs.ring->count);
    for (uint32_t i = 0; i < report->loss_count; i++) {
        const rp_CodecLoss *loss = &report->loss[i];
        const rp_plan_hold *hold =
            loss->stage < plan->stage_count ? rp_plan_find_hold(plan, board, loss->stage) : NULL;
        if (!hold) {
            return rp_fail(RP_ERR_PEER,
                           "board %s reports codec losses of stage %u, which it does not hold",
                           m->needs.ring->board[board].name, loss->stage);
        }
        if (isfinite(loss->lost) && loss->lost >= 0 && isfinite(loss->all) &&
            loss->all >= 0) { /* else the net's own values are no longer finite */
            rp_hold_losses *to = losses_of(m, plan, hold);
            add_loss(&to->segment[loss->gradients], (rp_codec_loss){loss->lost, loss->all});
            add_loss(&to->total[loss->gradients], (rp_codec_loss){loss->lost, loss->all});
        }
    }
    return RP_OK;
}

double rp_losses_of_wire(const rp_measure *m, const rp_plan *plan, uint32_t from, uint32_t to) {
    rp_codec_loss sum = {0};
    for (uint32_t e = 0; e < plan->edge_count; e++) {
        const rp_plan_edge *edge = &plan->edge[e];
        const bool up = edge->carries == RP_CARRIES_ACTIVATION;
        const bool down = edge->carries == RP_CARRIES_GRADIENT;
        if ((up || down) && edge->from == from && edge->to == to) {
            const rp_plan_hold *hold = rp_plan_find_hold(plan, from, rp_plan_sending_stage(edge));
            add_loss(&sum, losses_of(m, plan, hold)->total[down]);
        }
    }
    return error_of(sum);
}

double rp_losses_of_stage(const rp_measure *m, const rp_plan *plan, uint32_t stage,
                          bool gradients) {
    rp_codec_loss sum = {0};
    RP_ASSERT(stage < plan->stage_count);
    for (const rp_plan_hold *hold = plan->hold; hold < plan->hold + plan->hold_count; hold++) {
        if (hold->stage == stage) {
            add_loss(&sum, losses_of(m, plan, hold)->segment[gradients]);
        }
    }
    return error_of(sum);
}

void rp_losses_end_segment(rp_measure *m) {
    RP_ASSERT(m->losses && m->holds > 0);
    for (uint32_t h = 0; h < m->holds; h++) {
        memset(m->losses[h].segment, 0, sizeof m->losses[h].segment);
    }
}
