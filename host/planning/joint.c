#include "planning/joint_own.h"

#include <math.h>

#include "planning/cost.h"
#include "run/setup.h"

enum { ROUNDS = 600, MICROS = 3 };

static rp_err sum_costs(rp_arena *arena, rp_joint *j) {
    const rp_runfile *run = j->ask->run;
    rp_setup setup = rp_setup_of(run);
    rp_runfile encoded;
    rp_err err;
    if (j->ask->codecs_open) {
        RP_TRY(RP_ARENA_NEW(arena, run->boards, &j->strong));
        for (uint32_t i = 0; i < 2 * run->boards; i++) {
            j->strong[i / 2][i % 2] = rp_cost_strongest(run, i % 2);
        }
        setup.codec = (const rp_codec(*)[2])j->strong;
        setup.codec_stages = run->boards;
    }
    rp_setup_run(run, &setup, &encoded);
    j->medium = rp_cost_common_medium(run);
    RP_TRY(RP_ARENA_NEW(arena, j->layers, &j->bytes));
    RP_TRY(rp_least_memory_open(arena, run, run->boards, &j->memory));
    RP_TRY(rp_sums_open(arena, run, j->ask->profile, &j->sums));
    RP_TRY(RP_ARENA_NEW(arena, (size_t)j->layers + 1, &j->statistics));
    for (uint32_t i = 0; i < j->layers; i++) {
        j->statistics[i + 1] =
            j->statistics[i] + (rp_model_param_count(run->model, RP_PARAM_STATE, i, i + 1) > 0);
    }
    RP_TRY(RP_ARENA_NEW(arena, run->boards, &j->limit));
    for (uint32_t k = 0; k < run->boards; k++) {
        j->limit[k] = (double)rp_least_memory_limit(run, j->ask->profile, k);
    }
    for (uint32_t i = 1; i < j->layers; i++) {
        j->bytes[i] = rp_cost_boundary_bytes(&encoded, i);
    }
fail:
    return err;
}

static bool can_plan(const rp_runfile *run) {
    return run->boards > 1 && run->boards <= RP_JOINT_BOARDS_MAX && run->cut_auto &&
           rp_method_is_row(&run->method) && run->model->layer_count >= run->boards;
}

/* No key of the run file names places, and every board was measured. */
static bool boards_may_change(const rp_joint *j) {
    const rp_runfile *run = j->ask->run;
    bool all = j->ask->boards_open && run->hops.count == 0 && !run->sizes.by_stage &&
               (!run->codec || run->codec_auto || rp_codecs_are_alike(run->codec, run->stages));
    for (uint32_t k = 0; all && k < run->boards; k++) {
        all = k < j->ask->profile->board_count && rp_profile_board_at(j->ask->profile, k)->known;
    }
    return all;
}

static rp_err refuse_memory(const rp_joint *j) {
    const uint32_t boards = j->ask->run->boards;
    double most = 0;
    double all = 0;
    for (uint32_t k = 0; k < boards; k++) {
        const double own = (double)rp_least_memory_limit(j->ask->run, j->ask->profile, k);
        most = own > most ? own : most;
        all += own;
    }
    const double mib = 1 << 20;
    return rp_fail(RP_ERR_USAGE,
                   "plan: no cut over these %u boards fits into their memory: weights, gradients "
                   "and optimiser states of all layers take %.4g MiB, and the first stage also "
                   "keeps the stashes of %u microbatches of %u samples; the boards have %.4g MiB, "
                   "the largest %.4g MiB (ring.memory_mb). Expected a smaller model or "
                   "train.microbatch, or more memory",
                   boards, j->memory.weights[j->layers] / mib, j->memory.in_flight[boards - 1],
                   j->ask->run->micro, all / mib, most / mib);
}

static rp_err replay_kept(rp_joint *j, bool shared, uint32_t boards) {
    rp_err err = RP_OK;
    for (uint32_t i = 0; i < j->kept[shared].count && (i == 0 || !rp_joint_is_over(j)); i++) {
        rp_joint_plan *plan = &j->kept[shared].plan[i];
        if (!rp_joint_is_ring(plan, boards)) {
            RP_TRY(rp_joint_replay(j, plan));
            rp_joint_list(j->out, plan);
        }
    }
fail:
    return err;
}

static rp_err search_plans(rp_arena *arena, rp_joint *j) {
    rp_joint_answer *out = j->out;
    rp_joint_plan now = {.count = j->ask->run->boards, .stages = j->ask->run->boards};
    bool dp_fits = false;
    rp_err err;
    for (uint32_t k = 0; k < now.count; k++) {
        now.place[k] = k;
    }
    RP_TRY(sum_costs(arena, j));
    RP_TRY(rp_joint_cut_as_it_is(arena, j, &now, &dp_fits));
    RP_TRY(j->ask->cuts_open ? rp_joint_search_near(j, now.count) : RP_OK);
    const bool open = boards_may_change(j);
    RP_TRY(open ? rp_joint_search_rings(j, &now) : RP_OK);
    RP_TRY(j->ask->share_most > 1 ? rp_joint_share_rings(j, &now) : RP_OK);
    RP_TRY(replay_kept(j, false, now.count));
    RP_TRY(replay_kept(j, true, now.count));
    RP_TRY(j->ask->cuts_open ? rp_joint_search_near_shares(j) : RP_OK);
    rp_joint_prefer_matched(out, now.count);
    if (out->count == 0) { /* if some cut fits, the replay says why */
        err = dp_fits ? RP_OK : refuse_memory(j);
        goto fail;
    }
    RP_TRY(rp_joint_search_sizes(j));
    RP_TRY(rp_joint_search_codecs(j));
    RP_TRY(rp_joint_search_schedules(j));
    out->bound_s = rp_joint_bound_s(j);
    out->with_micro = j->ask->run->micro;
    RP_TRY(rp_joint_find_micro(j));
    out->is_known = true;
fail:
    return err;
}

static rp_err search_once(const rp_joint_ask *ask, int64_t start_ns, rp_joint_answer *out) {
    rp_joint *j;
    rp_arena arena;
    rp_err err;
    rp_arena_init(&arena, "joint", 0);
    RP_TRY(RP_ARENA_NEW(&arena, 1, &j));
    *out = (rp_joint_answer){.is_complete = true};
    *j = (rp_joint){.ask = ask,
                    .layers = ask->run->model->layer_count,
                    .micros = (ask->run->batch - 1) / ask->run->micro + 1,
                    .rounds = ask->rounds > 0 ? ask->rounds : ROUNDS,
                    .start_ns = start_ns,
                    .out = out};
    RP_TRY(search_plans(&arena, j));
fail:
    rp_arena_finish(&arena);
    return err;
}

/* Repeats the search with a faster microbatch. One that needs too much memory is no answer. */
static rp_err search_micros(const rp_joint_ask *ask, int64_t start_ns, rp_joint_answer *out) {
    rp_setup setup = rp_setup_of(ask->run);
    rp_runfile run;
    rp_joint_ask next_ask = *ask;
    rp_joint_answer next;
    rp_err err = RP_OK;
    next_ask.run = &run;
    for (uint32_t i = 0; i < MICROS && out->is_known && out->is_complete &&
                         out->micro_step_s < (1 - RP_JOINT_WORTH) * out->plan[0].step_s;
         i++) {
        setup.micro = out->micro;
        rp_setup_run(ask->run, &setup, &run);
        err = search_once(&next_ask, start_ns, &next);
        if (err == RP_ERR_USAGE) {
            return RP_OK;
        }
        if (err != RP_OK || !next.is_known || !(next.plan[0].step_s < out->plan[0].step_s)) {
            return err;
        }
        next.tried += out->tried;
        next.replays += out->replays;
        *out = next;
    }
    return err;
}

/* The run with a stage for each board, whatever the number of stages now. Its codecs are for the
 * present stages, so open ones are dropped. */
static void make_row_run(const rp_joint_ask *ask, rp_runfile *out) {
    rp_setup setup = rp_setup_of(ask->run);
    setup.stages = rp_method_stages(&ask->run->method, setup.boards);
    if (ask->codecs_open) {
        setup.codec = NULL;
        setup.codec_stages = 0;
    }
    rp_setup_run(ask->run, &setup, out);
}

rp_err rp_joint_search(const rp_joint_ask *said, rp_joint_answer *out) {
    rp_runfile run;
    rp_joint_ask own = *said;
    const rp_joint_ask *ask = &own;
    const int64_t start_ns = ask->clock ? rp_clock_now_ns(ask->clock) : 0;
    rp_err err;
    make_row_run(said, &run);
    own.run = &run;
    *out = (rp_joint_answer){.is_complete = true};
    if (!can_plan(ask->run)) {
        return RP_OK;
    }
    if (ask->limit_ns > 0 && !ask->clock) {
        return rp_fail(RP_ERR_USAGE, "plan: a time limit needs a clock");
    }
    RP_TRY(search_once(ask, start_ns, out));
    RP_TRY(ask->micro_open ? search_micros(ask, start_ns, out) : RP_OK);
fail:
    return err;
}
