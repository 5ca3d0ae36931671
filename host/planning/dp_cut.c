#include "planning/dp_cut.h"

#include <math.h>

/* From a stage on to the end: the slowest of them and the wires between, their sum, what it is of
 * the turns that wires take, what is minimised of both, and how it goes on: where the stage ends,
 * and the next group. */
typedef struct {
    double slowest, sum, turns, value;
    uint32_t end;
    rp_dp_group next;
} suffix;

typedef struct {
    const rp_dp_ask *ask;
    uint32_t stages;  /* at most */
    suffix *table;    /* [stages behind][group.first][group.count - 1][first layer] */
    double limit;     /* of the slowest: below it */
    bool by_value;    /* else the least slowest, among equals the least value */
    double weight[2]; /* in the value: of the sum, of the turns */
} search;

static const suffix NONE = {
    (double)INFINITY, (double)INFINITY, (double)INFINITY, (double)INFINITY, 0, {0, 0}};

static suffix *at(const search *s, uint32_t behind, rp_dp_group group, uint32_t first) {
    const rp_dp_ask *ask = s->ask;
    const size_t row = ((size_t)behind * ask->boards + group.first) * ask->share_most;
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

static suffix made_of(const search *s, double slowest, double sum, double turns) {
    return (suffix){.slowest = slowest,
                    .sum = sum,
                    .turns = turns,
                    .value = s->weight[0] * sum + (s->weight[1] > 0 ? s->weight[1] * turns : 0)};
}

/* The groups that may come behind one that ends in front of board `board`. */
static void try_next(const search *s, uint32_t behind, rp_dp_group own, uint32_t end, double own_s,
                     suffix *best) {
    const rp_dp_ask *ask = s->ask;
    const uint32_t board = own.first + own.count;
    for (uint32_t skip = 0; skip <= ask->skip_most && board + skip < ask->boards; skip++) {
        for (uint32_t count = 1; count <= ask->share_most && board + skip + count <= ask->boards;
             count++) {
            const rp_dp_group next = {board + skip, count};
            const suffix *rest = at(s, behind - 1, next, end);
            if (!(rest->slowest < s->limit)) {
                continue;
            }
            const double wire_s = ask->wire_s(ask->context, own, next, end);
            const double turns_s = ask->turns_s ? ask->turns_s(ask->context, own, next, end) : 0;
            suffix one = made_of(s, larger(larger(own_s, wire_s), rest->slowest),
                                 own_s + wire_s + rest->sum, turns_s + rest->turns);
            one.end = end;
            one.next = next;
            if (wire_s >= 0 && is_better(s, &one, best)) {
                *best = one;
            }
        }
    }
}

static suffix best_from(const search *s, uint32_t behind, rp_dp_group own, uint32_t first) {
    const rp_dp_ask *ask = s->ask;
    const uint32_t last = ask->boards - own.first - own.count; /* boards that are left */
    suffix best = NONE;
    if (behind == 0 && last > ask->skip_most) {
        return NONE;
    }
    for (uint32_t end = behind == 0 ? ask->layers : first + 1; end + behind <= ask->layers; end++) {
        const double own_s = ask->stage_s(ask->context, own, first, end, behind);
        if (own_s >= s->limit ||
            (s->by_value ? s->weight[0] * own_s >= best.value : own_s > best.slowest)) {
            break; /* and so would be any more layers */
        }
        if (!(own_s >= 0 && own_s < s->limit)) {
            continue;
        }
        suffix alone = made_of(s, own_s, own_s, 0);
        alone.end = end;
        if (behind > 0) {
            try_next(s, behind, own, end, own_s, &best);
        } else if (is_better(s, &alone, &best)) {
            best = alone;
        }
    }
    return best;
}

/* So many stages can take the boards behind a group. */
static bool can_be(const rp_dp_ask *ask, uint32_t behind, rp_dp_group own) {
    const uint64_t left = ask->boards - own.first - own.count;
    const uint64_t most =
        (uint64_t)behind * ask->share_most + ((uint64_t)behind + 1) * ask->skip_most;
    return left >= behind && left <= most;
}

static void fill_table(const search *s) {
    const rp_dp_ask *ask = s->ask;
    for (uint32_t behind = 0; behind < s->stages; behind++) {
        for (uint32_t first = 0; first < ask->boards; first++) {
            for (uint32_t count = 1; count <= ask->share_most; count++) {
                const rp_dp_group own = {first, count};
                const bool exists = first + count <= ask->boards && can_be(ask, behind, own);
                for (uint32_t layer = 0; layer < ask->layers; layer++) {
                    *at(s, behind, own, layer) = exists && layer + behind < ask->layers
                                                     ? best_from(s, behind, own, layer)
                                                     : NONE;
                }
            }
        }
    }
}

static void read_off(const search *s, uint32_t behind, rp_dp_group group, rp_dp_answer *out) {
    const suffix *top = at(s, behind, group, 0);
    out->stage_count = behind + 1;
    out->slowest = top->slowest;
    out->sum = top->sum;
    out->turns = top->turns;
    out->cost = s->ask->steady * larger(top->slowest, top->turns) + s->ask->fill * top->sum;
    out->first[0] = 0;
    for (uint32_t k = 0; k <= behind; k++) {
        const suffix *own = at(s, behind - k, group, out->first[k]);
        out->group[k] = group;
        out->first[k + 1] = own->end;
        group = own->next;
    }
}

/* False: nothing is allowed. */
static bool look(search *s, double limit, bool by_value, rp_dp_answer *out, double *value) {
    const rp_dp_ask *ask = s->ask;
    suffix best = NONE;
    uint32_t stages = 0;
    rp_dp_group top = {0, 0};
    s->limit = limit;
    s->by_value = by_value;
    fill_table(s);
    for (uint32_t behind = 0; behind < s->stages; behind++) {
        for (uint32_t first = 0; first <= ask->skip_most && first < ask->boards; first++) {
            for (uint32_t count = 1; count <= ask->share_most && first + count <= ask->boards;
                 count++) {
                const rp_dp_group own = {first, count};
                const suffix *one = at(s, behind, own, 0);
                if (is_better(s, one, &best)) {
                    best = *one;
                    stages = behind + 1;
                    top = own;
                }
            }
        }
    }
    if (stages > 0) {
        read_off(s, stages - 1, top, out);
        *value = best.value;
    }
    return stages > 0;
}

/* Nothing with a value as large costs less than the best, whose slowest stage is never below
 * `least`. */
static bool is_over(const search *s, const rp_dp_answer *best, double least, double value) {
    const bool with_turns = s->weight[1] > 0;
    return (with_turns ? value : s->ask->steady * least + s->ask->fill * value) >= best->cost;
}

/* From the least value of all down to the least slowest: each value is larger than the one before,
 * so it is over when this one alone costs as much as the best. */
static void sweep(search *s, double least, rp_dp_answer *best) {
    const rp_dp_ask *ask = s->ask;
    rp_dp_answer one;
    double limit = (double)INFINITY;
    double value;
    for (uint32_t round = 0; ask->rounds == 0 || round < ask->rounds; round++) {
        const uint32_t rounds = best->rounds + 1;
        const bool any = look(s, limit, true, &one, &value);
        const bool is_exact = best->is_exact;
        if (any && one.cost < best->cost) {
            *best = one;
            best->is_exact = is_exact;
        }
        best->rounds = any ? rounds : best->rounds;
        limit = any ? one.slowest : 0;
        if (any && is_over(s, best, least, value)) {
            best->is_exact = true;
            return;
        }
        if (limit <= least) { /* with turns another sum may be better yet */
            best->is_exact = best->is_exact || !ask->turns_s;
            return;
        }
    }
}

/* By the sum of stages and wires, and, where wires take turns, by what counts where these are what
 * takes longest. */
static void sweep_all(search *s, rp_dp_answer *best) {
    const rp_dp_ask *ask = s->ask;
    const double least = best->slowest;
    best->is_exact = false;
    if (ask->fill > 0) {
        sweep(s, least, best);
    }
    if (ask->turns_s && !best->is_exact) {
        s->weight[0] = ask->fill;
        s->weight[1] = ask->steady;
        sweep(s, least, best);
    }
}

static rp_err check(const rp_dp_ask *ask) {
    const bool fits = ask->layers > 0 && ask->boards > 0 && ask->boards <= RP_DP_BOARDS_MAX &&
                      ask->share_most > 0 && ask->share_most <= ask->boards;
    if (!fits || !(ask->steady >= 0) || !(ask->fill >= 0) || isinf(ask->steady) ||
        isinf(ask->fill)) {
        return rp_fail(RP_ERR_USAGE,
                       "cut: expected layers, 1 to %u boards, as many of a stage at most, and "
                       "weights of 0 or more; found %u, %u, %u, %g, %g",
                       RP_DP_BOARDS_MAX, ask->layers, ask->boards, ask->share_most, ask->steady,
                       ask->fill);
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
    RP_TRY(check(ask));
    s.stages = most_stages(ask);
    const size_t groups = (size_t)ask->boards * ask->share_most;
    RP_TRY(RP_ARENA_NEW(&arena, s.stages * groups * ask->layers, &s.table));
    if (look(&s, (double)INFINITY, false, out, &value)) {
        out->rounds = 1;
        out->is_exact = true;
        if (ask->fill > 0 || ask->turns_s) {
            sweep_all(&s, out);
        }
    }
fail:
    rp_arena_finish(&arena);
    return err;
}
