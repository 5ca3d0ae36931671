/* The replay of a shape: stages in a row, one on each node, or dealt out in turn to nodes with
 * several chunks, or some or all of them on two nodes each. */
#include "sched/replay.h"
#include "sched/split.h"

/* Edge numbers: first the activations over boundary b = 1.. from stage b - 1 to stage b, then their
 * gradients, then, if stages are split, the stashes and the weights by stage. */
typedef struct {
    const rp_sched_kind *kind;
    rp_sched_shape shape;
    uint32_t nodes, hold_count, edge_count;
    rp_sched_hold *hold;
    rp_sched_edge *edge;
} row;

static rp_role role_of(const row *of, uint32_t node) {
    return of->kind->splits ? rp_sched_split_role(of->shape.stages, of->shape.whole, node)
                            : RP_ROLE_BOTH;
}

static uint32_t backward_node(const row *of, uint32_t stage) {
    return of->kind->splits ? rp_sched_split_backward(of->shape.stages, of->shape.whole, stage)
                            : stage % of->nodes;
}

static void start_row(const rp_sched_net *net, uint32_t node, rp_sched_state *state) {
    const row *of = net->context;
    rp_sched_shape shape = of->shape;
    shape.stage = rp_sched_split_stage(shape.stages, shape.whole, node);
    rp_sched_start(state, &shape);
}

static bool next_row(const rp_sched_net *net, uint32_t node, rp_sched_state *state, rp_op *op) {
    const row *of = net->context;
    const rp_role role = role_of(of, node);
    while (of->kind->next(state, op)) {
        if (rp_role_does(role, op->kind)) {
            op->role = role;
            return true;
        }
    }
    return false;
}

/* The transfer of an update's weights, for the step that uses them. */
static uint32_t weight_transfer(const row *of, const rp_op *op, rp_transfer *out) {
    rp_sched_shape shape = of->shape;
    shape.stage = op->stage;
    const bool update = op->kind == RP_OP_UPDATE;
    const uint64_t step = update ? rp_sched_split_taker(&shape, op->step) : op->step;
    if (step == UINT64_MAX || (!update && (op->micro > 0 || !rp_sched_split_takes(&shape, step)))) {
        return 0;
    }
    *out = (rp_transfer){.edge = 2 * (shape.stages - 1) + shape.stages + op->stage,
                         .send = update,
                         .before = !update,
                         .step = step,
                         .samples = {0, rp_sched_step_samples(&shape, step)}};
    return 1;
}

static bool is_split(const row *of, uint32_t stage) {
    return of->kind->splits && rp_sched_is_split(of->shape.whole, stage);
}

static uint32_t row_transfers(const rp_sched_net *net, uint32_t node, const rp_op *op,
                              rp_transfer *out) {
    const row *of = net->context;
    const uint32_t last = of->shape.stages - 1;
    const bool forward = op->kind == RP_OP_FORWARD;
    const bool backward = op->kind == RP_OP_BACKWARD || op->kind == RP_OP_BACKWARD_INPUT;
    const uint32_t lower = op->stage + (forward ? 0 : last) - 1; /* indices of edges */
    const uint32_t upper = op->stage + (forward ? 0 : last);
    const rp_transfer t = {.step = op->step, .samples = op->samples};
    uint32_t count = 0;
    (void)node;
    if ((forward || backward) && op->stage > 0) {
        out[count] = t;
        out[count].edge = lower;
        out[count].send = !forward;
        out[count++].before = forward;
    }
    if ((forward || backward) && op->stage < last) {
        out[count] = t;
        out[count].edge = upper;
        out[count].send = forward;
        out[count++].before = !forward;
    }
    const bool split = is_split(of, op->stage);
    if ((forward || backward) && split) {
        out[count] = t;
        out[count].edge = 2 * last + op->stage;
        out[count].send = forward;
        out[count++].before = !forward;
    }
    return count + (split && !backward ? weight_transfer(of, op, &out[count]) : 0);
}

static rp_err make_row(rp_arena *arena, row *of) {
    const uint32_t stages = of->shape.stages;
    const uint32_t boundaries = stages - 1;
    rp_err err;
    of->hold_count = of->kind->splits ? of->nodes : stages;
    of->edge_count = 2 * boundaries + (of->kind->splits ? 2 * stages : 0);
    RP_TRY(RP_ARENA_NEW(arena, of->hold_count, &of->hold));
    RP_TRY(RP_ARENA_NEW(arena, (size_t)of->edge_count + 1, &of->edge));
    for (uint32_t k = 0; k < stages; k++) {
        const uint32_t forward = k % of->nodes;
        const uint32_t backward = backward_node(of, k);
        of->hold[k] = (rp_sched_hold){.node = forward, .stage = k, .role = role_of(of, forward)};
        if (is_split(of, k)) {
            of->hold[backward] =
                (rp_sched_hold){.node = backward, .stage = k, .role = RP_ROLE_BACKWARD};
            of->edge[2 * boundaries + k] =
                (rp_sched_edge){.from = forward, .to = backward, .carries = "a stash"};
            of->edge[2 * boundaries + stages + k] =
                (rp_sched_edge){.from = backward, .to = forward, .carries = "weights"};
        }
    }
    for (uint32_t b = 1; b <= boundaries; b++) {
        of->edge[b - 1] = (rp_sched_edge){
            .from = (b - 1) % of->nodes, .to = b % of->nodes, .carries = "an activation"};
        of->edge[boundaries + b - 1] = (rp_sched_edge){
            .from = backward_node(of, b), .to = backward_node(of, b - 1), .carries = "a gradient"};
    }
fail:
    return err;
}

rp_err rp_sched_replay(rp_arena *arena, const rp_sched_kind *kind, const rp_sched_shape *shape,
                       const rp_sched_costs *costs,
                       void (*visit)(void *context, const rp_sched_slot *slot), void *context,
                       rp_sched_facts *out) {
    row of = {.kind = kind,
              .shape = *shape,
              .nodes = kind->splits ? rp_sched_split_nodes(shape->stages, shape->whole)
                                    : rp_sched_nodes(shape)};
    const rp_sched_visitor visitor = {.op = visit, .context = context};
    rp_arena own;
    rp_err err;
    rp_arena_init(&own, "row", 0);
    if (kind->splits && shape->ahead[0] == 0) {
        rp_sched_split_default(&of.shape);
    }
    RP_TRY(make_row(&own, &of));
    const bool nodes = kind->splits || shape->chunks > 1;
    const rp_sched_net net = {.name = kind->name,
                              .a_node = nodes ? "node" : "stage",
                              .node_count = of.nodes,
                              .hold_count = of.hold_count,
                              .edge_count = of.edge_count,
                              .hold = of.hold,
                              .edge = of.edge,
                              .context = &of,
                              .start = start_row,
                              .next = next_row,
                              .transfers = row_transfers};
    err = rp_sched_replay_net(arena, &net, costs, &visitor, RP_NO_NODE, out);
fail:
    rp_arena_finish(&own);
    return err;
}
