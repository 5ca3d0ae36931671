#include "planning/split_choice.h"

#include <math.h>
#include <string.h>

#include "planning/cost.h"
#include "planning/halves.h"
#include "planning/planfile.h"
#include "planning/some_boards.h"
#include "sched/split.h"

enum { ROUNDS = 600, SCHEDULE_BYTES = 400 };
static const double WORTH = 0.05; /* fraction of a step that a split must save */
static const double DIFFER = 1.5; /* least quotient of ratio_of() that counts as a difference */

/* An order of boards: first the forwards of all stages, which are whole stages if not split; then
 * the backwards of split stages, from the last to the first (sched/split.h). */
typedef struct {
    uint32_t stages, whole;
    uint32_t place[2 * RP_SPLIT_STAGES_MAX];
    double cost_s; /* seconds of the longest part of a step; infinite: impossible */
} order;

typedef struct {
    const rp_split_ask *ask;
    rp_arena arena;
    rp_runfile run; /* with pipefb and all boards */
    char schedule[SCHEDULE_BYTES];
    bool is_split;   /* the run's schedule is pipefb */
    bool fixed;      /* the run file names places: only the present order */
    bool given;      /* the run file says which stages are split */
    uint32_t rounds; /* most orders to examine by now */
    double *both[2]; /* [boards]: seconds of the whole model, forward and backward */
    int64_t start_ns;
    rp_split_answer *out;
} split;

/* ---- the run with another schedule ----------------------------------------------------------- */

static rp_err take_codecs(rp_arena *arena, const rp_runfile *run, rp_runfile *out) {
    rp_codec(*codec)[2];
    rp_err err = RP_OK;
    out->codec = NULL;
    if (!run->codec || run->codec_auto || run->stages < 2) {
        return RP_OK;
    }
    RP_TRY(RP_ARENA_NEW(arena, run->boards, &codec)); /* the codecs are equal at all boundaries */
    for (uint32_t k = 0; k < run->boards; k++) {
        memcpy(codec[k], run->codec[0], sizeof codec[k]);
    }
    out->codec = (const rp_codec(*)[2])codec;
fail:
    return err;
}

/* Sets a key with stages to none, unless it is auto, because its stages are not those of this
 * order. */
static rp_err leave_out(rp_arena *arena, rp_node *root, const char *key) {
    const rp_node *node = rp_node_find(root, key);
    const bool is_auto =
        !node || (rp_node_is_scalar(node) && strcmp(rp_node_text(node), "auto") == 0);
    char set[32];
    (void)snprintf(set, sizeof set, "%s=none", key);
    return is_auto ? RP_OK : rp_config_set(arena, root, set);
}

/* The run with another schedule. errors USAGE: other keys do not fit the schedule */
static rp_err with_schedule(rp_arena *arena, const rp_runfile *run, const char *schedule,
                            rp_runfile *out) {
    char set[SCHEDULE_BYTES + 16];
    char *text;
    rp_err err;
    *out = *run;
    (void)snprintf(set, sizeof set, "schedule=%s", schedule);
    RP_TRY(rp_config_text(arena, run->root, &text));
    RP_TRY(rp_config_read_text(arena, text, strlen(text), "the run file", &out->root));
    RP_TRY(rp_config_set(arena, out->root, set));
    RP_TRY(rp_method_parse(out->root, run->boards, &out->method));
    RP_TRY(rp_optim_parse(&out->optim, rp_node_find(out->root, "optimizer")));
    out->optim.anchor = run->optim.anchor;
    out->stages = rp_method_stages(&out->method, run->boards);
    const rp_node *node = rp_node_find(out->root, "schedule");
    RP_TRY(rp_method_fit(&out->method, &out->optim, node));
    RP_TRY(rp_method_fit_model(&out->method, run->model, node));
    RP_TRY(take_codecs(arena, run, out));
    out->sizes = (rp_sizes){0};
    out->plan.share = 1;
fail:
    return err;
}

/* ---- what an order costs --------------------------------------------------------------------- */

static bool is_over(const split *s) {
    const rp_split_ask *ask = s->ask;
    const bool late =
        ask->limit_ns > 0 && rp_clock_now_ns(ask->clock) - s->start_ns >= ask->limit_ns;
    return late || s->out->tried >= s->rounds;
}

static uint32_t count_of(const order *of) {
    return rp_sched_split_nodes(of->stages, of->whole);
}

/* Makes the ring of an order, and its best cut. */
static rp_err cut_order(rp_arena *arena, const split *s, const order *of, rp_runfile *run,
                        rp_profile *profile, const char ***names, rp_cut *cut, double *longest_s) {
    rp_err err;
    RP_TRY(rp_some_boards(arena, &s->run, s->ask->profile, of->place, count_of(of), run, profile,
                          names));
    run->stages = of->stages;
    run->method.whole = of->whole;
    run->method.split_count = of->whole ? of->stages : 0;
    RP_TRY(rp_halves_cut(arena, run, profile, cut, longest_s));
fail:
    return err;
}

static rp_err price_order(split *s, order *of) {
    rp_runfile run;
    rp_profile profile;
    const char **names;
    rp_arena arena;
    rp_cut cut;
    rp_arena_init(&arena, "split", 0);
    const rp_err err = cut_order(&arena, s, of, &run, &profile, &names, &cut, &of->cost_s);
    of->cost_s = err == RP_OK ? of->cost_s : (double)INFINITY;
    rp_arena_finish(&arena);
    s->out->tried++;
    return err == RP_ERR_USAGE ? RP_OK : err; /* it does not fit into the memory */
}

/* ---- which boards ---------------------------------------------------------------------------- */

/* The unused board with the largest ratio of backward to forward, or with the fastest backward. */
static uint32_t pick_board(const split *s, const bool *used, bool by_ratio) {
    uint32_t best = s->run.boards;
    double most = 0;
    for (uint32_t k = 0; k < s->run.boards; k++) {
        const double forward = fmax(s->both[0][k], 1e-12);
        const double backward = fmax(s->both[1][k], 1e-12);
        const double own = by_ratio ? backward / forward : 1 / backward;
        if (!used[k] && (best == s->run.boards || own > most)) {
            best = k;
            most = own;
        }
    }
    return best;
}

static rp_err make_first_order(split *s, uint32_t stages, uint32_t whole, order *out) {
    bool used[RP_JOINT_BOARDS_MAX] = {false};
    *out = (order){.stages = stages, .whole = whole};
    for (uint32_t k = 0; k < 2 * stages; k++) {
        const bool forward = k < stages;
        const uint32_t stage = forward ? k : k - stages;
        if (!forward || rp_sched_is_split(whole, stage)) {
            const uint32_t at = forward ? k : rp_sched_split_backward(stages, whole, stage);
            out->place[at] = pick_board(s, used, forward);
            used[out->place[at]] = true;
        }
    }
    return price_order(s, out);
}

/* Exchanges the board at `i` with the one at place `to`, which may be outside the order. */
static order exchange_boards(const order *of, uint32_t i, uint32_t to) {
    order out = *of;
    for (uint32_t k = 0; k < count_of(of); k++) {
        out.place[k] = of->place[k] == to ? of->place[i] : of->place[k];
    }
    out.place[i] = to;
    return out;
}

/* Splits stage `to` instead of stage `from`, with the same backward board. */
static order move_split(const order *of, uint32_t from, uint32_t to) {
    order out = *of;
    out.whole ^= UINT32_C(1) << from | UINT32_C(1) << to;
    for (uint32_t k = 0; k < of->stages; k++) {
        const uint32_t had = k == to ? from : k;
        if (rp_sched_is_split(out.whole, k)) {
            out.place[rp_sched_split_backward(of->stages, out.whole, k)] =
                of->place[rp_sched_split_backward(of->stages, of->whole, had)];
        }
    }
    return out;
}

static rp_err keep_better(split *s, order *other, order *best, bool *any) {
    const rp_err err = price_order(s, other);
    if (err == RP_OK && other->cost_s < best->cost_s) {
        *best = *other;
        *any = true;
    }
    return err;
}

/* Tries to split other stages, if some are whole and the run file does not say which. */
static rp_err try_splits(split *s, order *best, bool *any) {
    rp_err err = RP_OK;
    for (uint32_t from = 0; from < best->stages && !s->given; from++) {
        for (uint32_t to = 0; to < best->stages && !is_over(s); to++) {
            if (rp_sched_is_split(best->whole, from) && !rp_sched_is_split(best->whole, to)) {
                order other = move_split(best, from, to);
                RP_TRY(keep_better(s, &other, best, any));
            }
        }
    }
fail:
    return err;
}

/* Exchanges boards and moves splits while that gains. */
static rp_err improve_order(split *s, order *best) {
    bool any = true;
    rp_err err = RP_OK;
    while (any && !is_over(s)) {
        any = false;
        RP_TRY(try_splits(s, best, &any));
        for (uint32_t i = 0; i < count_of(best); i++) {
            for (uint32_t to = 0; to < s->run.boards && !is_over(s); to++) {
                order other = exchange_boards(best, i, to);
                RP_TRY(to == best->place[i] ? RP_OK : keep_better(s, &other, best, &any));
            }
        }
    }
fail:
    return err;
}

/* ---- replays --------------------------------------------------------------------------------- */

static double find_longest(const double *times, uint32_t count) {
    double most = 0;
    for (uint32_t k = 0; k < count; k++) {
        most = fmax(most, times[k]);
    }
    return most;
}

/* False: a stash occupies its wire longer than any board computes; `why` says so. */
static bool stash_keeps_up(split *s, const rp_split_times *times, const char *const *names) {
    const double work = fmax(find_longest(times->forward, times->stages),
                             find_longest(times->backward, times->stages));
    for (uint32_t k = 0; k < times->stages; k++) {
        if (times->stash[k] > work) {
            (void)snprintf(
                s->out->why, sizeof s->out->why,
                "the stash of stage %u would occupy the wire from %.60s to %.60s for %.4g "
                "ms a step, and no board computes longer than %.4g ms",
                k, names[k], names[rp_sched_split_backward(times->stages, times->whole, k)],
                1e3 * times->stash[k], 1e3 * work);
            return false;
        }
    }
    return true;
}

/* Predicts a step of the run, whose `ahead` is set. */
static rp_err predict_step(rp_arena *arena, rp_runfile *run, const rp_profile *profile,
                           const char **names, const rp_cut *cut, double delay_s, double *step_s) {
    const rp_planfile chosen = {.run = run, .cut = cut, .board = names, .profile = profile};
    rp_prediction found;
    rp_plan *plan;
    rp_err err;
    RP_TRY(rp_planfile_make(arena, &chosen, &plan));
    RP_TRY(rp_predict(arena, run, profile, plan, delay_s, &found));
    *step_s = found.step_s;
fail:
    return err;
}

static void keep_best(split *s, const order *of, const rp_cut *cut, const uint16_t *ahead,
                      double step_s) {
    rp_split_answer *out = s->out;
    if (out->is_allowed && step_s >= out->step_s) {
        return;
    }
    out->is_allowed = true;
    out->step_s = step_s;
    out->stages = of->stages;
    out->whole = of->whole;
    out->count = count_of(of);
    memcpy(out->place, of->place, sizeof out->place);
    memcpy(out->first, cut->first, (of->stages + 1) * sizeof *out->first);
    memcpy(out->ahead, ahead, of->stages * sizeof *ahead);
}

/* Replays an order with the smallest `ahead` that blocks nothing. `*step_s`: infinite if it is
 * impossible. */
static rp_err try_order(split *s, const order *of, bool may_be_kept, double *step_s) {
    rp_runfile run;
    rp_profile profile;
    const char **names;
    rp_split_times times;
    rp_cut cut;
    rp_err err;
    *step_s = (double)INFINITY;
    RP_TRY(cut_order(&s->arena, s, of, &run, &profile, &names, &cut, NULL));
    RP_TRY(rp_halves_times(&s->arena, &run, &profile, &cut, s->ask->delay_s, &times));
    rp_sched_split_ahead(&times, RP_AHEAD_MAX, run.method.ahead);
    run.method.ahead_count = of->stages;
    RP_TRY(predict_step(&s->arena, &run, &profile, names, &cut, s->ask->delay_s, step_s));
    if (may_be_kept && stash_keeps_up(s, &times, names)) {
        keep_best(s, of, &cut, run.method.ahead, *step_s);
    }
fail:
    if (err == RP_ERR_USAGE && !s->out->is_allowed) {
        (void)snprintf(s->out->why, sizeof s->out->why, "%s", rp_err_message());
    }
    return err == RP_ERR_USAGE || err == RP_ERR_FAULT ? RP_OK : err;
}

/* ---- why ------------------------------------------------------------------------------------- */

static double ratio_of(const split *s, uint32_t place) {
    return s->both[1][place] / fmax(s->both[0][place], 1e-12);
}

static rp_err find_without(split *s, bool with_limits, double *step_s) {
    rp_runfile run;
    rp_joint_answer answer;
    rp_profile profile = *s->ask->profile;
    rp_err err;
    *step_s = (double)INFINITY;
    RP_TRY(with_schedule(&s->arena, s->ask->run, "pipedream", &run));
    if (!with_limits) {
        run.memory = (rp_memories){0};
        RP_TRY(RP_ARENA_NEW(&s->arena, profile.board_count, &profile.board));
        memcpy(profile.board, s->ask->profile->board, profile.board_count * sizeof *profile.board);
        for (uint32_t k = 0; k < profile.board_count; k++) {
            profile.board[k].memory_bytes = 0;
        }
    }
    const rp_joint_ask ask = {.run = &run,
                              .profile = &profile,
                              .delay_s = s->ask->delay_s,
                              .boards_open = true,
                              .cuts_open = true,
                              .share_most = 1,
                              .clock = s->ask->clock,
                              .limit_ns = s->ask->limit_ns};
    RP_TRY(rp_joint_search(&ask, &answer));
    *step_s = answer.is_known && answer.count > 0 ? answer.plan[0].step_s : (double)INFINITY;
fail:
    return err == RP_ERR_USAGE ? RP_OK : err; /* no plan without a split fits into the memory */
}

/* The forward board with the largest ratio of backward to forward, and the backward board with the
 * smallest. */
static void find_apart(const split *s, uint32_t *slow, uint32_t *fast) {
    const rp_split_answer *out = s->out;
    bool any = false;
    for (uint32_t k = 0; k < out->stages; k++) {
        const uint32_t near = out->place[k];
        const uint32_t far = out->place[rp_sched_split_backward(out->stages, out->whole, k)];
        if (rp_sched_is_split(out->whole, k)) {
            *slow = !any || ratio_of(s, near) > ratio_of(s, *slow) ? near : *slow;
            *fast = !any || ratio_of(s, far) < ratio_of(s, *fast) ? far : *fast;
            any = true;
        }
    }
}

static const char *name_of(const split *s, uint32_t place) {
    return rp_profile_board_at(s->ask->profile, place)->name;
}

static rp_err write_reason(split *s) {
    rp_split_answer *out = s->out;
    uint32_t slow = 0;
    uint32_t fast = 0;
    double unlimited_s;
    rp_err err = RP_OK;
    find_apart(s, &slow, &fast);
    const double apart = ratio_of(s, slow) / fmax(ratio_of(s, fast), 1e-12);
    if (apart >= DIFFER || !out->pays) {
        (void)snprintf(out->why, sizeof out->why,
                       "backwards take board %.60s %.3g times as long as forwards, and board %.60s "
                       "%.3g times",
                       name_of(s, slow), ratio_of(s, slow), name_of(s, fast), ratio_of(s, fast));
        return RP_OK;
    }
    RP_TRY(find_without(s, false, &unlimited_s));
    if (unlimited_s < (1 - WORTH) * out->without_s) {
        (void)snprintf(out->why, sizeof out->why,
                       "a board with forwards only needs little memory: without memory limits the "
                       "best plan found that splits no stage takes %.4g s",
                       unlimited_s);
    } else {
        (void)snprintf(out->why, sizeof out->why, "split stages divide these layers more evenly");
    }
fail:
    return err;
}

/* ---- the search ------------------------------------------------------------------------------ */

static rp_err sum_boards(split *s) {
    const rp_runfile *run = &s->run;
    rp_err err = RP_OK;
    for (uint32_t back = 0; back < 2; back++) {
        RP_TRY(RP_ARENA_NEW(&s->arena, run->boards, &s->both[back]));
        for (uint32_t k = 0; k < run->boards; k++) {
            s->both[back][k] = rp_cost_op_s(run, s->ask->profile, k, 0, run->model->layer_count,
                                            back ? RP_OP_BACKWARD : RP_OP_FORWARD, run->micro);
        }
    }
fail:
    return err;
}

static order present_order(const split *s) {
    const rp_method *method = &s->ask->run->method;
    order out = {.stages = s->run.boards / 2};
    if (s->given) {
        out = (order){.stages = method->split_count, .whole = method->whole};
    }
    for (uint32_t k = 0; k < count_of(&out); k++) {
        out.place[k] = k;
    }
    return out;
}

static rp_err search_order(split *s, uint32_t stages, uint32_t whole) {
    order best;
    double step_s;
    rp_err err = RP_OK;
    if (stages > s->run.model->layer_count || stages > RP_SPLIT_STAGES_MAX || is_over(s)) {
        return RP_OK;
    }
    RP_TRY(make_first_order(s, stages, whole, &best));
    RP_TRY(improve_order(s, &best));
    RP_TRY(isfinite(best.cost_s) ? try_order(s, &best, true, &step_s) : RP_OK);
fail:
    return err;
}

/* Tries every number of stages at which all boards have work and some have a whole stage; at first
 * the last stages are whole. */
static rp_err search_some(split *s) {
    const uint32_t boards = s->run.boards;
    const uint32_t most = boards - 1 < RP_SPLIT_STAGES_MAX ? boards - 1 : RP_SPLIT_STAGES_MAX;
    rp_err err = RP_OK;
    for (uint32_t stages = boards / 2 + 1; stages <= most; stages++) {
        const uint32_t splits = boards - stages;
        const uint32_t all = UINT32_MAX >> (RP_SPLIT_STAGES_MAX - stages);
        RP_TRY(search_order(s, stages, all & ~((UINT32_C(1) << splits) - 1)));
    }
fail:
    return err;
}

static rp_err search_splits(split *s) {
    const uint32_t boards = s->run.boards;
    const uint32_t layers = s->run.model->layer_count;
    const uint32_t rounds = s->ask->rounds > 0 ? s->ask->rounds : ROUNDS;
    const order now = present_order(s);
    double step_s;
    rp_err err = RP_OK;
    s->rounds = rounds;
    if (count_of(&now) == boards && now.stages <= layers && now.stages <= RP_SPLIT_STAGES_MAX) {
        RP_TRY(try_order(s, &now, true, &step_s));
        s->out->now_s = s->is_split && isfinite(step_s) ? step_s : 0;
    }
    if (s->given && !s->fixed) {
        return search_order(s, now.stages, now.whole);
    }
    for (uint32_t stages = boards / 2; stages > 0 && !s->fixed; stages--) {
        RP_TRY(search_order(s, stages, 0));
    }
    s->rounds += rounds;
    RP_TRY(s->fixed ? RP_OK : search_some(s));
fail:
    return err;
}

/* No key of the run file names places, and every board was measured. */
static bool places_are_free(const rp_split_ask *ask) {
    bool all = ask->run->hops.count == 0;
    for (uint32_t k = 0; all && k < ask->run->boards; k++) {
        all = k < ask->profile->board_count && rp_profile_board_at(ask->profile, k)->known;
    }
    return all;
}

static bool can_choose(const rp_runfile *run) {
    return run->boards > 1 && run->boards <= RP_JOINT_BOARDS_MAX && run->cut_auto &&
           run->method.chunks == 1 &&
           (!run->codec || run->codec_auto || rp_codecs_are_alike(run->codec, run->stages));
}

/* The schedule of the run file, without `ahead` and the stages that are split. */
static rp_err write_schedule(split *s) {
    rp_method method = s->ask->run->method;
    method.ahead_count = method.split_count = method.whole = 0;
    if (s->is_split) {
        return rp_method_write(&method, s->schedule, sizeof s->schedule);
    }
    (void)snprintf(s->schedule, sizeof s->schedule, "{kind: pipefb}");
    return RP_OK;
}

static rp_err choose_split(split *s) {
    rp_split_answer *out = s->out;
    rp_err err;
    s->is_split = s->ask->run->method.kind->splits;
    RP_TRY(write_schedule(s));
    RP_TRY(with_schedule(&s->arena, s->ask->run, s->schedule, &s->run));
    RP_TRY(leave_out(&s->arena, s->run.root, "offload")); /* they name the run's stages */
    RP_TRY(leave_out(&s->arena, s->run.root, "recompute"));
    s->fixed = !places_are_free(s->ask);
    s->given = s->ask->run->method.split_count > 0;
    RP_TRY(sum_boards(s));
    RP_TRY(search_splits(s));
    out->is_known = true;
    if (!out->is_allowed) {
        return RP_OK;
    }
    out->without_s = s->ask->without_s;
    RP_TRY(out->without_s > 0 ? RP_OK : find_without(s, true, &out->without_s));
    out->pays = out->step_s < (1 - WORTH) * out->without_s;
    RP_TRY(write_reason(s));
fail:
    if (err == RP_ERR_USAGE) {
        (void)snprintf(out->why, sizeof out->why, "%s", rp_err_message());
    }
    return err == RP_ERR_USAGE ? RP_OK : err;
}

rp_err rp_split_choose(const rp_split_ask *ask, rp_split_answer *out) {
    split s = {.ask = ask, .start_ns = ask->clock ? rp_clock_now_ns(ask->clock) : 0, .out = out};
    rp_err err;
    *out = (rp_split_answer){0};
    if (!can_choose(ask->run)) {
        return RP_OK;
    }
    if (ask->limit_ns > 0 && !ask->clock) {
        return rp_fail(RP_ERR_USAGE, "plan: a time limit needs a clock");
    }
    rp_arena_init(&s.arena, "split", 0);
    err = choose_split(&s);
    rp_arena_finish(&s.arena);
    return err;
}

/* ---- text for people ------------------------------------------------------------------------- */

static void print_halves(FILE *file, const rp_split_answer *answer, const char *const *name) {
    for (uint32_t k = 0; k < answer->stages; k++) {
        const uint32_t far = rp_sched_split_backward(answer->stages, answer->whole, k);
        (void)fprintf(file, "%s%s", k ? ", " : "", name[answer->place[k]]);
        if (far != k) {
            (void)fprintf(file, " + %s", name[answer->place[far]]);
        }
    }
}

void rp_split_say(FILE *file, const rp_split_answer *answer, const char *const *name) {
    if (!answer->is_known) {
        return;
    }
    if (!answer->is_allowed) {
        (void)fprintf(
            file, "A split of forwards and backwards over boards (pipefb) is not possible: %s.\n",
            answer->why);
        return;
    }
    (void)fprintf(file, "A split of forwards and backwards over boards (pipefb) %s: ",
                  answer->pays ? "pays" : "does not pay");
    if (isfinite(answer->without_s)) {
        (void)fprintf(file, "%.4g s a step instead of %.4g by pipedream's best plan, x%.2f",
                      answer->step_s, answer->without_s, answer->without_s / answer->step_s);
    } else {
        (void)fprintf(file, "%.4g s a step, and no plan of pipedream fits into the memory",
                      answer->step_s);
    }
    (void)fprintf(file, ", %s %s.\n", answer->pays ? "because" : "where", answer->why);
    if (answer->pays || (answer->now_s > 0 && answer->step_s < (1 - WORTH) * answer->now_s)) {
        (void)fprintf(file, "Forward + backward of the stages, in order%s: ",
                      answer->whole ? ", one board where a stage is not split" : "");
        print_halves(file, answer, name);
        if (answer->now_s > 0) {
            (void)fprintf(file, "; in their present order %.4g s", answer->now_s);
        }
        (void)fprintf(file, ". Its gradients are older: man ringpipe-schedule, pipefb.\n");
    }
}
