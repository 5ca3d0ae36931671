/* Deterministic plans. All of them keep to the memory: a size is taken only if the stage and its
 * neighbours, with their smallest sizes, still fit. */
#include <math.h>

#include "planners/search.h"

rp_genome rp_simple_even(rp_search *s) {
    rp_genome best = rp_problem_even(s->tables.problem, 0);
    double least = (double)INFINITY;
    for (uint8_t size = 0; size < s->tables.size_count; size++) {
        const rp_genome even = rp_problem_even(s->tables.problem, size);
        const double step_s = rp_search_try(s, &even);
        if (step_s < least) {
            least = step_s;
            best = even;
        }
    }
    return best;
}

/* ---- greedy ---------------------------------------------------------------------------------- */

static uint32_t stage_at(const rp_search *s, rp_way way, uint32_t position) {
    return way == RP_WAY_FORWARD ? position : s->tables.stages - 1 - position;
}

/* The size fits, given the sizes of earlier stages in `genome`; later stages have the smallest
 * sizes. */
static bool is_allowed(const rp_search *s, rp_genome *genome, rp_way way, uint32_t stage,
                       uint8_t size) {
    const rp_problem *p = s->tables.problem;
    const uint8_t before = genome->gene[way][stage];
    bool allowed = p->held[stage] == RP_PLANNERS_FREE || p->held[stage] == size;
    genome->gene[way][stage] = size;
    for (uint32_t k = stage > 0 ? stage - 1 : 0; k <= stage + 1 && k < p->stages; k++) {
        allowed = allowed && rp_problem_fits_at(p, genome, k);
    }
    genome->gene[way][stage] = before;
    return allowed;
}

static void choose_greedily(rp_search *s, rp_way way, const double *start, double *end,
                            rp_genome *genome) {
    const rp_tables *t = &s->tables;
    double *in = s->room.arrival[0];
    double *out = s->room.arrival[1];
    uint8_t from = (uint8_t)(t->size_count - 1);
    in[0] = 0;
    for (uint32_t position = 0; position < t->stages; position++) {
        const uint32_t stage = stage_at(s, way, position);
        double least = (double)INFINITY;
        uint8_t best = genome->gene[way][stage];
        for (uint8_t size = 0; size < t->size_count; size++) {
            if (is_allowed(s, genome, way, stage, size)) {
                const double over =
                    rp_recurrence_stage(t, way, stage, from, size, in, start[stage], out);
                best = over < least ? size : best;
                least = over < least ? over : least;
            }
        }
        end[stage] = rp_recurrence_stage(t, way, stage, from, best, in, start[stage], out);
        genome->gene[way][stage] = from = best;
        double *other = in;
        in = out;
        out = other;
    }
}

rp_genome rp_simple_greedy(rp_search *s) {
    const double zero[RP_PLANNERS_STAGES_MAX] = {0};
    double over[RP_PLANNERS_STAGES_MAX];
    double end[RP_PLANNERS_STAGES_MAX];
    rp_genome out = rp_problem_even(s->tables.problem, 0);
    choose_greedily(s, RP_WAY_FORWARD, zero, over, &out);
    choose_greedily(s, RP_WAY_BACKWARD, over, end, &out);
    (void)rp_search_try(s, &out);
    return out;
}

/* ---- dynamic programming --------------------------------------------------------------------- */

/* The best sizes up to a stage with one size, and the arrivals at the next stage. */
typedef struct {
    rp_genome genome;
    double over; /* end of the stage; infinite: nothing fits */
    double end[RP_PLANNERS_STAGES_MAX];
    double *sent; /* [samples] */
} state;

static void extend_state(rp_search *s, rp_way way, uint32_t position, const state *before,
                         uint8_t size, const double *start, double *room, state *best) {
    const uint32_t stage = stage_at(s, way, position);
    const uint8_t whole = (uint8_t)(s->tables.size_count - 1);
    const uint8_t from =
        position > 0 ? before->genome.gene[way][stage_at(s, way, position - 1)] : whole;
    rp_genome genome = before->genome;
    if (isinf(before->over) || !is_allowed(s, &genome, way, stage, size)) {
        return;
    }
    const double over =
        rp_recurrence_stage(&s->tables, way, stage, from, size, before->sent, start[stage], room);
    if (over < best->over) {
        double *sent = best->sent;
        *best = *before;
        best->sent = sent;
        best->over = best->end[stage] = over;
        best->genome.gene[way][stage] = size;
        for (uint32_t i = 0; i < s->tables.count[size]; i++) {
            sent[i] = room[i];
        }
    }
}

/* `table`: [2][size_count]. Returns the best entry of the last stage. */
static const state *search_by_dp(rp_search *s, rp_way way, const rp_genome *genome,
                                 const double *start, state *table) {
    const uint32_t sizes = s->tables.size_count;
    state first = {.genome = *genome, .sent = s->room.arrival[0]};
    const state *best = NULL;
    first.sent[0] = 0;
    for (uint32_t position = 0; position < s->tables.stages; position++) {
        const state *before = position > 0 ? &table[(position - 1) % 2 * sizes] : &first;
        const uint32_t before_count = position > 0 ? sizes : 1;
        for (uint8_t size = 0; size < sizes; size++) {
            state *now = &table[position % 2 * sizes + size];
            now->over = (double)INFINITY;
            for (uint32_t i = 0; i < before_count; i++) {
                extend_state(s, way, position, &before[i], size, start, s->room.arrival[1], now);
            }
            if (position + 1 == s->tables.stages && (!best || now->over < best->over)) {
                best = now;
            }
        }
    }
    return best;
}

rp_err rp_simple_dp(rp_search *s, rp_genome *out) {
    const double zero[RP_PLANNERS_STAGES_MAX] = {0};
    double over[RP_PLANNERS_STAGES_MAX];
    state *table;
    rp_err err;
    *out = rp_problem_even(s->tables.problem, 0);
    RP_TRY(RP_ARENA_NEW(&s->arena, 2 * (size_t)s->tables.size_count, &table));
    for (uint32_t i = 0; i < 2 * s->tables.size_count; i++) {
        RP_TRY(RP_ARENA_NEW(&s->arena, s->tables.samples, &table[i].sent));
    }
    const state *best = search_by_dp(s, RP_WAY_FORWARD, out, zero, table);
    *out = best->genome;
    for (uint32_t k = 0; k < s->tables.stages; k++) {
        over[k] = best->end[k];
    }
    *out = search_by_dp(s, RP_WAY_BACKWARD, out, over, table)->genome;
    (void)rp_search_try(s, out);
fail:
    return err;
}
