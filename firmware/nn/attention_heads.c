/* Attention on devices whose matrix products are by panels (CPUs): kernels/attention_heads.cl. One
 * launch forward and one backward; each group processes several heads in sequence, in its own slot
 * of the workspace. */
#include "nn/attention_own.h"

enum {
    SLOTS = 16,                /* the most groups of a launch */
    SLOTS_FLOATS_MAX = 1 << 22 /* of all slots, if one slot does not need more */
};

enum { Q = RP_ATTENTION_Q, K = RP_ATTENTION_K, V = RP_ATTENTION_V, PARTS = RP_ATTENTION_PARTS };

/* How heads are distributed, and first floats in the workspace. */
typedef struct {
    uint32_t runs, runs_each; /* pairs of a sample and a head of k, in all and of a slot */
    uint32_t slots;
    uint64_t mask, slot, slot_floats, end;
} heads_plan;

static uint64_t whole(uint64_t count, uint64_t of) {
    return (count + of - 1) / of * of;
}

static uint64_t find_slot_floats(const rp_attention_inputs *of) {
    const uint64_t group = of->y.heads / of->part[K].heads;
    const uint64_t queries = whole(of->y.tokens, RP_ATTENTION_TOKENS);
    const uint64_t panels = whole(of->part[Q].size, 8) + whole(of->part[V].size, 8);
    return 2 * panels * RP_ATTENTION_TOKENS + group * queries * (1 + whole(of->part[Q].size, 16));
}

static heads_plan plan_heads(const rp_attention_inputs *of, uint32_t n) {
    heads_plan plan = {.runs = n * of->part[K].heads, .slot_floats = find_slot_floats(of)};
    const uint64_t fit = SLOTS_FLOATS_MAX / plan.slot_floats;
    const uint32_t most = fit > SLOTS ? SLOTS : fit > 1 ? (uint32_t)fit : 1;
    const uint32_t slots = plan.runs < most ? plan.runs : most;
    plan.runs_each = rp_layer_divide_up(plan.runs, slots);
    plan.slots = rp_layer_divide_up(plan.runs, plan.runs_each);
    plan.slot = of->has_ids ? n * whole(of->part[K].tokens, RP_ATTENTION_TOKENS) : 0;
    plan.end = plan.slot + slots * plan.slot_floats;
    return plan;
}

size_t rp_attention_heads_floats(const rp_attention_inputs *of, uint32_t n) {
    return (size_t)plan_heads(of, n).end;
}

static void arg_tensor(rp_launch *launch, const rp_tensor *tensor, const rp_attention_rows *rows) {
    rp_arg_buffer(launch, tensor ? tensor->buffer : NULL);
    rp_arg_u64(launch, tensor ? tensor->offset + rows->first : 0);
    rp_arg_u32(launch, rows->row_stride);
}

/* The mask, and a kernel with the arguments that both of them have. */
static rp_err begin_heads(const rp_layer_call *call, const rp_attention_inputs *of,
                          const heads_plan *plan, const char *entry, rp_launch *launch) {
    rp_err err;
    if (of->has_ids) {
        RP_TRY(rp_attention_mask(call, of, plan->mask, 0, call->n));
    }
    RP_TRY(rp_layer_begin(call, "attention_heads", entry, NULL, launch));
    rp_arg_buffer(launch, call->workspace);
    rp_arg_u64(launch, plan->slot);
    rp_arg_u32(launch, (uint32_t)plan->slot_floats);
    rp_arg_u32(launch, plan->runs);
    rp_arg_u32(launch, plan->runs_each);
    rp_arg_u64(launch, plan->mask);
    rp_arg_u32(launch, of->has_ids);
    rp_attention_arg_heads(call, of, 0, launch);
    for (uint32_t i = 0; i < PARTS; i++) {
        arg_tensor(launch, call->x[of->part[i].input], &of->part[i]);
    }
    arg_tensor(launch, call->y, &of->y);
    return RP_OK;
fail:
    return err;
}

rp_err rp_attention_heads_forward(const rp_layer_call *call, const rp_attention_inputs *of) {
    const heads_plan plan = plan_heads(of, call->n);
    rp_launch launch;
    rp_err err;
    RP_TRY(begin_heads(call, of, &plan, "attend_heads", &launch));
    rp_arg_f32(&launch, rp_attention_scale(call->layer->spec, of) * (float)RP_ATTENTION_LOG2_E);
    return rp_launch_run(&launch, 1, (size_t[]){plan.slots}, (size_t[]){1});
fail:
    return err;
}

static bool is_same(const rp_tensor *a, const rp_tensor *b) {
    return a && b && a->buffer == b->buffer && a->offset == b->offset;
}

/* The kernel is done with dk and dv before dq. If one tensor is q and also k or v, its first
 * gradient in this order is stored, and all others are added. */
static void find_adds(const rp_layer_call *call, const rp_attention_inputs *of, bool add[PARTS]) {
    rp_tensor *const *dx = call->dx;
    for (uint32_t i = 0; i < PARTS; i++) {
        add[i] = call->dx_add[of->part[i].input];
    }
    for (uint32_t i = 0; i < PARTS; i++) {
        const uint32_t own = of->part[i].input;
        if (own != of->part[Q].input && !add[Q] && is_same(dx[own], dx[of->part[Q].input])) {
            add[i] = false;
            add[Q] = true;
        }
    }
}

rp_err rp_attention_heads_backward(const rp_layer_call *call, const rp_attention_inputs *of) {
    const heads_plan plan = plan_heads(of, call->n);
    const float scale = rp_attention_scale(call->layer->spec, of);
    bool add[PARTS];
    rp_launch launch;
    rp_err err;
    find_adds(call, of, add);
    RP_TRY(begin_heads(call, of, &plan, "attend_heads_backward", &launch));
    arg_tensor(&launch, call->dy, &of->y);
    for (uint32_t i = 0; i < PARTS; i++) {
        arg_tensor(&launch, call->dx[of->part[i].input], &of->part[i]);
    }
    rp_arg_f32(&launch, scale * (float)RP_ATTENTION_LOG2_E);
    rp_arg_f32(&launch, scale);
    for (uint32_t i = 0; i < PARTS; i++) {
        rp_arg_u32(&launch, call->dx[of->part[i].input] != NULL);
    }
    for (uint32_t i = 0; i < PARTS; i++) {
        rp_arg_u32(&launch, add[i]);
    }
    return rp_launch_run(&launch, 1, (size_t[]){plan.slots}, (size_t[]){1});
fail:
    return err;
}
