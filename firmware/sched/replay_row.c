/* The replay of a shape: stages in a row, one on each node or dealt out in turn. */
#include "sched/replay.h"

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
