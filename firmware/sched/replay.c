#include "sched/replay.h"

#include <stdio.h>
#include <string.h>

/* Samples that something was done to and that wait for what comes next. */
typedef struct piece {
    struct piece *next;
    uint64_t step;
    rp_range samples;
    double time;      /* usable from here on */
    uint64_t version; /* own updates when it was made */
} piece;

typedef struct {
    piece *first; /* oldest first */
    uint32_t count;
} ledger;

typedef struct {
    uint64_t updates;
    ledger held; /* own forwards, backward to come */
    ledger owed; /* own input gradients, weight gradient to come */
} holder;

typedef struct {
    ledger parcels;  /* sent, not yet taken */
    uint32_t link;   /* the first edge between the same two nodes: they share its time */
    double free;     /* of the link */
    double has_room; /* since when */
} route;

typedef struct {
    rp_sched_state state;
    rp_op op; /* the next one */
    bool over, ready;
    double start;          /* of `op` when ready */
    double free;           /* end of the last op */
    rp_transfer *transfer; /* of `op` */
    uint32_t transfer_count;
    uint32_t *hold; /* indices of its holds */
    uint32_t hold_count;
    uint32_t *edge; /* that begin or end here */
    uint32_t edge_count;
} runner;

typedef struct {
    rp_arena arena; /* all but the facts; gone at the end */
    piece *spare;
    const rp_sched_net *net;
    const rp_sched_costs *costs;
    const rp_sched_visitor *visit;
    uint32_t lazy;
    runner *runner;
    holder *holder; /* by hold */
    route *route;   /* by edge */
    rp_sched_facts *facts;
} replay;

/* ---- ledgers --------------------------------------------------------------------------------- */

static rp_err insert_piece(replay *r, ledger *to, piece **link, const piece *content) {
    rp_err err = RP_OK;
    if (!r->spare) {
        enum { PIECES = 64 };
        piece *more;
        RP_TRY(RP_ARENA_NEW(&r->arena, PIECES, &more));
        for (uint32_t i = 0; i < PIECES; i++) {
            more[i].next = r->spare;
            r->spare = &more[i];
        }
    }
    piece *added = r->spare;
    r->spare = added->next;
    *added = *content;
    added->next = *link;
    *link = added;
    to->count++;
fail:
    return err;
}

static rp_err append_piece(replay *r, ledger *to, const piece *content) {
    piece **end = &to->first;
    while (*end) {
        end = &(*end)->next;
    }
    return insert_piece(r, to, end, content);
}

static rp_range common_part(const piece *p, uint64_t step, rp_range samples) {
    const uint32_t p_end = p->samples.first + p->samples.count;
    const uint32_t s_end = samples.first + samples.count;
    const uint32_t first = p->samples.first > samples.first ? p->samples.first : samples.first;
    const uint32_t end = p_end < s_end ? p_end : s_end;
    return (rp_range){first, p->step == step && end > first ? end - first : 0};
}

/* Are all these samples there? Then *time is no earlier than the last of them. */
static bool ledger_covers(const ledger *from, uint64_t step, rp_range samples, double *time) {
    uint32_t count = 0;
    for (const piece *p = from->first; p; p = p->next) {
        const uint32_t part = common_part(p, step, samples).count;
        if (part > 0 && p->time > *time) {
            *time = p->time;
        }
        count += part;
    }
    return count >= samples.count;
}

/* Takes samples out; *version (may be NULL) becomes the oldest among them. */
static rp_err take_samples(replay *r, ledger *from, uint64_t step, rp_range samples,
                           uint64_t *version) {
    rp_err err = RP_OK;
    piece **link = &from->first;
    while (*link) {
        piece *p = *link;
        const rp_range part = common_part(p, step, samples);
        if (part.count == 0) {
            link = &p->next;
            continue;
        }
        if (version && p->version < *version) {
            *version = p->version;
        }
        const uint32_t part_end = part.first + part.count;
        const uint32_t left = part.first - p->samples.first;
        const uint32_t right = p->samples.first + p->samples.count - part_end;
        if (left > 0 && right > 0) {
            piece tail = *p;
            tail.samples = (rp_range){part_end, right};
            RP_TRY(insert_piece(r, from, &p->next, &tail));
        }
        if (left > 0) {
            p->samples.count = left;
            link = &p->next;
        } else if (right > 0) {
            p->samples = (rp_range){part_end, right};
            link = &p->next;
        } else {
            *link = p->next;
            p->next = r->spare;
            r->spare = p;
            from->count--;
        }
    }
fail:
    return err;
}

/* ---- when an op can start -------------------------------------------------------------------- */

static uint32_t hold_of(const replay *r, const runner *n) {
    for (uint32_t i = 0; i < n->hold_count; i++) {
        if (r->net->hold[n->hold[i]].stage == n->op.stage) {
            return n->hold[i];
        }
    }
    return RP_NO_NODE;
}

/* A backward's own forward; a weight gradient's input gradient. */
static const char *missing_own(const replay *r, const runner *n, double *start) {
    const uint32_t h = hold_of(r, n);
    const rp_op *op = &n->op;
    if (h == RP_NO_NODE) {
        return NULL;
    }
    const holder *own = &r->holder[h];
    switch (op->kind) {
    case RP_OP_BACKWARD:
    case RP_OP_BACKWARD_INPUT:
        return r->net->hold[h].role == RP_ROLE_BACKWARD ||
                       ledger_covers(&own->held, op->step, op->samples, start)
                   ? NULL
                   : "its own forward";
    case RP_OP_BACKWARD_WEIGHT:
        return ledger_covers(&own->owed, op->step, op->samples, start) ? NULL
                                                                       : "its input gradient";
    default:
        return NULL;
    }
}

/* What the node's next op waits for, or NULL with the time when it can start. *edge: what it waits
 * for comes over it, or has no room on it; RP_NO_NODE: its own. */
static const char *missing_input(const replay *r, const runner *n, double *start, uint32_t *edge) {
    *start = n->free;
    *edge = RP_NO_NODE;
    const char *own = missing_own(r, n, start);
    for (uint32_t i = 0; !own && i < n->transfer_count; i++) {
        const rp_transfer *t = &n->transfer[i];
        const route *way = &r->route[t->edge];
        const rp_sched_edge *e = &r->net->edge[t->edge];
        *edge = t->edge;
        if (!t->send && !ledger_covers(&way->parcels, t->step, t->samples, start)) {
            return e->carries;
        }
        if (t->send && !t->before && e->window > 0) {
            if (way->parcels.count >= e->window) {
                return "room";
            }
            *start = way->has_room > *start ? way->has_room : *start;
        }
    }
    return own;
}

static void refresh_start(replay *r, runner *n) {
    uint32_t edge;
    n->ready = !n->over && !missing_input(r, n, &n->start, &edge);
}

static double cost_of_hold(const double *costs, uint32_t hold, double otherwise) {
    return costs ? costs[hold] : otherwise;
}

static double duration_of_op(const replay *r, const runner *n, uint32_t hold) {
    const rp_sched_costs *c = r->costs;
    const double scale = (double)n->op.samples.count / n->state.shape.micro;
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

/* What is ready at `time` leaves over an edge. */
static rp_err send_transfer(replay *r, const runner *n, const rp_transfer *t, double time) {
    const rp_sched_edge *e = &r->net->edge[t->edge];
    route *way = &r->route[t->edge];
    route *link = &r->route[way->link];
    rp_sched_edge_facts *facts = &r->facts->edge[t->edge];
    const uint32_t hold = hold_of(r, n);
    const double scale = (double)t->samples.count / n->state.shape.micro;
    const bool far = e->from != e->to && hold != RP_NO_NODE;
    const double busy = far ? scale * cost_of_hold(r->costs->send, hold, 0) : 0;
    const double begin = time > link->free ? time : link->free;
    const piece parcel = {.step = t->step,
                          .samples = t->samples,
                          .time =
                              begin + busy + (far ? cost_of_hold(r->costs->delay, hold, 0) : 0)};
    link->free = begin + busy;
    facts->parcels++;
    facts->busy += busy;
    rp_err err = append_piece(r, &way->parcels, &parcel);
    grow_to(&facts->waiting_max, way->parcels.count);
    if (err == RP_OK && r->visit->transfer) {
        const rp_sched_transfer_slot slot = {.edge = t->edge,
                                             .step = t->step,
                                             .samples = t->samples,
                                             .start = begin,
                                             .end = parcel.time};
        r->visit->transfer(r->visit->context, &slot);
    }
    return err;
}

static rp_err send_all(replay *r, const runner *n, bool before) {
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

static uint32_t touched_parcels(const ledger *from, const rp_transfer *t) {
    uint32_t count = 0;
    for (const piece *p = from->first; p; p = p->next) {
        count += common_part(p, t->step, t->samples).count > 0;
    }
    return count;
}

static rp_err receive_all(replay *r, const runner *n) {
    rp_err err = RP_OK;
    for (uint32_t i = 0; i < n->transfer_count; i++) {
        const rp_transfer *t = &n->transfer[i];
        if (!t->send) {
            route *way = &r->route[t->edge];
            grow_to(&r->facts->edge[t->edge].taken_max, touched_parcels(&way->parcels, t));
            RP_TRY(take_samples(r, &way->parcels, t->step, t->samples, NULL));
            way->has_room = n->start;
        }
    }
fail:
    return err;
}

/* The held forwards stand in the order of their versions. */
static uint32_t count_versions(const holder *own) {
    uint32_t count = 1;
    uint64_t last = own->updates;
    for (const piece *p = own->held.first; p; p = p->next) {
        if (p->version != own->updates && p->version != last) {
            count++;
        }
        last = p->version;
    }
    return count;
}

static void count_held(replay *r, const runner *n, uint32_t hold) {
    const holder *own = &r->holder[hold];
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

/* Moves what the op has done through its hold's own ledgers. */
static rp_err move_samples(replay *r, const runner *n, uint32_t hold, const piece *done) {
    holder *own = &r->holder[hold];
    rp_sched_stage_facts *facts = &r->facts->stage[hold];
    const rp_op *op = &n->op;
    uint64_t version = own->updates;
    rp_err err = RP_OK;
    switch (op->kind) {
    case RP_OP_FORWARD:
        if (r->net->hold[hold].role != RP_ROLE_FORWARD) {
            RP_TRY(append_piece(r, &own->held, done));
            grow_to(&facts->versions_max, count_versions(own));
        }
        break;
    case RP_OP_BACKWARD:
    case RP_OP_BACKWARD_INPUT:
        RP_TRY(take_samples(r, &own->held, op->step, op->samples, &version));
        grow_to(&facts->staleness_max, (uint32_t)(own->updates - version));
        if (op->kind == RP_OP_BACKWARD_INPUT) {
            RP_TRY(append_piece(r, &own->owed, done));
        }
        break;
    case RP_OP_BACKWARD_WEIGHT:
        RP_TRY(take_samples(r, &own->owed, op->step, op->samples, NULL));
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

static rp_err run_op(replay *r, uint32_t node) {
    runner *n = &r->runner[node];
    const uint32_t hold = hold_of(r, n);
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
        const piece done = {.step = n->op.step,
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

/* The node's next op, with its transfers; what it sends before the op leaves now. */
static rp_err fetch_op(replay *r, uint32_t node) {
    runner *n = &r->runner[node];
    n->over = !r->net->next(r->net, node, &n->state, &n->op);
    n->transfer_count = n->over ? 0 : r->net->transfers(r->net, node, &n->op, n->transfer);
    RP_ASSERT(n->transfer_count <= n->edge_count);
    return send_all(r, n, true);
}

/* ---- all of them ----------------------------------------------------------------------------- */

/* The node, and those at the other ends of its edges: an op moves nobody else. */
static void refresh_around(replay *r, uint32_t node) {
    const runner *n = &r->runner[node];
    refresh_start(r, &r->runner[node]);
    for (uint32_t i = 0; i < n->edge_count; i++) {
        const rp_sched_edge *e = &r->net->edge[n->edge[i]];
        refresh_start(r, &r->runner[e->from == node ? e->to : e->from]);
    }
}

enum { NAME_BYTES = 80 };

static const char *name_node(const rp_sched_net *net, uint32_t node, char out[NAME_BYTES]) {
    if (net->node_name) {
        (void)snprintf(out, NAME_BYTES, "%s %s", net->a_node, net->node_name[node]);
    } else {
        (void)snprintf(out, NAME_BYTES, "%s %u", net->a_node, node);
    }
    return out;
}

/* "; node 1 at F4 of step 0 waits for an activation from node 0". Returns the other node, or
 * RP_NO_NODE where it waits for none. */
static uint32_t describe_wait(const replay *r, uint32_t node, char *out, size_t bytes) {
    const rp_sched_net *net = r->net;
    const runner *n = &r->runner[node];
    char name[NAME_BYTES];
    char other[NAME_BYTES];
    double start;
    uint32_t edge;
    (void)name_node(net, node, name);
    if (n->over) {
        (void)snprintf(out, bytes, "; %s is done", name);
        return RP_NO_NODE;
    }
    const char *what = missing_input(r, n, &start, &edge);
    const char *letter = rp_op_letter(n->op.kind);
    const unsigned long long step = n->op.step;
    if (edge == RP_NO_NODE) {
        (void)snprintf(out, bytes, "; %s at %s%u of step %llu waits for %s", name, letter,
                       n->op.micro, step, what ? what : "nothing");
        return RP_NO_NODE;
    }
    const rp_sched_edge *e = &net->edge[edge];
    const bool room = what != e->carries;
    const uint32_t next = room ? e->to : e->from;
    (void)snprintf(out, bytes, "; %s at %s%u of step %llu waits for %s%s %s %s", name, letter,
                   n->op.micro, step, room ? "room for " : "", e->carries, room ? "to" : "from",
                   name_node(net, next, other));
    return next;
}

/* From the first node that waits, who waits for whom, until one comes again. */
static rp_err fail_deadlock(replay *r) {
    char text[1000] = "";
    bool *seen;
    rp_err err = RP_ARENA_NEW(&r->arena, r->net->node_count, &seen);
    uint32_t node = 0;
    if (err != RP_OK) {
        return err;
    }
    while (r->runner[node].over) {
        node++;
    }
    while (node != RP_NO_NODE && !seen[node]) {
        const size_t used = strlen(text);
        seen[node] = true;
        node = describe_wait(r, node, text + used, sizeof text - used);
    }
    return rp_fail(RP_ERR_FAULT, "schedule %s: deadlock%s", r->net->name, text);
}

/* The node whose op starts first; the lazy one only when no other can. */
static uint32_t find_next(const replay *r, uint32_t *running) {
    uint32_t next = RP_NO_NODE;
    *running = 0;
    for (uint32_t k = 0; k < r->net->node_count; k++) {
        const runner *n = &r->runner[k];
        *running += !n->over;
        if (n->ready && (next == RP_NO_NODE || next == r->lazy ||
                         (n->start < r->runner[next].start && k != r->lazy))) {
            next = k;
        }
    }
    return next;
}

static rp_err run_all(replay *r) {
    rp_err err = RP_OK;
    for (;;) {
        uint32_t running;
        const uint32_t next = find_next(r, &running);
        if (running == 0) {
            return RP_OK;
        }
        if (next == RP_NO_NODE) {
            return fail_deadlock(r);
        }
        RP_TRY(run_op(r, next));
        RP_TRY(fetch_op(r, next));
        refresh_around(r, next);
    }
fail:
    return err;
}

static rp_err check_empty(const replay *r) {
    const rp_sched_net *net = r->net;
    char name[NAME_BYTES];
    char other[NAME_BYTES];
    for (uint32_t h = 0; h < net->hold_count; h++) {
        const holder *own = &r->holder[h];
        if (own->held.count || own->owed.count) {
            return rp_fail(RP_ERR_FAULT,
                           "schedule %s: %s ends with %u forwards and %u weight gradients of stage "
                           "%u left",
                           net->name, name_node(net, net->hold[h].node, name), own->held.count,
                           own->owed.count, net->hold[h].stage);
        }
    }
    for (uint32_t e = 0; e < net->edge_count; e++) {
        const piece *left = r->route[e].parcels.first;
        if (left) {
            return rp_fail(RP_ERR_FAULT,
                           "schedule %s: %s never takes %s of step %llu, samples %u to %u, that %s "
                           "has sent",
                           net->name, name_node(net, net->edge[e].to, name), net->edge[e].carries,
                           (unsigned long long)left->step, left->samples.first,
                           left->samples.first + left->samples.count - 1,
                           name_node(net, net->edge[e].from, other));
        }
    }
    return RP_OK;
}

static void sum_facts(const replay *r) {
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

/* Each node's holds and edges, and which edges share a link. */
static rp_err index_net(replay *r) {
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
        runner *n = &r->runner[k];
        RP_TRY(RP_ARENA_NEW(&r->arena, n->hold_count + 1, &n->hold));
        RP_TRY(RP_ARENA_NEW(&r->arena, n->edge_count + 1, &n->edge));
        RP_TRY(RP_ARENA_NEW(&r->arena, 2 * (size_t)n->edge_count + 1, &n->transfer));
        n->hold_count = n->edge_count = 0;
    }
    for (uint32_t h = 0; h < net->hold_count; h++) {
        runner *n = &r->runner[net->hold[h].node];
        n->hold[n->hold_count++] = h;
    }
    for (uint32_t e = 0; e < net->edge_count; e++) {
        const rp_sched_edge *own = &net->edge[e];
        runner *from = &r->runner[own->from];
        runner *to = &r->runner[own->to];
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

static rp_err open_replay(replay *r, rp_arena *arena) {
    const rp_sched_net *net = r->net;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(arena, net->hold_count + 1, &r->facts->stage));
    RP_TRY(RP_ARENA_NEW(arena, net->node_count, &r->facts->node));
    RP_TRY(RP_ARENA_NEW(arena, net->edge_count + 1, &r->facts->edge));
    RP_TRY(RP_ARENA_NEW(&r->arena, net->node_count, &r->runner));
    RP_TRY(RP_ARENA_NEW(&r->arena, net->hold_count + 1, &r->holder));
    RP_TRY(RP_ARENA_NEW(&r->arena, net->edge_count + 1, &r->route));
    RP_TRY(index_net(r));
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
    replay r = {.net = net,
                .costs = costs ? costs : &unit,
                .visit = visit ? visit : &nobody,
                .lazy = lazy,
                .facts = &facts};
    rp_arena_init(&r.arena, "replay", 0);
    RP_TRY(open_replay(&r, arena));
    RP_TRY(run_all(&r));
    RP_TRY(check_empty(&r));
    sum_facts(&r);
    *out = facts;
fail:
    rp_arena_finish(&r.arena);
    return err;
}

/* ---- the net of a shape ---------------------------------------------------------------------- */

/* Edge b - 1 carries the activations over boundary b, from stage b - 1 to stage b; S - 1 edges
 * further on is the one that carries its gradients. */
typedef struct {
    const rp_sched_kind *kind;
    rp_sched_shape shape;
} row;

static void start_row(const rp_sched_net *net, uint32_t node, rp_sched_state *state) {
    const row *of = net->context;
    rp_sched_shape shape = of->shape;
    shape.stage = node;
    rp_sched_start(state, &shape);
}

static bool next_row(const rp_sched_net *net, uint32_t node, rp_sched_state *state, rp_op *op) {
    (void)node;
    return ((const row *)net->context)->kind->next(state, op);
}

static uint32_t row_transfers(const rp_sched_net *net, uint32_t node, const rp_op *op,
                              rp_transfer *out) {
    const uint32_t last = net->hold_count - 1;
    const bool forward = op->kind == RP_OP_FORWARD;
    uint32_t count = 0;
    (void)node;
    if (!forward && op->kind != RP_OP_BACKWARD && op->kind != RP_OP_BACKWARD_INPUT) {
        return 0;
    }
    const uint32_t lower = op->stage + (forward ? 0 : last) - 1; /* edges */
    const uint32_t upper = op->stage + (forward ? 0 : last);
    const rp_transfer t = {.step = op->step, .samples = op->samples};
    if (op->stage > 0) {
        out[count] = t;
        out[count].edge = lower;
        out[count].send = !forward;
        out[count++].before = forward;
    }
    if (op->stage < last) {
        out[count] = t;
        out[count].edge = upper;
        out[count].send = forward;
        out[count++].before = !forward;
    }
    return count;
}

rp_err rp_sched_replay(rp_arena *arena, const rp_sched_kind *kind, const rp_sched_shape *shape,
                       const rp_sched_costs *costs,
                       void (*visit)(void *context, const rp_sched_slot *slot), void *context,
                       rp_sched_facts *out) {
    const row of = {.kind = kind, .shape = *shape};
    const uint32_t nodes = rp_sched_nodes(shape);
    const uint32_t boundaries = shape->stages - 1;
    const rp_sched_visitor visitor = {.op = visit, .context = context};
    rp_arena own;
    rp_sched_hold *hold;
    rp_sched_edge *edge;
    rp_err err;
    rp_arena_init(&own, "row", 0);
    RP_TRY(RP_ARENA_NEW(&own, shape->stages, &hold));
    RP_TRY(RP_ARENA_NEW(&own, 2 * (size_t)boundaries + 1, &edge));
    for (uint32_t k = 0; k < shape->stages; k++) {
        hold[k] = (rp_sched_hold){.node = k % nodes, .stage = k};
    }
    for (uint32_t b = 1; b <= boundaries; b++) {
        const uint32_t lower = (b - 1) % nodes;
        const uint32_t upper = b % nodes;
        edge[b - 1] = (rp_sched_edge){.from = lower, .to = upper, .carries = "an activation"};
        edge[boundaries + b - 1] =
            (rp_sched_edge){.from = upper, .to = lower, .carries = "a gradient"};
    }
    const rp_sched_net net = {.name = kind->name,
                              .a_node = shape->chunks > 1 ? "node" : "stage",
                              .node_count = nodes,
                              .hold_count = shape->stages,
                              .edge_count = 2 * boundaries,
                              .hold = hold,
                              .edge = edge,
                              .context = &of,
                              .start = start_row,
                              .next = next_row,
                              .transfers = row_transfers};
    err = rp_sched_replay_net(arena, &net, costs, &visitor, RP_NO_NODE, out);
fail:
    rp_arena_finish(&own);
    return err;
}
