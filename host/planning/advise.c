#include "planning/advise.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "planning/balance.h"
#include "planning/cost.h"
#include "planning/planfile.h"

enum { ALL_BOARDS = 5, REPLAYS = 6, TRIED_MAX = 600, LEFT_SAID = 4 };
static const double WORTH = 0.05; /* of a step: less is not said */

/* The ring as it is, summed up: what the layers in front of one cost. */
typedef struct {
    const rp_runfile *run;
    const rp_profile *profile;
    double delay_s;
    uint32_t layers;
    double *pass[2];  /* [boards][layers + 1], seconds of the layers in front, on the board */
    double *flops[2]; /* [layers + 1], of one sample */
    double *bytes;    /* [layers]: that cross in front of it, one way; infinite: too much */
    rp_board_choice kept[REPLAYS]; /* the best by bound, rising; step_s is the bound */
    uint32_t kept_count, tried;
} advising;

/* A ring of these boards alone. */
typedef struct {
    const advising *of;
    const rp_board_choice *choice;
} candidate;

/* ---- a bound --------------------------------------------------------------------------------- */

static double compute_s(const advising *a, uint32_t place, uint32_t first, uint32_t end,
                        uint32_t back) {
    const size_t row = (size_t)place * (a->layers + 1);
    const double own = a->pass[back][row + end] - a->pass[back][row + first];
    const rp_throttled_op op = {
        .kind = back ? RP_OP_BACKWARD : RP_OP_FORWARD,
        .samples = a->run->micro,
        .micro = a->run->micro,
        .flops = {a->flops[0][end] - a->flops[0][first], a->flops[1][end] - a->flops[1][first]}};
    const double least = rp_throttle_s(rp_runfile_throttle_of(a->run, place), &op);
    return rp_profile_slower(a->profile, place) * (own > least ? own : least);
}

static double wire_s(const candidate *c, uint32_t stage, uint32_t layer) {
    const advising *a = c->of;
    const uint32_t near = c->choice->place[stage];
    const uint32_t far = c->choice->place[stage + 1];
    return rp_cost_wire_s(a->run, a->profile, near, far, a->bytes[layer]) +
           rp_cost_wire_s(a->run, a->profile, far, near, a->bytes[layer]);
}

static double stage_s(const void *context, uint32_t stage, uint32_t first, uint32_t end) {
    const candidate *c = context;
    const advising *a = c->of;
    const uint32_t place = c->choice->place[stage];
    double sum = compute_s(a, place, first, end, 0) + compute_s(a, place, first, end, 1);
    sum += first > 0 && stage > 0 ? wire_s(c, stage - 1, first) : 0;
    sum += end < a->layers && stage + 1 < c->choice->count ? wire_s(c, stage, end) : 0;
    return sum;
}

static rp_err cut_for(rp_arena *arena, const advising *a, const rp_board_choice *choice,
                      rp_cut *out) {
    const candidate of = {a, choice};
    return rp_balance(arena, stage_s, &of, a->layers, choice->count, out);
}

/* With a flush the pipe is filled in each step. *bound infinite: no cut is allowed. */
static rp_err bound_of(const advising *a, const rp_board_choice *choice, double *bound) {
    const uint32_t micros = (a->run->batch - 1) / a->run->micro + 1;
    const bool flushed = a->run->method.kind->flushed;
    const candidate of = {a, choice};
    double slowest = 0;
    double all = 0;
    rp_cut cut;
    rp_arena arena;
    rp_arena_init(&arena, "bound", 0);
    const rp_err err = cut_for(&arena, a, choice, &cut);
    for (uint32_t k = 0; err == RP_OK && k < choice->count; k++) {
        const double own = stage_s(&of, k, cut.first[k], cut.first[k + 1]);
        slowest = own > slowest ? own : slowest;
        all += own;
    }
    *bound = err == RP_OK ? slowest * (micros - flushed) + (flushed ? all : 0) : (double)INFINITY;
    rp_arena_finish(&arena);
    return err == RP_ERR_MEMORY ? err : RP_OK;
}

/* ---- choices --------------------------------------------------------------------------------- */

static bool has_same_boards(const rp_board_choice *a, const rp_board_choice *b) {
    uint64_t set[2] = {0, 0};
    for (uint32_t k = 0; k < a->count; k++) {
        set[0] |= UINT64_C(1) << a->place[k];
    }
    for (uint32_t k = 0; k < b->count; k++) {
        set[1] |= UINT64_C(1) << b->place[k];
    }
    return set[0] == set[1];
}

/* Of each set of boards the best order: else the last ones would be orders of one set. */
static void keep(advising *a, const rp_board_choice *choice) {
    uint32_t at = 0;
    while (at < a->kept_count && !has_same_boards(&a->kept[at], choice)) {
        at++;
    }
    if (at < a->kept_count && a->kept[at].step_s <= choice->step_s) {
        return;
    }
    if (at == a->kept_count) {
        a->kept_count += a->kept_count < REPLAYS;
        at = a->kept_count - 1;
        if (at + 1 == REPLAYS && a->kept[at].count > 0 && a->kept[at].step_s <= choice->step_s) {
            return;
        }
    }
    for (; at > 0 && a->kept[at - 1].step_s > choice->step_s; at--) {
        a->kept[at] = a->kept[at - 1];
    }
    a->kept[at] = *choice;
}

static rp_err try_choice(advising *a, rp_board_choice *choice) {
    rp_err err;
    a->tried++;
    RP_TRY(bound_of(a, choice, &choice->step_s));
    if (isfinite(choice->step_s)) {
        keep(a, choice);
    }
fail:
    return err;
}

/* Every order of every set that begins as `choice` does. */
static rp_err try_all(advising *a, rp_board_choice *choice, uint32_t used) {
    rp_err err = RP_OK;
    for (uint32_t k = 0; k < a->run->boards; k++) {
        if (used & 1u << k) {
            continue;
        }
        choice->place[choice->count++] = k;
        RP_TRY(try_choice(a, choice));
        RP_TRY(try_all(a, choice, used | 1u << k));
        choice->count--;
    }
fail:
    return err;
}

static rp_board_choice without(const rp_board_choice *choice, uint32_t at) {
    rp_board_choice fewer = *choice;
    fewer.count--;
    for (uint32_t k = at; k < fewer.count; k++) {
        fewer.place[k] = choice->place[k + 1];
    }
    return fewer;
}

static rp_err try_near(advising *a, const rp_board_choice *from, rp_board_choice *best) {
    rp_err err = RP_OK;
    for (uint32_t i = 0; i < from->count; i++) {
        for (uint32_t j = i; j < from->count && a->tried < TRIED_MAX; j++) {
            rp_board_choice other = *from;
            if (i == j && from->count > 1) {
                other = without(from, i);
            }
            if (i != j) {
                other.place[i] = from->place[j];
                other.place[j] = from->place[i];
            }
            RP_TRY(try_choice(a, &other));
            *best = other.step_s < best->step_s ? other : *best;
        }
    }
fail:
    return err;
}

static rp_err climb(advising *a, const rp_board_choice *now) {
    rp_board_choice best = *now;
    rp_board_choice from;
    rp_err err;
    RP_TRY(try_choice(a, &best));
    do {
        from = best;
        RP_TRY(try_near(a, &from, &best));
    } while (best.step_s < from.step_s && a->tried < TRIED_MAX);
fail:
    return err;
}

/* ---- a replay -------------------------------------------------------------------------------- */

/* The run and the profile as if only these boards were there. */
static rp_err run_of(rp_arena *arena, const advising *a, const rp_board_choice *choice,
                     rp_runfile *run, rp_profile *profile, const char ***names) {
    rp_roster_entry *roster;
    rp_err err;
    *run = *a->run;
    *profile = *a->profile;
    RP_TRY(RP_ARENA_NEW(arena, choice->count, &roster));
    RP_TRY(RP_ARENA_NEW(arena, choice->count, names));
    RP_TRY(RP_ARENA_NEW(arena, profile->board_count, &profile->place));
    for (uint32_t k = 0; k < choice->count; k++) {
        const uint32_t place = choice->place[k];
        char *own;
        RP_TRY(rp_arena_printf(arena, &own, "%u", place)); /* as ring.throttle names it */
        roster[k] = run->roster ? run->roster[place] : (rp_roster_entry){.name = own};
        (*names)[k] = roster[k].name;
        profile->place[k] = a->profile->place[place];
    }
    run->roster = roster;
    run->boards = run->stages = choice->count;
fail:
    return err;
}

/* The layers are few enough for a choice that can not be: it takes for ever. */
static rp_err replay(const advising *a, rp_board_choice *choice) {
    rp_runfile run;
    rp_profile profile;
    rp_prediction found = {0};
    const char **names;
    rp_plan *plan;
    rp_cut cut;
    rp_arena arena;
    rp_err err;
    rp_arena_init(&arena, "choice", 0);
    RP_TRY(run_of(&arena, a, choice, &run, &profile, &names));
    RP_TRY(cut_for(&arena, a, choice, &cut));
    const rp_planfile chosen = {.run = &run, .cut = &cut, .board = names};
    RP_TRY(rp_planfile_make(&arena, &chosen, &plan));
    RP_TRY(rp_predict(&arena, &run, &profile, plan, a->delay_s, &found));
    memcpy(choice->limits, found.limits, sizeof choice->limits);
fail:
    choice->step_s = err == RP_OK ? found.step_s : (double)INFINITY;
    rp_arena_finish(&arena);
    return err == RP_ERR_MEMORY ? err : RP_OK;
}

/* What a microbatch spends on each board of the ring as it is. */
static rp_err note_boards(rp_arena *arena, const advising *a, rp_board_advice *out) {
    const candidate of = {a, &out->now};
    rp_cut cut;
    const rp_err err = cut_for(arena, a, &out->now, &cut);
    for (uint32_t k = 0; err == RP_OK && k < out->now.count; k++) {
        out->micro_s[k] = stage_s(&of, k, cut.first[k], cut.first[k + 1]);
    }
    return err == RP_ERR_MEMORY ? err : RP_OK;
}

static rp_err replay_kept(advising *a, rp_board_advice *out) {
    rp_err err;
    RP_TRY(replay(a, &out->now));
    out->best = out->now;
    for (uint32_t i = 0; i < a->kept_count; i++) {
        RP_TRY(replay(a, &a->kept[i]));
        out->best = a->kept[i].step_s < out->best.step_s ? a->kept[i] : out->best;
    }
    out->next.step_s = (double)INFINITY;
    for (uint32_t i = 0; i < a->kept_count; i++) {
        const bool other = !has_same_boards(&a->kept[i], &out->best);
        out->next = other && a->kept[i].step_s < out->next.step_s ? a->kept[i] : out->next;
    }
    if (!has_same_boards(&out->now, &out->best) && out->now.step_s < out->next.step_s) {
        out->next = out->now;
    }
fail:
    return err;
}

/* ---- all ------------------------------------------------------------------------------------- */

static rp_err sum_up(rp_arena *arena, advising *a) {
    const rp_model *model = a->run->model;
    const size_t row = (size_t)a->layers + 1;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(arena, a->layers, &a->bytes));
    for (uint32_t back = 0; back < 2; back++) {
        RP_TRY(RP_ARENA_NEW(arena, row * a->run->boards, &a->pass[back]));
        RP_TRY(RP_ARENA_NEW(arena, row, &a->flops[back]));
    }
    for (uint32_t i = 0; i < a->layers; i++) {
        a->bytes[i] = i > 0 ? rp_cost_boundary_bytes(a->run, i) : 0;
        a->flops[0][i + 1] = a->flops[0][i] + rp_model_flops_forward(model, i, i + 1);
        a->flops[1][i + 1] = a->flops[1][i] + rp_model_flops_backward(model, i, i + 1);
        for (uint32_t at = 0; at < 2 * a->run->boards; at++) {
            double *sum = &a->pass[at % 2][at / 2 * row + i];
            sum[1] = sum[0] + rp_profile_pass_s(a->profile, at / 2, i, i + 1,
                                                at % 2 ? RP_MEASURED_BACKWARD : RP_MEASURED_FORWARD,
                                                a->run->micro);
        }
    }
fail:
    return err;
}

static bool can_advise(const rp_runfile *run, const rp_profile *profile) {
    bool all = run->boards > 1 && run->boards <= RP_ADVISE_BOARDS_MAX && run->cut_auto &&
               run->method.chunks == 1 && run->hops.count == 0 &&
               (!run->codec || rp_codecs_are_alike(run->codec, run->stages));
    for (uint32_t k = 0; all && k < run->boards; k++) {
        all = k < profile->board_count && rp_profile_board_at(profile, k)->known;
    }
    return all;
}

rp_err rp_advise_boards(rp_arena *arena, const rp_runfile *run, const rp_profile *profile,
                        double delay_s, rp_board_advice *out) {
    advising *a;
    rp_board_choice none = {0};
    rp_err err = RP_OK;
    *out = (rp_board_advice){0};
    if (!can_advise(run, profile)) {
        return RP_OK;
    }
    RP_TRY(RP_ARENA_NEW(arena, 1, &a));
    *a = (advising){
        .run = run, .profile = profile, .delay_s = delay_s, .layers = run->model->layer_count};
    RP_TRY(sum_up(arena, a));
    out->now.count = run->boards;
    for (uint32_t k = 0; k < run->boards; k++) {
        out->now.place[k] = k;
    }
    RP_TRY(run->boards <= ALL_BOARDS ? try_all(a, &none, 0) : climb(a, &out->now));
    RP_TRY(note_boards(arena, a, out));
    RP_TRY(replay_kept(a, out));
    out->tried = a->tried;
    out->is_known = isfinite(out->now.step_s);
fail:
    return err;
}

/* ---- in words -------------------------------------------------------------------------------- */

static void put_order(FILE *file, const rp_board_choice *choice, const char *const *name) {
    for (uint32_t k = 0; k < choice->count; k++) {
        (void)fprintf(file, "%s%s", k ? ", " : "", name[choice->place[k]]);
    }
}

/* "a microbatch is 0.2 s on board a, 0.1 s on board b". */
static void put_left(FILE *file, const rp_board_advice *advice, const char *const *name) {
    uint64_t stay = 0;
    uint32_t said = 0;
    for (uint32_t k = 0; k < advice->best.count; k++) {
        stay |= UINT64_C(1) << advice->best.place[k];
    }
    for (uint32_t k = 0; k < advice->now.count && said < LEFT_SAID; k++) {
        if (!(stay & UINT64_C(1) << k)) {
            (void)fprintf(file, "%s%.4g s on board %s", said++ ? ", " : "a microbatch is ",
                          advice->micro_s[k], name[k]);
        }
    }
}

static void put_next(FILE *file, const rp_board_advice *advice, const char *const *name) {
    const rp_board_choice *next = &advice->next;
    if (next->count > 0 && isfinite(next->step_s)) {
        (void)fprintf(file, "Next best, with other boards: ");
        put_order(file, next, name);
        (void)fprintf(file, ", %.4g s a step (%+.0f %%).\n", next->step_s,
                      100 * (next->step_s / advice->best.step_s - 1));
    }
}

void rp_advise_say(FILE *file, const rp_board_advice *advice, const char *const *name) {
    const rp_board_choice *now = &advice->now;
    const rp_board_choice *best = &advice->best;
    if (!advice->is_known) {
        return;
    }
    if (best->step_s > (1 - WORTH) * now->step_s) {
        (void)fprintf(file,
                      "No other order of these boards, and no fewer of them, saves %.0f %%.\n",
                      100 * WORTH);
    } else if (best->count < now->count) {
        (void)fprintf(file, "%u of %u boards are faster, %.4g s a step in place of %.4g, because ",
                      best->count, now->count, best->step_s, now->step_s);
        put_left(file, advice, name);
        (void)fprintf(file, ", and the others can do without.\nIn this order: ");
        put_order(file, best, name);
        (void)fprintf(file, "; then %s.\n", best->limits);
    } else {
        (void)fprintf(file,
                      "Another order is faster, %.4g s a step in place of %.4g: ", best->step_s,
                      now->step_s);
        put_order(file, best, name);
        (void)fprintf(file, "; then %s.\n", best->limits);
    }
    put_next(file, advice, name);
}
