/* The order of ops on each node, and their transfers over edges. */
#include "plan/plan_own.h"

#include "sched/split.h"

/* ---- lists ----------------------------------------------------------------------------------- */

static rp_sched_shape shape_of(const rp_plan *plan, const rp_plan_hold *hold) {
    rp_sched_shape shape = {.stages = plan->stage_count,
                            .stage = hold->stage,
                            .share = {hold->share[0], hold->share[1]},
                            .step_first = plan->step_first,
                            .step_end = plan->steps,
                            .epoch_samples = plan->epoch_samples,
                            .batch = plan->batch,
                            .micro = plan->stage[hold->stage].micro_forward};
    if (rp_plan_takes_parts(plan, hold->stage)) {
        shape.micro_backward = plan->stage[hold->stage].micro_backward;
    }
    rp_method_order(&plan->method, &shape);
    return shape;
}

rp_sched_shape rp_plan_stage_shape(const rp_plan *plan, uint32_t stage, uint64_t step_first) {
    uint32_t h = 0;
    while (h + 1 < plan->hold_count && plan->hold[h].stage != stage) {
        h++;
    }
    rp_plan_hold all = plan->hold[h];
    all.share[0] = 0;
    all.share[1] = 1;
    rp_sched_shape shape = shape_of(plan, &all);
    shape.step_first = step_first;
    return shape;
}

static bool next_of_node(const rp_plan *plan, uint32_t node, rp_sched_state *state, rp_op *op) {
    while (plan->method.kind->next(state, op)) {
        const rp_plan_hold *hold = rp_plan_find_hold(plan, node, op->stage);
        if (hold && rp_role_does(hold->role, op->kind)) {
            op->role = hold->role;
            return true;
        }
    }
    return false;
}

static void start_node(const rp_plan *plan, uint32_t node, rp_sched_state *out) {
    const rp_sched_shape shape = shape_of(plan, &plan->hold[plan->node[node].hold_first]);
    rp_sched_start(out, &shape);
}

void rp_plan_list_start(const rp_plan *plan, uint32_t node, rp_plan_list *out) {
    *out = (rp_plan_list){.plan = plan, .node = node};
    start_node(plan, node, &out->state);
}

bool rp_plan_list_next(rp_plan_list *list, rp_op *op) {
    return next_of_node(list->plan, list->node, &list->state, op);
}

/* ---- transfers ------------------------------------------------------------------------------- */

/* The samples of a step at one end of an edge; the host has all. */
static rp_range samples_at(const rp_plan *plan, uint32_t node, uint32_t stage,
                           uint32_t step_samples) {
    const rp_plan_hold *hold = rp_plan_find_hold(plan, node, stage);
    const double all[2] = {0, 1};
    return rp_sched_share(hold && hold->role != RP_ROLE_AVERAGE ? hold->share : all, step_samples);
}

uint32_t rp_plan_sending_stage(const rp_plan_edge *edge) {
    switch (edge->carries) {
    case RP_CARRIES_INPUT:
    case RP_CARRIES_LABEL:
        return 0;
    case RP_CARRIES_ACTIVATION:
        return edge->stage - 1;
    case RP_CARRIES_GRADIENT:
        return edge->stage + 1;
    default:
        return edge->stage;
    }
}

/* Whether a forward elsewhere waits for the weights of an update: the first microbatch of a step
 * does; in an evaluation only that of the first step. */
static bool takes_weights(const rp_plan *plan, const rp_op *op, bool evaluating) {
    if (op->micro > 0) {
        return false;
    }
    if (evaluating) {
        return plan->method.kind->splits && op->step == 0;
    }
    if (!plan->method.kind->splits) {
        return op->step > plan->step_first;
    }
    const rp_sched_shape shape = rp_plan_stage_shape(plan, op->stage, plan->fill_step);
    return rp_sched_split_takes(&shape, op->step);
}

static bool edge_receives(const rp_plan *plan, const rp_plan_edge *e, const rp_op *op,
                          bool evaluating) {
    const bool forward = op->kind == RP_OP_FORWARD;
    const bool backward = op->kind == RP_OP_BACKWARD || op->kind == RP_OP_BACKWARD_INPUT;
    if (e->carries == RP_CARRIES_TIED_GRADIENT) {
        return !evaluating && rp_plan_is_first_update(plan, e->to, op);
    }
    if (e->carries == RP_CARRIES_TIED_WEIGHT) { /* without a flush a node holds one stage */
        return forward;
    }
    if (e->stage != op->stage) {
        return false;
    }
    switch (e->carries) {
    case RP_CARRIES_INPUT:
    case RP_CARRIES_ACTIVATION:
        return forward;
    case RP_CARRIES_LABEL:
        return evaluating ? forward : backward;
    case RP_CARRIES_GRADIENT:
    case RP_CARRIES_STASH:
        return backward;
    case RP_CARRIES_WEIGHT_GRADIENT:
        return op->kind == RP_OP_UPDATE && !evaluating;
    case RP_CARRIES_WEIGHT: /* weights of the step before, except where the run begins */
        return op->role == RP_ROLE_AVERAGE ? op->kind == RP_OP_UPDATE && !evaluating
                                           : forward && takes_weights(plan, op, evaluating);
    default:
        return false;
    }
}

/* Labels go to the op that computes the loss: the backward, in an evaluation the forward. */
static bool wants_label(const rp_plan *plan, const rp_plan_edge *e, bool evaluating) {
    const rp_plan_hold *to = rp_plan_find_hold(plan, e->to, e->stage);
    return to && (evaluating ? rp_plan_does_forward(to) : rp_plan_does_backward(to));
}

static bool edge_sends(const rp_plan *plan, const rp_plan_edge *e, const rp_op *op,
                       bool evaluating) {
    const bool forward = op->kind == RP_OP_FORWARD;
    const bool backward = op->kind == RP_OP_BACKWARD || op->kind == RP_OP_BACKWARD_INPUT;
    switch (e->carries) {
    case RP_CARRIES_INPUT:
        return forward;
    case RP_CARRIES_LABEL:
        return op->micro == 0 && wants_label(plan, e, evaluating);
    case RP_CARRIES_ACTIVATION:
        return forward && e->stage == op->stage + 1;
    case RP_CARRIES_GRADIENT:
        return backward && e->stage + 1 == op->stage;
    case RP_CARRIES_STASH:
        return forward && !evaluating && e->stage == op->stage;
    case RP_CARRIES_WEIGHT_GRADIENT:
        return op->kind == RP_OP_UPDATE && !evaluating && e->stage == op->stage;
    case RP_CARRIES_WEIGHT:
        return op->kind == RP_OP_UPDATE && e->stage == op->stage &&
               (!evaluating || plan->method.kind->splits);
    case RP_CARRIES_TIED_GRADIENT:
        return !evaluating && rp_plan_is_first_update(plan, e->from, op);
    case RP_CARRIES_TIED_WEIGHT:
        return forward && e->stage == op->stage;
    default:
        return false;
    }
}

/* An update's weights are for the next step's forwards, or for those `ahead` steps later, or for
 * this step's average. */
static void send_weight(const rp_plan *plan, const rp_plan_edge *e, rp_transfer *t) {
    const rp_plan_hold *to = rp_plan_find_hold(plan, e->to, e->stage);
    const bool average = to && to->role == RP_ROLE_AVERAGE;
    if (plan->method.kind->splits) {
        const rp_sched_shape shape = rp_plan_stage_shape(plan, e->stage, plan->fill_step);
        t->step = rp_sched_split_taker(&shape, t->step);
    } else {
        t->step += !average;
    }
    t->samples = t->step < plan->steps
                     ? samples_at(plan, e->to, e->stage, rp_plan_step_samples(plan, t->step))
                     : (rp_range){0, 0};
}

/* The transfer of the op over the edge; false: none. */
static bool find_transfer(const rp_plan *plan, uint32_t node, const rp_op *op, uint32_t edge,
                          uint32_t eval_samples, bool send, rp_transfer *out) {
    const rp_plan_edge *e = &plan->edge[edge];
    const bool evaluating = eval_samples > 0;
    const uint32_t all = evaluating ? eval_samples : rp_plan_step_samples(plan, op->step);
    const bool here = send ? e->from == node && edge_sends(plan, e, op, evaluating)
                           : e->to == node && edge_receives(plan, e, op, evaluating);
    if (!here) {
        return false;
    }
    *out = (rp_transfer){
        .edge = edge, .send = send, .before = !send, .step = op->step, .samples = op->samples};
    switch (e->carries) {
    case RP_CARRIES_WEIGHT:
        if (send && !evaluating) {
            send_weight(plan, e, out);
        } else {
            out->samples = samples_at(plan, e->to, e->stage, all);
        }
        break;
    case RP_CARRIES_WEIGHT_GRADIENT:
        out->before = true;
        out->samples = samples_at(plan, e->from, e->stage, all);
        break;
    case RP_CARRIES_TIED_GRADIENT: /* one row, of all samples */
        out->before = true;
        out->samples = (rp_range){0, all};
        break;
    case RP_CARRIES_LABEL:
        if (send) {
            out->samples = samples_at(plan, e->to, e->stage, all);
        }
        break;
    default:
        out->samples = rp_range_common(
            op->samples, send ? samples_at(plan, e->to, e->stage, all)
                              : samples_at(plan, e->from, rp_plan_sending_stage(e), all));
    }
    return out->samples.count > 0;
}

uint32_t rp_plan_transfers(const rp_plan *plan, uint32_t node, const rp_op *op,
                           uint32_t eval_samples, rp_transfer *out) {
    uint32_t edges;
    const uint32_t *edge = rp_plan_node_edges(plan, node, &edges);
    uint32_t count = 0;
    /* an update's early sends, then what the op receives, then what it sends */
    for (uint32_t pass = 0; pass < 3; pass++) {
        const bool send = pass != 1;
        for (uint32_t i = 0; i < edges; i++) {
            rp_transfer t;
            if (find_transfer(plan, node, op, edge[i], eval_samples, send, &t) &&
                (!send || t.before == (pass == 0))) {
                out[count++] = t;
            }
        }
    }
    return count;
}

/* ---- feeds ----------------------------------------------------------------------------------- */

/* The node of feed `feed`, or node_count; feeds are numbered like edges with inputs. */
static uint32_t node_of_feed(const rp_plan *plan, uint32_t feed) {
    uint32_t edges;
    const uint32_t *edge = rp_plan_node_edges(plan, RP_PLAN_HOST, &edges);
    for (uint32_t i = 0; i < edges; i++) {
        if (plan->edge[edge[i]].carries == RP_CARRIES_INPUT && feed-- == 0) {
            return plan->edge[edge[i]].to;
        }
    }
    return plan->node_count;
}

uint32_t rp_plan_feeds(const rp_plan *plan) {
    uint32_t edges;
    const uint32_t *edge = rp_plan_node_edges(plan, RP_PLAN_HOST, &edges);
    uint32_t count = 0;
    for (uint32_t i = 0; i < edges; i++) {
        count += plan->edge[edge[i]].carries == RP_CARRIES_INPUT;
    }
    return count > 0 ? count : 1;
}

/* The feed of an edge from the host: that of its node if the node gets inputs; labels for all other
 * nodes are in the first feed. */
static uint32_t feed_of(const rp_plan *plan, const rp_plan_edge *e) {
    uint32_t edges;
    const uint32_t *edge = rp_plan_node_edges(plan, RP_PLAN_HOST, &edges);
    uint32_t feed = 0;
    for (uint32_t i = 0; i < edges; i++) {
        const rp_plan_edge *input = &plan->edge[edge[i]];
        if (input->carries == RP_CARRIES_INPUT) {
            if (input->to == e->to) {
                return feed;
            }
            feed++;
        }
    }
    return 0;
}

bool rp_plan_feed_op(const rp_plan *plan, uint32_t feed, uint64_t step, uint32_t step_samples,
                     uint32_t micro, rp_op *out) {
    const rp_range own = samples_at(plan, node_of_feed(plan, feed), 0, step_samples);
    const uint32_t size = plan->stage[0].micro_forward;
    const uint64_t first = (uint64_t)micro * size;
    if (micro > 0 && first >= own.count) {
        return false;
    }
    const uint32_t rest = own.count - (uint32_t)first;
    *out = (rp_op){.kind = RP_OP_FORWARD,
                   .step = step,
                   .samples = {own.first + (uint32_t)first, rest < size ? rest : size},
                   .micro = micro};
    return true;
}

uint32_t rp_plan_feed_transfers(const rp_plan *plan, uint32_t feed, const rp_op *op,
                                uint32_t eval_samples, rp_transfer *out) {
    uint32_t edges;
    const uint32_t *edge = rp_plan_node_edges(plan, RP_PLAN_HOST, &edges);
    uint32_t count = 0;
    for (uint32_t pass = 0; pass < 2; pass++) { /* labels, then inputs */
        for (uint32_t i = 0; i < edges; i++) {
            const rp_plan_edge *e = &plan->edge[edge[i]];
            rp_transfer t;
            if ((e->carries == RP_CARRIES_INPUT) == (pass == 1) &&
                find_transfer(plan, RP_PLAN_HOST, op, edge[i], eval_samples, true, &t) &&
                feed_of(plan, e) == feed) {
                out[count++] = t;
            }
        }
    }
    return count;
}

/* ---- replay ---------------------------------------------------------------------------------- */

/* The net's nodes are those of the plan, followed by the host once for each feed: a full
 * window of a board then delays only its own feed. */
static void start_net(const rp_sched_net *net, uint32_t node, rp_sched_state *state) {
    const rp_plan *plan = net->context;
    if (node < plan->node_count) {
        start_node(plan, node, state);
        return;
    }
    const rp_sched_shape shape = rp_plan_stage_shape(plan, 0, plan->step_first);
    rp_sched_start(state, &shape);
}

static bool next_of_feed(const rp_plan *plan, uint32_t feed, rp_sched_state *state, rp_op *op) {
    for (; state->step < state->shape.step_end; state->step++, state->f = 0) {
        const uint32_t samples = rp_plan_step_samples(plan, state->step);
        if (rp_plan_feed_op(plan, feed, state->step, samples, (uint32_t)state->f, op)) {
            state->f++;
            return true;
        }
    }
    return false;
}

static bool next_net(const rp_sched_net *net, uint32_t node, rp_sched_state *state, rp_op *op) {
    const rp_plan *plan = net->context;
    return node < plan->node_count ? next_of_node(plan, node, state, op)
                                   : next_of_feed(plan, node - plan->node_count, state, op);
}

static uint32_t net_transfers(const rp_sched_net *net, uint32_t node, const rp_op *op,
                              rp_transfer *out) {
    const rp_plan *plan = net->context;
    return node < plan->node_count
               ? rp_plan_transfers(plan, node, op, 0, out)
               : rp_plan_feed_transfers(plan, node - plan->node_count, op, 0, out);
}

static const char *a_parcel(rp_carries carries) {
    static const char *const words[RP_CARRIES] = {
        "an input", "a label", "an activation",   "a gradient",  "a weight gradient",
        "a stash",  "weights", "a tied gradient", "tied weights"};
    return words[carries];
}

rp_err rp_plan_replay(rp_arena *arena, const rp_plan *plan, const rp_sched_costs *costs,
                      bool windows, const rp_sched_visitor *visit, uint32_t lazy,
                      rp_sched_facts *out) {
    const uint32_t feeds = rp_plan_feeds(plan);
    rp_arena own;
    rp_sched_hold *hold;
    rp_sched_edge *edge;
    const char **name;
    rp_err err;
    rp_arena_init(&own, "plan's net", 0);
    RP_TRY(RP_ARENA_NEW(&own, plan->hold_count, &hold));
    RP_TRY(RP_ARENA_NEW(&own, (size_t)plan->edge_count + 1, &edge));
    RP_TRY(RP_ARENA_NEW(&own, (size_t)plan->node_count + feeds, &name));
    for (uint32_t h = 0; h < plan->hold_count; h++) {
        const rp_plan_hold *at = &plan->hold[h];
        hold[h] = (rp_sched_hold){.node = at->node, .stage = at->stage, .role = at->role};
    }
    for (uint32_t e = 0; e < plan->edge_count; e++) {
        const rp_plan_edge *at = &plan->edge[e];
        const bool input = at->carries == RP_CARRIES_INPUT; /* the host has all of them at once */
        edge[e] = (rp_sched_edge){
            .from = at->from == RP_PLAN_HOST ? plan->node_count + feed_of(plan, at) : at->from,
            .to = at->to,
            .window = windows || input ? at->window : 0,
            .carries = a_parcel(at->carries)};
    }
    for (uint32_t k = 0; k < plan->node_count + feeds; k++) {
        name[k] = rp_plan_node_name(plan, k);
    }
    const rp_sched_net net = {.name = plan->method.kind->name,
                              .a_node = "node",
                              .node_name = name,
                              .node_count = plan->node_count + feeds,
                              .hold_count = plan->hold_count,
                              .edge_count = plan->edge_count,
                              .hold = hold,
                              .edge = edge,
                              .context = plan,
                              .start = start_net,
                              .next = next_net,
                              .transfers = net_transfers};
    err = rp_sched_replay_net(arena, &net, costs, visit, lazy, out);
fail:
    rp_arena_finish(&own);
    return err;
}
