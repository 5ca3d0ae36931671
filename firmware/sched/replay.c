/* The replay: every node runs its ops in its own order, each as early as possible. */
#include "sched/replay_own.h"
#include "sched/split.h"

static void refresh_start(rp_replay *r, rp_replay_node *n) {
    uint32_t edge;
    n->ready = !n->over && !rp_replay_missing(r, n, &n->start, &edge);
}

static double cost_of_hold(const double *costs, uint32_t hold, double otherwise) {
    return costs ? costs[hold] : otherwise;
}

/* Fraction that `samples` are of a full microbatch of the op's direction. */
static double share_of(const rp_replay_node *n, uint32_t samples) {
    const rp_sched_shape *shape = &n->state.shape;
    const bool own = n->op.kind != RP_OP_FORWARD && shape->micro_backward;
    return (double)samples / (own ? shape->micro_backward : shape->micro);
}

static double duration_of_op(const rp_replay *r, const rp_replay_node *n, uint32_t hold) {
    const rp_sched_costs *c = r->costs;
    const double scale = share_of(n, n->op.samples.count);
    if (hold == RP_NO_NODE) {
        return 0;
    }
    switch (n->op.kind) {
    case RP_OP_FORWARD:
        return scale * cost_of_hold(c->forward, hold, 1);
    case RP_OP_BACKWARD:
        return scale * (cost_of_hold(c->backward_input, hold, 0.5) +
                        cost_of_hold(c->backward_weight, hold, 0.5));
    case RP_OP_BACKWARD_INPUT:
        return scale * cost_of_hold(c->backward_input, hold, 0.5);
    case RP_OP_BACKWARD_WEIGHT:
        return scale * cost_of_hold(c->backward_weight, hold, 0.5);
    case RP_OP_UPDATE:
        return cost_of_hold(c->update, hold, 0);
    default:
        return 0;
    }
}

/* ---- running an op --------------------------------------------------------------------------- */

static void grow_to(uint32_t *max, uint32_t value) {
    *max = value > *max ? value : *max;
}

/* Sends a transfer that is ready at `time`. */
static rp_err send_transfer(rp_replay *r, const rp_replay_node *n, const rp_transfer *t,
                            double time) {
    const rp_sched_edge *e = &r->net->edge[t->edge];
    const uint32_t hold = rp_replay_hold_of(r, n);
    const bool whole = n->op.kind == RP_OP_UPDATE && r->costs->edge;
    const double scale = whole ? 1 : share_of(n, t->samples.count);
    const bool far = e->from != e->to && (hold != RP_NO_NODE || r->costs->edge);
    const double *send =
        n->op.kind != RP_OP_FORWARD && r->costs->send_back ? r->costs->send_back : r->costs->send;
    const double cost = !far             ? 0
                        : r->costs->edge ? r->costs->edge[t->edge]
                                         : cost_of_hold(send, hold, 0);
    const rp_replay_turn turn = {
        .edge = t->edge,
        .step = t->step,
        .samples = t->samples,
        .ready = time,
        .busy = scale * cost,
        .delay = far && hold != RP_NO_NODE ? cost_of_hold(r->costs->delay, hold, 0) : 0};
    return r->route[t->edge].on_medium ? rp_replay_queue(r, &turn) : rp_replay_depart(r, &turn);
}

static rp_err send_all(rp_replay *r, const rp_replay_node *n, bool before) {
    rp_err err = RP_OK;
    for (uint32_t i = 0; i < n->transfer_count; i++) {
        const rp_transfer *t = &n->transfer[i];
        if (t->send && t->before == before) {
            RP_TRY(send_transfer(r, n, t, n->free));
        }
    }
fail:
    return err;
}

static rp_err receive_all(rp_replay *r, const rp_replay_node *n) {
    rp_err err = RP_OK;
    for (uint32_t i = 0; i < n->transfer_count; i++) {
        const rp_transfer *t = &n->transfer[i];
        if (!t->send) {
            rp_replay_route *way = &r->route[t->edge];
            grow_to(&r->facts->edge[t->edge].taken_max,
                    rp_ledger_touched(&way->parcels, t->step, t->samples));
            RP_TRY(rp_ledger_take(&r->pool, &way->parcels, t->step, t->samples, NULL));
            way->has_room = n->start;
        }
    }
fail:
    return err;
}

/* Number of distinct versions; the held forwards are ordered by version. */
static uint32_t count_versions(const rp_replay_hold *own) {
    uint32_t count = 1;
    uint64_t last = own->updates;
    if (own->held.first && own->held.first->version == own->updates) {
        return 1; /* the oldest is the newest */
    }
    for (const rp_piece *p = own->held.first; p; p = p->next) {
        if (p->version != own->updates && p->version != last) {
            count++;
        }
        last = p->version;
    }
    return count;
}

static void count_held(rp_replay *r, const rp_replay_node *n, uint32_t hold) {
    const rp_replay_hold *own = &r->holder[hold];
    rp_sched_stage_facts *facts = &r->facts->stage[hold];
    rp_sched_node_facts *all = &r->facts->node[r->net->hold[hold].node];
    uint32_t held = 0;
    uint32_t owed = 0;
    for (uint32_t i = 0; i < n->hold_count; i++) {
        held += r->holder[n->hold[i]].held.count;
        owed += r->holder[n->hold[i]].owed.count;
    }
    grow_to(&facts->in_flight_max, own->held.count);
    grow_to(&facts->deferred_weights_max, own->owed.count);
    grow_to(&facts->stash_max, own->held.count + own->owed.count);
    grow_to(&all->in_flight_max, held);
    grow_to(&all->stash_max, held + owed);
}

/* A forward's stash counts as in flight at the node of the backward, with the version that the list
 * of both assigns to it. */
static rp_err hand_over(rp_replay *r, const rp_replay_node *n, const rp_piece *done) {
    const rp_sched_state *list = &n->state;
    rp_err err = RP_OK;
    for (uint32_t i = 0; i < n->transfer_count; i++) {
        const rp_transfer *t = &n->transfer[i];
        const uint32_t to = r->net->edge[t->edge].to;
        for (uint32_t h = 0; t->send && h < r->net->hold_count; h++) {
            const rp_sched_hold *hold = &r->net->hold[h];
            if (hold->node != to || hold->stage != n->op.stage || hold->role != RP_ROLE_BACKWARD) {
                continue;
            }
            rp_piece piece = *done;
            piece.samples = t->samples;
            piece.version =
                rp_sched_ahead(&list->shape) > 0
                    ? rp_sched_split_version(&list->shape, n->op.step) - list->shape.step_first
                    : list->step - list->shape.step_first;
            RP_TRY(rp_ledger_append(&r->pool, &r->holder[h].held, &piece));
            grow_to(&r->facts->stage[h].versions_max, count_versions(&r->holder[h]));
            count_held(r, &r->runner[to], h);
        }
    }
fail:
    return err;
}

/* Updates the hold's own ledgers for a completed op. */
static rp_err move_samples(rp_replay *r, const rp_replay_node *n, uint32_t hold,
                           const rp_piece *done) {
    rp_replay_hold *own = &r->holder[hold];
    rp_sched_stage_facts *facts = &r->facts->stage[hold];
    const rp_op *op = &n->op;
    uint64_t version = own->updates;
    rp_err err = RP_OK;
    switch (op->kind) {
    case RP_OP_FORWARD:
        if (r->net->hold[hold].role == RP_ROLE_FORWARD) {
            RP_TRY(hand_over(r, n, done));
        } else {
            RP_TRY(rp_ledger_append(&r->pool, &own->held, done));
            grow_to(&facts->versions_max, count_versions(own));
        }
        break;
    case RP_OP_BACKWARD:
    case RP_OP_BACKWARD_INPUT:
        RP_TRY(rp_ledger_take(&r->pool, &own->held, op->step, op->samples, &version));
        grow_to(&facts->staleness_max, (uint32_t)(own->updates - version));
        if (op->kind == RP_OP_BACKWARD_INPUT) {
            RP_TRY(rp_ledger_append(&r->pool, &own->owed, done));
        }
        break;
    case RP_OP_BACKWARD_WEIGHT:
        RP_TRY(rp_ledger_take(&r->pool, &own->owed, op->step, op->samples, NULL));
        break;
    case RP_OP_UPDATE:
        own->updates++;
        grow_to(&facts->versions_max, count_versions(own));
        break;
    default:
        break;
    }
    count_held(r, n, hold);
fail:
    return err;
}

static rp_err run_op(rp_replay *r, uint32_t node) {
    rp_replay_node *n = &r->runner[node];
    const uint32_t hold = rp_replay_hold_of(r, n);
    const double cost = duration_of_op(r, n, hold);
    rp_err err;
    n->free = n->start + cost;
    if (r->visit->op && hold != RP_NO_NODE) {
        const rp_sched_slot slot = {
            .node = node, .stage = n->op.stage, .op = n->op, .start = n->start, .end = n->free};
        r->visit->op(r->visit->context, &slot);
    }
    RP_TRY(receive_all(r, n));
    if (hold != RP_NO_NODE) {
        const rp_piece done = {.step = n->op.step,
                               .samples = n->op.samples,
                               .time = n->free,
                               .version = r->holder[hold].updates};
        RP_TRY(move_samples(r, n, hold, &done));
        r->facts->stage[hold].busy += cost;
        r->facts->stage[hold].end = n->free;
        r->facts->node[node].busy += cost;
        r->facts->node[node].end = n->free;
    }
    RP_TRY(send_all(r, n, false));
fail:
    return err;
}

/* Fetches the node's next op and its transfers; starts those that are sent before the op. */
static rp_err fetch_op(rp_replay *r, uint32_t node) {
    rp_replay_node *n = &r->runner[node];
    n->over = !r->net->next(r->net, node, &n->state, &n->op);
    n->transfer_count = n->over ? 0 : r->net->transfers(r->net, node, &n->op, n->transfer);
    RP_ASSERT(n->transfer_count <= n->edge_count);
    return send_all(r, n, true);
}

/* ---- running all nodes ----------------------------------------------------------------------- */

/* Refreshes the node and all nodes that its edges lead to, the only ones that an op affects. */
static void refresh_around(rp_replay *r, uint32_t node) {
    const rp_replay_node *n = &r->runner[node];
    refresh_start(r, &r->runner[node]);
    for (uint32_t i = 0; i < n->edge_count; i++) {
        const rp_sched_edge *e = &r->net->edge[n->edge[i]];
        refresh_start(r, &r->runner[e->from == node ? e->to : e->from]);
    }
}

/* The node whose op starts first; the lazy node only if no other can run. */
static uint32_t find_next(const rp_replay *r, uint32_t *running) {
    uint32_t next = RP_NO_NODE;
    *running = 0;
    for (uint32_t k = 0; k < r->net->node_count; k++) {
        const rp_replay_node *n = &r->runner[k];
        *running += !n->over;
        if (n->ready && (next == RP_NO_NODE || next == r->lazy ||
                         (n->start < r->runner[next].start && k != r->lazy))) {
            next = k;
        }
    }
    return next;
}

static rp_err run_all(rp_replay *r) {
    rp_err err = RP_OK;
    for (;;) {
        uint32_t running;
        const uint32_t next = find_next(r, &running);
        if (r->turn && (next == RP_NO_NODE || r->turn->ready <= r->runner[next].start)) {
            uint32_t node;
            RP_TRY(rp_replay_take_turn(r, &node));
            refresh_start(r, &r->runner[node]);
            continue; /* no later op sends anything sooner */
        }
        if (running == 0) {
            return RP_OK;
        }
        if (next == RP_NO_NODE) {
            return rp_replay_fail_deadlock(r);
        }
        RP_TRY(run_op(r, next));
        RP_TRY(fetch_op(r, next));
        refresh_around(r, next);
    }
fail:
    return err;
}

static void sum_facts(const rp_replay *r) {
    rp_sched_facts *facts = r->facts;
    double busy = 0;
    uint32_t working = 0;
    for (uint32_t k = 0; k < r->net->node_count; k++) {
        busy += facts->node[k].busy;
        working += r->runner[k].hold_count > 0;
        if (facts->node[k].end > facts->makespan) {
            facts->makespan = facts->node[k].end;
        }
    }
    facts->bubble = facts->makespan > 0 ? 1 - busy / (working * facts->makespan) : 0;
}

/* ---- opening --------------------------------------------------------------------------------- */

/* Indexes each node's holds and edges, and finds edges that share a link. */
static rp_err index_net(rp_replay *r) {
    const rp_sched_net *net = r->net;
    rp_err err = RP_OK;
    for (uint32_t h = 0; h < net->hold_count; h++) {
        r->runner[net->hold[h].node].hold_count++;
    }
    for (uint32_t e = 0; e < net->edge_count; e++) {
        r->runner[net->edge[e].from].edge_count++;
        r->runner[net->edge[e].to].edge_count += net->edge[e].to != net->edge[e].from;
    }
    for (uint32_t k = 0; k < net->node_count; k++) {
        rp_replay_node *n = &r->runner[k];
        RP_TRY(RP_ARENA_NEW(&r->arena, n->hold_count + 1, &n->hold));
        RP_TRY(RP_ARENA_NEW(&r->arena, n->edge_count + 1, &n->edge));
        RP_TRY(RP_ARENA_NEW(&r->arena, 2 * (size_t)n->edge_count + 1, &n->transfer));
        n->hold_count = n->edge_count = 0;
    }
    for (uint32_t h = 0; h < net->hold_count; h++) {
        rp_replay_node *n = &r->runner[net->hold[h].node];
        n->hold[n->hold_count++] = h;
    }
    for (uint32_t e = 0; e < net->edge_count; e++) {
        const rp_sched_edge *own = &net->edge[e];
        rp_replay_node *from = &r->runner[own->from];
        rp_replay_node *to = &r->runner[own->to];
        r->route[e].link = e;
        for (uint32_t i = 0; i < from->edge_count && r->route[e].link == e; i++) {
            const rp_sched_edge *other = &net->edge[from->edge[i]];
            r->route[e].link = other->from == own->from && other->to == own->to ? from->edge[i] : e;
        }
        from->edge[from->edge_count++] = e;
        if (to != from) {
            to->edge[to->edge_count++] = e;
        }
    }
fail:
    return err;
}

/* Makes edges on one medium share a link. */
static void index_media(rp_replay *r) {
    const uint32_t *medium = r->costs->medium;
    for (uint32_t e = 0; medium && e < r->net->edge_count; e++) {
        uint32_t first = 0;
        while (medium[first] != medium[e]) {
            first++;
        }
        r->route[e].on_medium = medium[e] > 0;
        r->route[e].link = medium[e] > 0 ? first : r->route[e].link;
    }
}

static rp_err open_replay(rp_replay *r, rp_arena *arena) {
    const rp_sched_net *net = r->net;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(arena, net->hold_count + 1, &r->facts->stage));
    RP_TRY(RP_ARENA_NEW(arena, net->node_count, &r->facts->node));
    RP_TRY(RP_ARENA_NEW(arena, net->edge_count + 1, &r->facts->edge));
    RP_TRY(RP_ARENA_NEW(&r->arena, net->node_count, &r->runner));
    RP_TRY(RP_ARENA_NEW(&r->arena, net->hold_count + 1, &r->holder));
    RP_TRY(RP_ARENA_NEW(&r->arena, net->edge_count + 1, &r->route));
    RP_TRY(index_net(r));
    index_media(r);
    for (uint32_t h = 0; h < net->hold_count; h++) {
        r->facts->stage[h].versions_max = 1;
    }
    for (uint32_t k = 0; k < net->node_count; k++) {
        net->start(net, k, &r->runner[k].state);
        RP_TRY(fetch_op(r, k));
    }
    for (uint32_t k = 0; k < net->node_count; k++) {
        refresh_start(r, &r->runner[k]);
    }
fail:
    return err;
}

rp_err rp_sched_replay_net(rp_arena *arena, const rp_sched_net *net, const rp_sched_costs *costs,
                           const rp_sched_visitor *visit, uint32_t lazy, rp_sched_facts *out) {
    rp_err err = RP_OK;
    const rp_sched_costs unit = {0};
    const rp_sched_visitor nobody = {0};
    rp_sched_facts facts = {0};
    rp_replay r = {.net = net,
                   .costs = costs ? costs : &unit,
                   .visit = visit ? visit : &nobody,
                   .lazy = lazy,
                   .facts = &facts};
    rp_arena_init(&r.arena, "replay", 0);
    r.pool.arena = &r.arena;
    RP_TRY(open_replay(&r, arena));
    RP_TRY(run_all(&r));
    RP_TRY(rp_replay_check_empty(&r));
    sum_facts(&r);
    *out = facts;
fail:
    rp_arena_finish(&r.arena);
    return err;
}
