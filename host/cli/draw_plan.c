#include "draw_plan.h"

typedef struct {
    rp_sched_slot *slot;
    uint32_t count, count_max;
} slots;

static void collect_slot(void *context, const rp_sched_slot *slot) {
    slots *s = context;
    if (slot->op.kind != RP_OP_UPDATE && s->count < s->count_max) {
        s->slot[s->count++] = *slot;
    }
}

/* Label of an op: kind, microbatch, and a letter for the stage if its node has several. */
static void label_slot(const rp_plan *plan, const rp_sched_slot *slot, char *out, size_t bytes) {
    const rp_plan_node *node = &plan->node[slot->node];
    const bool flushed = plan->method.kind->flushed;
    const uint64_t number = flushed ? slot->op.micro : slot->op.step;
    int used =
        snprintf(out, bytes, "%s%llu", rp_op_letter(slot->op.kind), (unsigned long long)number);
    if (!flushed && slot->op.micro > 0) {
        used += snprintf(out + used, bytes - (size_t)used, ".%u", slot->op.micro);
    }
    if (node->hold_count > 1) {
        const rp_plan_hold *hold = rp_plan_find_hold(plan, slot->node, slot->stage);
        const uint32_t index = (uint32_t)(hold - &plan->hold[node->hold_first]);
        (void)snprintf(out + used, bytes - (size_t)used, "%c", (char)('a' + index % 26));
    }
}

static void put_holds(FILE *out, const rp_plan *plan, uint32_t k) {
    const rp_plan_node *node = &plan->node[k];
    fprintf(out, "  %s:", node->name);
    for (uint32_t h = node->hold_first; h < node->hold_first + node->hold_count; h++) {
        const rp_plan_hold *hold = &plan->hold[h];
        fprintf(out, " stage %u", hold->stage);
        if (hold->role != RP_ROLE_BOTH) {
            fprintf(out, " %s", rp_role_name(hold->role));
        }
        if (hold->share[0] > 0 || hold->share[1] < 1) {
            fprintf(out, " of samples %.3g to %.3g", hold->share[0], hold->share[1]);
        }
        fprintf(out, ", slots %u", hold->slots);
    }
    fprintf(out, "\n");
}

/* Puts each op at its start, or directly after the op before it, because an op shorter than a
 * column still takes a column. */
static void put_lane(FILE *out, const rp_plan *plan, const slots *all, uint32_t k, uint32_t columns,
                     int width) {
    uint32_t column = 0;
    for (uint32_t i = 0; i < all->count; i++) {
        char text[32];
        if (all->slot[i].node != k) {
            continue;
        }
        for (; column < (uint32_t)(all->slot[i].start + 0.5); column++) {
            fprintf(out, "%-*s ", width, ".");
        }
        label_slot(plan, &all->slot[i], text, sizeof text);
        fprintf(out, "%-*s ", width, text);
        column++;
    }
    for (; column < columns; column++) {
        fprintf(out, "%-*s ", width, ".");
    }
    put_holds(out, plan, k);
}

static uint64_t count_ops(const rp_plan *plan) {
    uint64_t count = 0;
    for (uint32_t k = 0; k < plan->node_count; k++) {
        rp_plan_list list;
        rp_op op;
        rp_plan_list_start(plan, k, &list);
        while (rp_plan_list_next(&list, &op)) {
            count++;
        }
    }
    return count;
}

rp_err rp_draw_plan(FILE *out, const rp_plan *plan) {
    const uint64_t most = plan->method.kind->flushed ? 1 : 2 * (uint64_t)plan->stage_count;
    rp_plan shown = *plan;
    rp_sched_facts facts;
    slots all = {0};
    double *cost;
    int width = 1;
    rp_arena arena;
    rp_err err;
    rp_arena_init(&arena, "draw", 0);
    shown.steps = plan->steps - plan->step_first < most ? plan->steps : plan->step_first + most;
    all.count_max = (uint32_t)count_ops(&shown);
    RP_TRY(RP_ARENA_NEW(&arena, (size_t)all.count_max + 1, &all.slot));
    RP_TRY(RP_ARENA_NEW(&arena, 2 * (size_t)plan->hold_count, &cost));
    for (uint32_t h = 0; h < plan->hold_count; h++) {
        cost[h] = 1;
        cost[plan->hold_count + h] = plan->method.kind->split_backward ? 1 : 0;
    }
    const rp_sched_costs costs = {
        .forward = cost, .backward_input = cost, .backward_weight = cost + plan->hold_count};
    const rp_sched_visitor visit = {.op = collect_slot, .context = &all};
    RP_TRY(rp_plan_replay(&arena, &shown, &costs, true, &visit, RP_NO_NODE, &facts));
    for (uint32_t i = 0; i < all.count; i++) {
        char text[32];
        label_slot(plan, &all.slot[i], text, sizeof text);
        const int own = snprintf(NULL, 0, "%s", text);
        width = own > width ? own : width;
    }
    fprintf(out, "%s, %u nodes, %u stages, %u edges: %g columns, bubble %.1f %%%s\n",
            plan->method.kind->name, plan->node_count, plan->stage_count, plan->edge_count,
            facts.makespan, 100 * facts.bubble,
            plan->method.kind->flushed ? "" : ", including filling and draining");
    for (uint32_t k = 0; k < plan->node_count; k++) {
        put_lane(out, plan, &all, k, (uint32_t)(facts.makespan + 0.5), width);
    }
fail:
    rp_arena_finish(&arena);
    return err;
}
