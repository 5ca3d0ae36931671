#include "planning/dp_cut.h"

#include <math.h>

/* The best cut from a stage to the end. `slowest`: of these stages and the wires between them;
 * `sum`: of all of them; `turns`: sum of turns_s; `value`: what this round minimises; `end`: of the
 * stage; `next`: the group of the stage after it. */
typedef struct {
    double slowest, sum, turns, value;
    uint32_t end;
    rp_dp_group next;
} suffix;

typedef struct {
    const rp_dp_ask *ask;
    uint32_t stages;  /* most stages */
    suffix *table;    /* [later stages][group.first][group.count - 1][first layer] */
    double limit;     /* the slowest must be below it */
    bool by_value;    /* minimise `value`; false: `slowest`, then `value` */
    double weight[2]; /* of `sum` and of `turns` in `value` */
} search;

static const suffix NONE = {
    (double)INFINITY, (double)INFINITY, (double)INFINITY, (double)INFINITY, 0, {0, 0}};

static suffix *entry_at(const search *s, uint32_t later, rp_dp_group group, uint32_t first) {
    const rp_dp_ask *ask = s->ask;
    const size_t row = ((size_t)later * ask->boards + group.first) * ask->share_most;
    return &s->table[(row + group.count - 1) * ask->layers + first];
}

static bool is_better(const search *s, const suffix *a, const suffix *b) {
    if (!(a->slowest < s->limit) || !(a->value < (double)INFINITY)) {
        return false;
    }
    if (s->by_value || a->slowest == b->slowest) {
        return a->value < b->value;
    }
    return a->slowest < b->slowest;
}

static double larger(double a, double b) {
    return a > b ? a : b;
}

static suffix make_suffix(const search *s, double slowest, double sum, double turns) {
    return (suffix){.slowest = slowest,
                    .sum = sum,
                    .turns = turns,
                    .value = s->weight[0] * sum + (s->weight[1] > 0 ? s->weight[1] * turns : 0)};
}

/* Tries all groups for the stage after `own`, which ends before layer `end` and takes `own_s`. */
static void try_next(const search *s, uint32_t later, rp_dp_group own, uint32_t end, double own_s,
                     suffix *best) {
    const rp_dp_ask *ask = s->ask;
    const uint32_t board = own.first + own.count;
    for (uint32_t skip = 0; skip <= ask->skip_most && board + skip < ask->boards; skip++) {
        for (uint32_t count = 1; count <= ask->share_most && board + skip + count <= ask->boards;
             count++) {
            const rp_dp_group next = {board + skip, count};
            const suffix *rest = entry_at(s, later - 1, next, end);
            if (!(rest->slowest < s->limit)) {
                continue;
            }
            const double wire_s = ask->wire_s(ask->context, own, next, end);
            const double turns_s = ask->turns_s ? ask->turns_s(ask->context, own, next, end) : 0;
            suffix one = make_suffix(s, larger(larger(own_s, wire_s), rest->slowest),
                                     own_s + wire_s + rest->sum, turns_s + rest->turns);
            one.end = end;
            one.next = next;
            if (wire_s >= 0 && is_better(s, &one, best)) {
                *best = one;
            }
        }
    }
}

static suffix find_best_end(const search *s, uint32_t later, rp_dp_group own, uint32_t first) {
    const rp_dp_ask *ask = s->ask;
    const uint32_t last = ask->boards - own.first - own.count; /* boards after the group */
    suffix best = NONE;
    if (later == 0 && last > ask->skip_most) {
        return NONE;
    }
    for (uint32_t end = later == 0 ? ask->layers : first + 1; end + later <= ask->layers; end++) {
        const double own_s = ask->stage_s(ask->context, own, first, end, later);
        if (own_s >= s->limit ||
            (s->by_value ? s->weight[0] * own_s >= best.value : own_s > best.slowest)) {
            break; /* more layers only cost more */
        }
        if (!(own_s >= 0 && own_s < s->limit)) {
            continue;
        }
        suffix alone = make_suffix(s, own_s, own_s, 0);
        alone.end = end;
        if (later > 0) {
            try_next(s, later, own, end, own_s, &best);
        } else if (is_better(s, &alone, &best)) {
            best = alone;
        }
    }
    return best;
}

/* `later` stages can use or leave out all boards after the group. */
static bool can_use_boards(const rp_dp_ask *ask, uint32_t later, rp_dp_group own) {
    const uint64_t left = ask->boards - own.first - own.count;
    const uint64_t most =
        (uint64_t)later * ask->share_most + ((uint64_t)later + 1) * ask->skip_most;
    return left >= later && left <= most;
}

static void fill_table(const search *s) {
    const rp_dp_ask *ask = s->ask;
    for (uint32_t later = 0; later < s->stages; later++) {
        for (uint32_t first = 0; first < ask->boards; first++) {
            for (uint32_t count = 1; count <= ask->share_most; count++) {
                const rp_dp_group own = {first, count};
                const bool exists = first + count <= ask->boards && can_use_boards(ask, later, own);
                for (uint32_t layer = 0; layer < ask->layers; layer++) {
                    *entry_at(s, later, own, layer) = exists && layer + later < ask->layers
                                                          ? find_best_end(s, later, own, layer)
                                                          : NONE;
                }
            }
        }
    }
}

static void read_answer(const search *s, uint32_t later, rp_dp_group group, rp_dp_answer *out) {
    const suffix *top = entry_at(s, later, group, 0);
    out->stage_count = later + 1;
    out->slowest = top->slowest;
    out->sum = top->sum;
    out->turns = top->turns;
    out->cost = s->ask->steady * larger(top->slowest, top->turns) + s->ask->fill * top->sum;
    out->first[0] = 0;
    for (uint32_t k = 0; k <= later; k++) {
        const suffix *own = entry_at(s, later - k, group, out->first[k]);
        out->group[k] = group;
        out->first[k + 1] = own->end;
        group = own->next;
    }
}

/* One round: the best cut with a slowest stage below `limit`. False: no cut is allowed. */
static bool search_round(search *s, double limit, bool by_value, rp_dp_answer *out, double *value) {
    const rp_dp_ask *ask = s->ask;
    suffix best = NONE;
    uint32_t stages = 0;
    rp_dp_group top = {0, 0};
    s->limit = limit;
    s->by_value = by_value;
    fill_table(s);
    for (uint32_t later = 0; later < s->stages; later++) {
        for (uint32_t first = 0; first <= ask->skip_most && first < ask->boards; first++) {
            for (uint32_t count = 1; count <= ask->share_most && first + count <= ask->boards;
                 count++) {
                const rp_dp_group own = {first, count};
                const suffix *one = entry_at(s, later, own, 0);
                if (is_better(s, one, &best)) {
                    best = *one;
                    stages = later + 1;
                    top = own;
                }
            }
        }
    }
    if (stages > 0) {
        read_answer(s, stages - 1, top, out);
        *value = best.value;
    }
    return stages > 0;
}

/* No cut with this value or a larger one costs less than the best, because its slowest stage takes
 * at least `least`. */
static bool is_final(const search *s, const rp_dp_answer *best, double least, double value) {
    const bool with_turns = s->weight[1] > 0;
    return (with_turns ? value : s->ask->steady * least + s->ask->fill * value) >= best->cost;
}

/* Rounds from the least value to the least slowest stage. Each value is larger than the one before,
 * so the rounds end when the value alone costs as much as the best cut. */
static void lower_limit(search *s, double least, rp_dp_answer *best) {
    const rp_dp_ask *ask = s->ask;
    rp_dp_answer one;
    double limit = (double)INFINITY;
    double value;
    for (uint32_t round = 0; ask->rounds == 0 || round < ask->rounds; round++) {
        const uint32_t rounds = best->rounds + 1;
        const bool any = search_round(s, limit, true, &one, &value);
        const bool is_exact = best->is_exact;
        if (any && one.cost < best->cost) {
            *best = one;
            best->is_exact = is_exact;
        }
        best->rounds = any ? rounds : best->rounds;
        limit = any ? one.slowest : 0;
        if (any && is_final(s, best, least, value)) {
            best->is_exact = true;
            return;
        }
        if (limit <= least) { /* with turns a later series may find a better cut */
            best->is_exact = best->is_exact || !ask->turns_s;
            return;
        }
    }
}

/* A series of rounds by the sum of stages and wires, and if wires take turns, one by sum and turns,
 * which matters when the turns dominate. */
static void search_all(search *s, rp_dp_answer *best) {
    const rp_dp_ask *ask = s->ask;
    const double least = best->slowest;
    best->is_exact = false;
    if (ask->fill > 0) {
        lower_limit(s, least, best);
    }
    if (ask->turns_s && !best->is_exact) {
        s->weight[0] = ask->fill;
        s->weight[1] = ask->steady;
        lower_limit(s, least, best);
    }
}

static rp_err check_ask(const rp_dp_ask *ask) {
    const bool fits = ask->layers > 0 && ask->boards > 0 && ask->boards <= RP_DP_BOARDS_MAX &&
                      ask->share_most > 0 && ask->share_most <= ask->boards;
    if (!fits || !(ask->steady >= 0) || !(ask->fill >= 0) || isinf(ask->steady) ||
        isinf(ask->fill)) {
        return rp_fail(
            RP_ERR_USAGE,
            "cut: %u layers, %u boards, at most %u of them for a stage, weights %g and %g; "
            "expected layers, 1 to %d boards, 1 to all of them for a stage, and finite "
            "weights of 0 or more",
            ask->layers, ask->boards, ask->share_most, ask->steady, ask->fill, RP_DP_BOARDS_MAX);
    }
    return RP_OK;
}

static uint32_t most_stages(const rp_dp_ask *ask) {
    const uint32_t most = ask->layers < ask->boards ? ask->layers : ask->boards;
    return ask->stages_most > 0 && ask->stages_most < most ? ask->stages_most : most;
}

rp_err rp_dp_cut(const rp_dp_ask *ask, rp_dp_answer *out) {
    search s = {.ask = ask, .weight = {1, 0}};
    double value;
    rp_arena arena;
    rp_err err;
    *out = (rp_dp_answer){.cost = (double)INFINITY, .is_exact = true};
    rp_arena_init(&arena, "dp-cut", 0);
    RP_TRY(check_ask(ask));
    s.stages = most_stages(ask);
    const size_t groups = (size_t)ask->boards * ask->share_most;
    RP_TRY(RP_ARENA_NEW(&arena, s.stages * groups * ask->layers, &s.table));
    if (search_round(&s, (double)INFINITY, false, out, &value)) {
        out->rounds = 1;
        out->is_exact = true;
        if (ask->fill > 0 || ask->turns_s) {
            search_all(&s, out);
        }
    }
fail:
    rp_arena_finish(&arena);
    return err;
}
