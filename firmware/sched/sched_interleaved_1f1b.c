#include "sched/sched.h"

/* A node holds v chunks: of D nodes, node k holds the stages k, k + D, ... Microbatches are
 * processed in groups of D: a node runs the group's forwards of its first chunk, then of its
 * second, and so on; backwards likewise, from the last chunk to the first. It runs a forward as
 * long as no more than w = 2 (D - 1 - k) + (v - 1) D are in flight, otherwise a backward. With one
 * chunk this is 1F1B.
 *
 * Positions in a group for microbatches that a step does not have are skipped. (Closing the gaps
 * instead deadlocks: with 5 microbatches on 4 nodes of 2 chunks, node 3 would want a gradient
 * before node 0 had the activations for it. Megatron-LM refuses such numbers.) */

static uint32_t chunks_of(const rp_sched_state *s) {
    return s->shape.chunks > 1 ? s->shape.chunks : 1;
}

/* The i-th position in the order of forwards or backwards: its chunk and its microbatch. Returns
 * false if the step has no such microbatch. */
static bool op_at_position(const rp_sched_state *s, rp_op_kind kind, uint64_t i, rp_op *op) {
    const uint32_t nodes = rp_sched_nodes(&s->shape);
    const uint32_t chunks = chunks_of(s);
    const uint64_t group = i / ((uint64_t)nodes * chunks);
    const uint32_t turn = (uint32_t)(i / nodes % chunks);
    const uint32_t chunk = kind == RP_OP_FORWARD ? turn : chunks - 1 - turn;
    const uint64_t micro = group * nodes + i % nodes;
    if (micro >= rp_sched_micro_count(&s->shape, s->step)) {
        return false;
    }
    *op = rp_sched_micro_op(s, kind, s->step, micro);
    op->stage = rp_sched_node(&s->shape) + chunk * nodes;
    return true;
}

static rp_op update_of_chunk(rp_sched_state *s) {
    const uint32_t nodes = rp_sched_nodes(&s->shape);
    const uint32_t chunk = (uint32_t)s->w;
    rp_sched_state behind = *s;
    rp_op op = rp_sched_end_step(&behind);
    op.stage = rp_sched_node(&s->shape) + chunk * nodes;
    if (chunk + 1 == chunks_of(s)) {
        *s = behind;
    } else {
        s->w++;
    }
    return op;
}

static bool next_interleaved_1f1b(rp_sched_state *s, rp_op *op) {
    const uint32_t chunks = chunks_of(s);
    const uint32_t nodes = rp_sched_nodes(&s->shape);
    const uint32_t behind = nodes - 1 - rp_sched_node(&s->shape);
    const uint64_t warm_up = chunks > 1 ? 2 * (uint64_t)behind + (chunks - 1) * nodes : behind;
    if (s->step == s->shape.step_end) {
        return false;
    }
    const uint64_t groups =
        ((uint64_t)rp_sched_micro_count(&s->shape, s->step) + nodes - 1) / nodes;
    const uint64_t places = groups * nodes * chunks;
    while (s->b < places) {
        const bool forward = s->f < places && s->f - s->b <= warm_up;
        const rp_op_kind kind = forward ? RP_OP_FORWARD : RP_OP_BACKWARD;
        if (op_at_position(s, kind, forward ? s->f++ : s->b++, op)) {
            return true;
        }
    }
    *op = update_of_chunk(s);
    return true;
}

const rp_sched_kind rp_sched_interleaved_1f1b = {
    .name = "interleaved-1f1b",
    .manual = "is 1f1b with several stages on each board: pipes fill in a fraction of the time",
    .source =
        "Megatron-LM, Narayanan et al., SC 2021: 1F1B with several model chunks on each device",
    .flushed = true,
    .interleaves = true,
    .next = next_interleaved_1f1b,
};
