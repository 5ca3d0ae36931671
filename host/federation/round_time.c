#include "federation/round_time.h"

#include <math.h>

#include "federation/site_files.h"
#include "planning/cost.h"
#include "planning/planfile.h"
#include "planning/predict.h"

/* Seconds of a round on local boards without its steps, measured on two x86 cores with two boards
 * and warm caches. With `cut: auto` the boards are profiled as well. */
static const double START_S = 0.8, START_AUTO_S = 2.3;
/* Latency of a wire that was neither measured nor emulated. */
static const double DELAY_S = 1e-4;

double rp_round_time_s(const rp_round_time *time) {
    return time->start_s + time->down_s + (double)time->steps * time->step_s + time->up_s;
}

/* ---- a step ---------------------------------------------------------------------------------- */

/* Names of the boards in the ring's order; local boards are named by their places. */
static rp_err list_names(rp_arena *arena, const rp_runfile *run, const char ***out) {
    const char **name;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(arena, (size_t)run->boards + 1, &name));
    for (uint32_t k = 0; k < run->boards; k++) {
        char *place;
        RP_TRY(rp_arena_printf(arena, &place, "%u", k));
        name[k] = run->roster ? run->roster[k].name : place;
    }
    *out = name;
fail:
    return err;
}

/* A profile of boards on which every op takes the time of `op_s`. */
static rp_err make_even_profile(rp_arena *arena, const rp_runfile *run, const double op_s[2],
                                rp_profile *out) {
    const uint32_t layers = run->model->layer_count;
    double *seconds;
    rp_err err;
    RP_TRY(rp_profile_open(arena, run, run->boards, out));
    RP_TRY(RP_ARENA_NEW(arena, 2 * (size_t)layers + 1, &seconds));
    for (uint32_t i = 0; i < layers; i++) {
        seconds[2 * (size_t)i] = op_s[0];
        seconds[2 * (size_t)i + 1] = op_s[1];
    }
    for (uint32_t k = 0; k < run->boards; k++) {
        RP_TRY(rp_profile_take(arena, out, k, seconds, 2 * (size_t)layers));
    }
fail:
    return err;
}

static rp_err find_profile(rp_arena *arena, const rp_runfile *run, const rp_round_costs *costs,
                           const char *const *name, rp_profile *out) {
    rp_err err;
    if (!costs->profile) {
        return make_even_profile(arena, run, costs->op_s, out);
    }
    RP_TRY(rp_profile_read(arena, costs->profile, run, out));
    rp_profile_place(out, name, run->boards);
fail:
    return err;
}

static rp_err predict_step(rp_arena *arena, const rp_runfile *run, const rp_round_costs *costs,
                           double *out) {
    rp_prediction found;
    rp_profile profile;
    const char **name;
    rp_plan *plan;
    rp_cut cut = run->cut;
    rp_err err;
    RP_TRY(list_names(arena, run, &name));
    RP_TRY(find_profile(arena, run, costs, name, &profile));
    RP_TRY(run->cut_auto ? rp_cost_choose_cut_by_board(arena, run, &profile, &cut) : RP_OK);
    const rp_planfile chosen = {.run = run, .cut = &cut, .board = name, .profile = &profile};
    RP_TRY(rp_planfile_make(arena, &chosen, &plan));
    RP_TRY(rp_predict(arena, run, &profile, plan, DELAY_S, &found));
    *out = found.step_s;
fail:
    return err;
}

/* The time of a step in the ring of `run`. `own`: it is that of one site. */
static rp_err find_step(const rp_runfile *run, bool own, const rp_round_costs *costs, double *out) {
    const bool has_profile = costs->profile && (!own || costs->has_all_sites);
    const rp_round_costs used = {.profile = has_profile ? costs->profile : NULL,
                                 .op_s = {costs->op_s[0], costs->op_s[1]}};
    rp_arena arena;
    rp_err err = RP_OK;
    *out = (double)NAN;
    if (!own && costs->planned_step_s > 0) {
        *out = costs->planned_step_s;
    } else if (has_profile || costs->op_s[0] > 0 || rp_throttles_any(&run->throttle)) {
        rp_arena_init(&arena, "step", 0);
        err = predict_step(&arena, run, &used, out);
        rp_arena_finish(&arena);
    }
    return err;
}

/* ---- a round --------------------------------------------------------------------------------- */

/* Seconds for `bytes` over a line; NAN: its rate is unknown. */
static double line_s(const rp_runfile *run, uint32_t from, uint32_t to, uint64_t bytes) {
    const rp_link_profile line = rp_link_profile_of(&run->link, &run->hops, from, to);
    const double rate_mbit = rp_link_profile_rate_mbit(&line);
    return run->emulate && rate_mbit > 0
               ? rp_link_profile_delay_ms(&line) * 1e-3 + (double)bytes * 8e-6 / rate_mbit
               : (double)NAN;
}

/* What all sites in one ring have in common. */
static rp_err find_ring(const rp_runfile *run, bool own, const rp_federation_cost *cost,
                        const rp_round_costs *costs, rp_round_time *out) {
    *out = (rp_round_time){.batch = run->batch,
                           .start_s = run->cut_auto ? START_AUTO_S : START_S,
                           .down_s = line_s(run, RP_LINK_HOST, 0, cost->weights_bytes),
                           .up_s = line_s(run, 0, RP_LINK_HOST, cost->update_bytes)};
    return find_step(run, own, costs, &out->step_s);
}

static void count_steps(const rp_federated_keys *keys, uint32_t held, rp_round_time *out) {
    const uint64_t epoch = ((uint64_t)held + out->batch - 1) / out->batch;
    const uint64_t rest = keys->steps > 0 && epoch > 0 ? keys->steps % epoch * out->batch : 0;
    const uint64_t epochs = keys->steps > 0 && epoch > 0 ? keys->steps / epoch : keys->epochs;
    out->steps = keys->steps > 0 ? keys->steps : keys->epochs * epoch;
    out->samples = epochs * held + (rest < held ? rest : held);
}

static rp_err find_own(const rp_node *file, const rp_federation_cost *cost,
                       const rp_round_costs *costs, rp_round_time *out) {
    rp_arena arena;
    rp_runfile own = {0};
    rp_err err;
    rp_arena_init(&arena, "site", 0);
    RP_TRY(rp_runfile_read(&arena, rp_node_text(file), NULL, 0, &own));
    err = find_ring(&own, true, cost, costs, out);
fail:
    rp_runfile_close(&own);
    rp_arena_finish(&arena);
    return err;
}

rp_err rp_round_times(rp_arena *arena, const rp_runfile *run, const rp_split_list *list,
                      const rp_federation_cost *cost, const rp_round_costs *costs,
                      rp_round_time **out) {
    rp_round_time shared;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(arena, (size_t)list->sites + 1, out));
    RP_TRY(find_ring(run, false, cost, costs, &shared));
    for (uint32_t i = 0; i < list->sites; i++) {
        const rp_node *file = rp_site_files_find(&run->federated, list->site[i].name);
        (*out)[i] = shared;
        RP_TRY(file ? find_own(file, cost, costs, &(*out)[i]) : RP_OK);
        count_steps(&run->federated, list->site[i].train_count, &(*out)[i]);
    }
fail:
    return err;
}

/* ---- many of them ---------------------------------------------------------------------------- */

double rp_round_length_s(const rp_round_time *time, uint32_t count, uint32_t at_once) {
    double free_s[RP_FEDERATED_AT_ONCE_MAX] = {0};
    double end_s = 0;
    RP_ASSERT(at_once > 0 && at_once <= RP_FEDERATED_AT_ONCE_MAX);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t first = 0;
        for (uint32_t k = 1; k < at_once; k++) {
            first = free_s[k] < free_s[first] ? k : first;
        }
        free_s[first] += rp_round_time_s(&time[i]);
        if (!isfinite(free_s[first])) {
            return (double)NAN;
        }
        end_s = free_s[first] > end_s ? free_s[first] : end_s;
    }
    return end_s;
}

/* An unknown time counts as longer than any known one. */
static bool is_longer(const rp_round_time *left, const rp_round_time *right) {
    const double a = rp_round_time_s(left);
    const double b = rp_round_time_s(right);
    return isfinite(b) && !(isfinite(a) && a <= b);
}

void rp_round_keep_longest(rp_round_time *time, uint32_t count, uint32_t size) {
    for (uint32_t left = count; left > size; left--) {
        uint32_t shortest = 0;
        for (uint32_t i = 1; i < left; i++) {
            shortest = is_longer(&time[shortest], &time[i]) ? i : shortest;
        }
        for (uint32_t i = shortest; i + 1 < left; i++) {
            time[i] = time[i + 1];
        }
    }
}

rp_err rp_round_predict(rp_arena *arena, const rp_runfile *run, const rp_federation_cost *cost,
                        const rp_round_costs *costs, rp_round_forecast *out) {
    rp_split_list list;
    rp_round_time *time;
    uint32_t longest = 0;
    rp_err err;
    RP_TRY(rp_split_file_read(arena, run->federated.split, &list));
    RP_TRY(rp_round_times(arena, run, &list, cost, costs, &time));
    for (uint32_t i = 1; i < list.sites; i++) {
        longest = is_longer(&time[i], &time[longest]) ? i : longest;
    }
    *out = (rp_round_forecast){.site = list.site[longest].name,
                               .time = time[longest],
                               .at_most = cost->members < list.sites};
    rp_round_keep_longest(time, list.sites, cost->members);
    out->round_s = rp_round_length_s(time, cost->members, run->federated.at_once);
fail:
    return err;
}
