/* What an op waits for, and the messages when it waits forever. */
#include <stdio.h>
#include <string.h>

#include "sched/replay_own.h"

/* ---- when an op can start -------------------------------------------------------------------- */

uint32_t rp_replay_hold_of(const rp_replay *r, const rp_replay_node *n) {
    for (uint32_t i = 0; i < n->hold_count; i++) {
        if (r->net->hold[n->hold[i]].stage == n->op.stage) {
            return n->hold[i];
        }
    }
    return RP_NO_NODE;
}

/* The missing op of the hold itself: a backward's forward; a weight gradient's input gradient. */
static const char *missing_own(const rp_replay *r, const rp_replay_node *n, double *start) {
    const uint32_t h = rp_replay_hold_of(r, n);
    const rp_op *op = &n->op;
    if (h == RP_NO_NODE) {
        return NULL;
    }
    const rp_replay_hold *own = &r->holder[h];
    switch (op->kind) {
    case RP_OP_BACKWARD:
    case RP_OP_BACKWARD_INPUT:
        return r->net->hold[h].role == RP_ROLE_BACKWARD ||
                       rp_ledger_covers(&own->held, op->step, op->samples, start)
                   ? NULL
                   : "its own forward";
    case RP_OP_BACKWARD_WEIGHT:
        return rp_ledger_covers(&own->owed, op->step, op->samples, start) ? NULL
                                                                          : "its input gradient";
    default:
        return NULL;
    }
}

const char *rp_replay_missing(const rp_replay *r, const rp_replay_node *n, double *start,
                              uint32_t *edge) {
    *start = n->free;
    *edge = RP_NO_NODE;
    const char *own = missing_own(r, n, start);
    for (uint32_t i = 0; !own && i < n->transfer_count; i++) {
        const rp_transfer *t = &n->transfer[i];
        const rp_replay_route *way = &r->route[t->edge];
        const rp_sched_edge *e = &r->net->edge[t->edge];
        *edge = t->edge;
        if (!t->send && !rp_ledger_covers(&way->parcels, t->step, t->samples, start)) {
            return e->carries;
        }
        if (t->send && !t->before && e->window > 0) {
            if (way->parcels.count + way->queued >= e->window) {
                return "room";
            }
            *start = way->has_room > *start ? way->has_room : *start;
        }
    }
    return own;
}

/* ---- messages -------------------------------------------------------------------------------- */

enum { NAME_BYTES = 80 };

static const char *name_node(const rp_sched_net *net, uint32_t node, char out[NAME_BYTES]) {
    if (net->node_name) {
        (void)snprintf(out, NAME_BYTES, "%s %s", net->a_node, net->node_name[node]);
    } else {
        (void)snprintf(out, NAME_BYTES, "%s %u", net->a_node, node);
    }
    return out;
}

/* Writes, for example, "; node 1 at F4 of step 0 waits for an activation from node 0". Returns the
 * other node, or RP_NO_NODE if it waits for no other. */
static uint32_t describe_wait(const rp_replay *r, uint32_t node, char *out, size_t bytes) {
    const rp_sched_net *net = r->net;
    const rp_replay_node *n = &r->runner[node];
    char name[NAME_BYTES];
    char other[NAME_BYTES];
    double start;
    uint32_t edge;
    (void)name_node(net, node, name);
    if (n->over) {
        (void)snprintf(out, bytes, "; %s is done", name);
        return RP_NO_NODE;
    }
    const char *what = rp_replay_missing(r, n, &start, &edge);
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

rp_err rp_replay_fail_deadlock(rp_replay *r) {
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

rp_err rp_replay_check_empty(const rp_replay *r) {
    const rp_sched_net *net = r->net;
    char name[NAME_BYTES];
    char other[NAME_BYTES];
    for (uint32_t h = 0; h < net->hold_count; h++) {
        const rp_replay_hold *own = &r->holder[h];
        if (own->held.count || own->owed.count) {
            return rp_fail(RP_ERR_FAULT,
                           "schedule %s: %s ends with %u forwards and %u weight gradients of stage "
                           "%u left",
                           net->name, name_node(net, net->hold[h].node, name), own->held.count,
                           own->owed.count, net->hold[h].stage);
        }
    }
    for (uint32_t e = 0; e < net->edge_count; e++) {
        const rp_piece *left = r->route[e].parcels.first;
        if (left) {
            return rp_fail(
                RP_ERR_FAULT,
                "schedule %s: %s never uses %s of step %llu, samples %u to %u, which %s has sent",
                net->name, name_node(net, net->edge[e].to, name), net->edge[e].carries,
                (unsigned long long)left->step, left->samples.first,
                left->samples.first + left->samples.count - 1,
                name_node(net, net->edge[e].from, other));
        }
    }
    return RP_OK;
}
