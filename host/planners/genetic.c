#include "planners/genetic.h"

#include <math.h>
#include <stdio.h>

#include "base/rng.h"
#include "planners/genome_cache.h"

enum { POPULATION = 100, TOURNAMENT = 3, KEPT = 2, GENERATIONS = 500, PATIENCE = 150 };

/* Random words of a stream, drawn in blocks: a search draws some thousand words a generation. */
typedef struct {
    rp_rng stream;
    uint64_t block;
    uint32_t word[4], left;
} dice;

typedef struct {
    rp_search *search;
    const rp_genetic *by;
    rp_genome_cache cache;
    dice dice;
    uint32_t count;       /* of the population */
    rp_genome *genome[2]; /* [count]: this generation, the next one */
    double *value;        /* [count] */
    uint32_t *place;      /* [count]: in `cache` */
    rp_genome *fresh;     /* [count]: genomes to evaluate */
    double *fresh_value;  /* [count] */
    rp_genome simple[3];  /* first genomes of every round */
} evolution;

static uint32_t draw_word(dice *d) {
    if (d->left == 0) {
        rp_rng_block(&d->stream, d->block++, d->word);
        d->left = 4;
    }
    return d->word[--d->left];
}

/* Random number in [0, n). For n below 100, probabilities differ by at most 1e-7. */
static uint32_t draw_below(dice *d, uint32_t n) {
    return (uint32_t)((uint64_t)draw_word(d) * n >> 32);
}

static bool draw_chance(dice *d, double p) {
    return draw_word(d) < (uint32_t)(p * 0xffffffffu);
}

/* ---- evaluation ------------------------------------------------------------------------------ */

static void evaluate_generation(evolution *e) {
    const rp_genome *genome = e->genome[0];
    uint32_t fresh = 0;
    rp_genome_cache_make_room(&e->cache, e->count);
    for (uint32_t i = 0; i < e->count; i++) {
        bool is_new;
        e->place[i] = rp_genome_cache_place(&e->cache, &genome[i], &is_new);
        if (is_new) {
            e->cache.value[e->place[i]] = fresh; /* index in `fresh` until it is evaluated */
            e->fresh[fresh++] = genome[i];
        }
    }
    e->by->makespans(e->by->context, e->fresh, fresh, e->fresh_value);
    e->search->answer->evaluations += fresh;
    for (uint32_t i = 0; i < fresh; i++) {
        bool is_new;
        const uint32_t place = rp_genome_cache_place(&e->cache, &e->fresh[i], &is_new);
        e->cache.value[place] = e->fresh_value[i];
        rp_search_keep(e->search, &e->fresh[i], e->fresh_value[i]);
    }
    for (uint32_t i = 0; i < e->count; i++) {
        e->value[i] = e->cache.value[e->place[i]];
    }
}

static bool is_better(const evolution *e, uint32_t a, uint32_t b) {
    if (e->value[a] < e->value[b] * (1 - RP_SEARCH_ALIKE)) {
        return true;
    }
    return a < b && !(e->value[b] < e->value[a] * (1 - RP_SEARCH_ALIKE));
}

/* The best genome except `other`. */
static uint32_t find_best(const evolution *e, uint32_t other) {
    uint32_t best = other == 0;
    for (uint32_t i = best + 1; i < e->count; i++) {
        if (i != other && is_better(e, i, best)) {
            best = i;
        }
    }
    return best;
}

/* ---- generations ----------------------------------------------------------------------------- */

static void draw_genome(evolution *e, rp_genome *out) {
    const rp_tables *t = &e->search->tables;
    *out = (rp_genome){0};
    for (int way = 0; way < RP_WAYS; way++) {
        for (uint32_t k = 0; k < t->stages; k++) {
            out->gene[way][k] = (uint8_t)draw_below(&e->dice, t->size_count);
        }
    }
}

static void fill_first(evolution *e) {
    const uint32_t sizes = e->search->tables.size_count;
    for (uint32_t i = 0; i < e->count; i++) {
        if (i < 3) {
            e->genome[0][i] = e->simple[i];
        } else if (i < 3 + sizes) {
            e->genome[0][i] = rp_problem_even(e->search->tables.problem, (uint8_t)(i - 3));
        } else {
            draw_genome(e, &e->genome[0][i]);
        }
        rp_problem_hold(e->search->tables.problem, &e->genome[0][i]);
    }
}

static uint32_t hold_tournament(evolution *e) {
    uint32_t best = draw_below(&e->dice, e->count);
    for (uint32_t i = 1; i < TOURNAMENT; i++) {
        const uint32_t other = draw_below(&e->dice, e->count);
        best = is_better(e, other, best) ? other : best;
    }
    return best;
}

static void cross_chromosome(evolution *e, uint8_t *child, const uint8_t *other) {
    const uint32_t stages = e->search->tables.stages;
    if (!draw_chance(&e->dice, 0.8)) {
        return;
    }
    for (uint32_t first = 0; first < stages; first += 32) {
        const uint32_t bits = draw_word(&e->dice);
        for (uint32_t k = first; k < stages && k < first + 32; k++) {
            child[k] = bits >> (k - first) & 1 ? other[k] : child[k];
        }
    }
}

static uint8_t change_gene(evolution *e, uint8_t gene) {
    const uint32_t sizes = e->search->tables.size_count;
    if (!draw_chance(&e->dice, 0.8)) {
        return (uint8_t)draw_below(&e->dice, sizes);
    }
    if (gene == 0 || (gene + 1u < sizes && draw_below(&e->dice, 2))) {
        return (uint8_t)(gene + (sizes > 1));
    }
    return (uint8_t)(gene - 1);
}

static void mutate_chromosome(evolution *e, uint8_t *child) {
    const uint32_t stages = e->search->tables.stages;
    const uint32_t below = 65536 / stages; /* two genes for each random word */
    for (uint32_t k = 0; k < stages; k += 2) {
        const uint32_t word = draw_word(&e->dice);
        if (stages == 1 || (word & 0xffff) < below) {
            child[k] = change_gene(e, child[k]);
        }
        if (k + 1 < stages && word >> 16 < below) {
            child[k + 1] = change_gene(e, child[k + 1]);
        }
    }
}

static void breed_generation(evolution *e, uint32_t best) {
    rp_genome *next = e->genome[1];
    next[0] = e->genome[0][best];
    next[1] = e->genome[0][find_best(e, best)];
    for (uint32_t i = KEPT; i < e->count; i++) {
        const rp_genome *other = &e->genome[0][hold_tournament(e)];
        next[i] = e->genome[0][hold_tournament(e)];
        for (int way = 0; way < RP_WAYS; way++) {
            cross_chromosome(e, next[i].gene[way], other->gene[way]);
            mutate_chromosome(e, next[i].gene[way]);
        }
        rp_problem_hold(e->search->tables.problem, &next[i]);
    }
    e->genome[1] = e->genome[0];
    e->genome[0] = next;
}

static void report_generation(const evolution *e, uint32_t round, uint32_t generation,
                              double best) {
    const rp_planner_ask *ask = e->search->ask;
    double sum = 0;
    uint32_t fits = 0;
    if (!ask->trace) {
        return;
    }
    for (uint32_t i = 0; i < e->count; i++) {
        sum += isfinite(e->value[i]) ? e->value[i] : 0;
        fits += isfinite(e->value[i]) != 0;
    }
    const rp_planner_trace trace = {round, generation, best, sum / fits};
    ask->trace(ask->context, &trace);
}

static void run_round(evolution *e, uint32_t round) {
    char name[40];
    double least = (double)INFINITY;
    uint32_t gained = 0;
    (void)snprintf(name, sizeof name, "planner/genetic/%u", round);
    e->dice = (dice){.stream = rp_rng_named(e->search->ask->seed, name)};
    fill_first(e);
    for (uint32_t generation = 0; generation < GENERATIONS; generation++) {
        evaluate_generation(e);
        const uint32_t best = find_best(e, e->count);
        report_generation(e, round, generation, e->value[best]);
        if (e->value[best] < least * (1 - RP_SEARCH_ALIKE)) {
            least = e->value[best];
            gained = generation;
        }
        if (generation - gained >= PATIENCE) {
            return;
        }
        breed_generation(e, best);
    }
}

static rp_err open_evolution(rp_search *s, const rp_genetic *by, evolution *out) {
    const uint32_t count = s->ask->population ? s->ask->population : POPULATION;
    rp_err err;
    *out = (evolution){.search = s, .by = by, .count = count};
    RP_TRY(rp_genome_cache_open(&s->arena, s->tables.stages, &out->cache));
    RP_TRY(RP_ARENA_NEW(&s->arena, count, &out->genome[0]));
    RP_TRY(RP_ARENA_NEW(&s->arena, count, &out->genome[1]));
    RP_TRY(RP_ARENA_NEW(&s->arena, count, &out->value));
    RP_TRY(RP_ARENA_NEW(&s->arena, count, &out->place));
    RP_TRY(RP_ARENA_NEW(&s->arena, count, &out->fresh));
    RP_TRY(RP_ARENA_NEW(&s->arena, count, &out->fresh_value));
    out->simple[0] = rp_simple_even(s);
    s->answer->even = s->answer->genome;
    s->answer->even_step_s = s->answer->step_s;
    out->simple[1] = rp_simple_greedy(s);
    RP_TRY(rp_simple_dp(s, &out->simple[2]));
fail:
    return err;
}

rp_err rp_genetic_search(rp_search *s, const rp_genetic *by) {
    evolution e;
    rp_err err;
    RP_TRY(open_evolution(s, by, &e));
    for (uint32_t round = 0; round < s->ask->rounds; round++) {
        run_round(&e, round);
    }
fail:
    return err;
}
