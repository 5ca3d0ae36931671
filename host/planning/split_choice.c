#include "planning/split_choice.h"

#include <math.h>
#include <string.h>

#include "planning/cost.h"
#include "planning/halves.h"
#include "planning/planfile.h"
#include "planning/some_boards.h"
#include "sched/split.h"

enum { ROUNDS = 600, SCHEDULE_BYTES = 400 };
static const double WORTH = 0.05; /* of a step: less is no reason */
static const double DIFFER = 1.5; /* ratios of backward to forward: less is alike */

/* An order of boards: forwards of the stages, and all else of those that are not split; then
 * backwards, of the last stage that is split to the first (sched/split.h). */
typedef struct {
    uint32_t stages, whole;
    uint32_t place[2 * RP_SPLIT_STAGES_MAX];
    double cost_s; /* what all others wait for, of a step; infinite: it can not be */
} order;

typedef struct {
    const rp_split_ask *ask;
    rp_arena arena;
    rp_runfile run; /* of pipefb, all boards */
    char schedule[SCHEDULE_BYTES];
    bool is_split;   /* the run's own schedule is pipefb */
    bool fixed;      /* places mean something: only the ring as it is */
    bool given;      /* the run says which stages are split */
    uint32_t rounds; /* orders that may have been looked at by now */
    double *both[2]; /* [boards]: of the whole net, forward and backward */
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
    RP_TRY(RP_ARENA_NEW(arena, run->boards, &codec)); /* alike at all boundaries */
    for (uint32_t k = 0; k < run->boards; k++) {
        memcpy(codec[k], run->codec[0], sizeof codec[k]);
    }
    out->codec = (const rp_codec(*)[2])codec;
fail:
    return err;
}

/* What names stages, or means all of them: of some others nothing is known. */
static rp_err leave_out(rp_arena *arena, rp_node *root, const char *key) {
    const rp_node *node = rp_node_find(root, key);
    const bool is_auto =
        !node || (rp_node_is_scalar(node) && strcmp(rp_node_text(node), "auto") == 0);
    char set[32];
    (void)snprintf(set, sizeof set, "%s=none", key);
    return is_auto ? RP_OK : rp_config_set(arena, root, set);
}

/* errors  USAGE: the run's other keys do not go with it */
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

/* The ring of an order, and its cut. */
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

static rp_err price(split *s, order *of) {
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
    return err == RP_ERR_USAGE ? RP_OK : err; /* it does not fit */
}

/* ---- which boards ---------------------------------------------------------------------------- */

/* The one that is left with most of: backward beside forward, or speed backward. */
static uint32_t pick(const split *s, const bool *used, bool by_ratio) {
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

static rp_err begin(split *s, uint32_t stages, uint32_t whole, order *out) {
    bool used[RP_JOINT_BOARDS_MAX] = {false};
    *out = (order){.stages = stages, .whole = whole};
    for (uint32_t k = 0; k < 2 * stages;
         k++) { /* forwards alone, then backwards of stage 0 first */
        const bool forward = k < stages;
        const uint32_t stage = forward ? k : k - stages;
        if (!forward || rp_sched_is_split(whole, stage)) {
            const uint32_t at = forward ? k : rp_sched_split_backward(stages, whole, stage);
            out->place[at] = pick(s, used, forward);
            used[out->place[at]] = true;
        }
    }
    return price(s, out);
}

/* Board at `i` of the order and the one at place `to`, which is of the order or is not. */
static order exchanged(const order *of, uint32_t i, uint32_t to) {
    order out = *of;
    for (uint32_t k = 0; k < count_of(of); k++) {
        out.place[k] = of->place[k] == to ? of->place[i] : of->place[k];
    }
    out.place[i] = to;
    return out;
}

/* Another stage is split in place of stage `from`, and gets its backward board. */
static order moved(const order *of, uint32_t from, uint32_t to) {
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

static rp_err take_better(split *s, order *other, order *best, bool *any) {
    const rp_err err = price(s, other);
    if (err == RP_OK && other->cost_s < best->cost_s) {
        *best = *other;
        *any = true;
    }
    return err;
}

/* Where some stages are split: others of them. */
static rp_err move_splits(split *s, order *best, bool *any) {
    rp_err err = RP_OK;
    for (uint32_t from = 0; from < best->stages && !s->given; from++) {
        for (uint32_t to = 0; to < best->stages && !is_over(s); to++) {
            if (rp_sched_is_split(best->whole, from) && !rp_sched_is_split(best->whole, to)) {
                order other = moved(best, from, to);
                RP_TRY(take_better(s, &other, best, any));
            }
        }
    }
fail:
    return err;
}

/* As long as an exchange of two boards gains. */
static rp_err improve(split *s, order *best) {
    bool any = true;
    rp_err err = RP_OK;
    while (any && !is_over(s)) {
        any = false;
        RP_TRY(move_splits(s, best, &any));
        for (uint32_t i = 0; i < count_of(best); i++) {
            for (uint32_t to = 0; to < s->run.boards && !is_over(s); to++) {
                order other = exchanged(best, i, to);
                RP_TRY(to == best->place[i] ? RP_OK : take_better(s, &other, best, &any));
            }
        }
    }
fail:
    return err;
}

/* ---- replays --------------------------------------------------------------------------------- */

static double longest(const double *times, uint32_t count) {
    double most = 0;
    for (uint32_t k = 0; k < count; k++) {
        most = fmax(most, times[k]);
    }
    return most;
}

/* False: some stash takes longer on its wire than any board computes; said in `why`. */
static bool stash_keeps_up(split *s, const rp_split_times *times, const char *const *names) {
    const double work =
        fmax(longest(times->forward, times->stages), longest(times->backward, times->stages));
    for (uint32_t k = 0; k < times->stages; k++) {
        if (times->stash[k] > work) {
            (void)snprintf(s->out->why, sizeof s->out->why,
                           "what stage %u leaves for its backward would take %.4g ms a step on the "
                           "wire from %.60s to %.60s, and no board computes longer than %.4g ms",
                           k, 1e3 * times->stash[k], names[k],
                           names[rp_sched_split_backward(times->stages, times->whole, k)],
                           1e3 * work);
            return false;
        }
    }
    return true;
}

/* With the fewest steps ahead that hold up nothing. */
static rp_err replay(rp_arena *arena, rp_runfile *run, const rp_profile *profile,
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

static void keep(split *s, const order *of, const rp_cut *cut, const uint16_t *ahead,
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

/* `*step_s`: infinite where it can not be. */
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
    RP_TRY(replay(&s->arena, &run, &profile, names, &cut, s->ask->delay_s, step_s));
    if (may_be_kept && stash_keeps_up(s, &times, names)) {
        keep(s, of, &cut, run.method.ahead, *step_s);
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
    return err == RP_ERR_USAGE ? RP_OK : err; /* nothing without a split fits */
}

/* The forward board whose backward is slowest, against the backward board where it is fastest. */
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

static rp_err say_why(split *s) {
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
                       "a board with forwards only needs little memory: of the plans without a "
                       "split that were looked at the best takes %.4g s where memory is enough",
                       unlimited_s);
    } else {
        (void)snprintf(out->why, sizeof out->why, "stages of these layers come out more even");
    }
fail:
    return err;
}

/* ---- all ------------------------------------------------------------------------------------- */

static rp_err measure_boards(split *s) {
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

static order as_it_is(const split *s) {
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
    RP_TRY(begin(s, stages, whole, &best));
    RP_TRY(improve(s, &best));
    RP_TRY(isfinite(best.cost_s) ? try_order(s, &best, true, &step_s) : RP_OK);
fail:
    return err;
}

/* Every board has something to do, and some stages have two: the last ones are whole to begin with.
 */
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

static rp_err search(split *s) {
    const uint32_t boards = s->run.boards;
    const uint32_t layers = s->run.model->layer_count;
    const uint32_t rounds = s->ask->rounds > 0 ? s->ask->rounds : ROUNDS;
    const order now = as_it_is(s);
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

/* A place means nothing in the run file, and every board was measured. */
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

/* As the run file has it, but for the steps ahead. */
static rp_err write_schedule(split *s) {
    rp_method method = s->ask->run->method;
    method.ahead_count = method.split_count = method.whole = 0;
    if (s->is_split) {
        return rp_method_write(&method, s->schedule, sizeof s->schedule);
    }
    (void)snprintf(s->schedule, sizeof s->schedule, "{kind: pipefb}");
    return RP_OK;
}

static rp_err choose(split *s) {
    rp_split_answer *out = s->out;
    rp_err err;
    s->is_split = s->ask->run->method.kind->splits;
    RP_TRY(write_schedule(s));
    RP_TRY(with_schedule(&s->arena, s->ask->run, s->schedule, &s->run));
    RP_TRY(leave_out(&s->arena, s->run.root, "offload")); /* stages are others */
    RP_TRY(leave_out(&s->arena, s->run.root, "recompute"));
    s->fixed = !places_are_free(s->ask);
    s->given = s->ask->run->method.split_count > 0;
    RP_TRY(measure_boards(s));
    RP_TRY(search(s));
    out->is_known = true;
    if (!out->is_allowed) {
        return RP_OK;
    }
    out->without_s = s->ask->without_s;
    RP_TRY(out->without_s > 0 ? RP_OK : find_without(s, true, &out->without_s));
    out->pays = out->step_s < (1 - WORTH) * out->without_s;
    RP_TRY(say_why(s));
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
        return rp_fail(RP_ERR_USAGE, "plan: a limit of time needs a clock");
    }
    rp_arena_init(&s.arena, "split", 0);
    err = choose(&s);
    rp_arena_finish(&s.arena);
    return err;
}

/* ---- for people ------------------------------------------------------------------------------ */

static void put_halves(FILE *file, const rp_split_answer *answer, const char *const *name) {
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
        (void)fprintf(file,
                      "A split of forwards and backwards over boards (pipefb) can not be: %s.\n",
                      answer->why);
        return;
    }
    (void)fprintf(file, "A split of forwards and backwards over boards (pipefb) %s: ",
                  answer->pays ? "pays" : "does not pay");
    if (isfinite(answer->without_s)) {
        (void)fprintf(file, "%.4g s a step in place of %.4g by pipedream's best plan, x%.2f",
                      answer->step_s, answer->without_s, answer->without_s / answer->step_s);
    } else {
        (void)fprintf(file, "%.4g s a step, and no plan of pipedream fits into the memory",
                      answer->step_s);
    }
    (void)fprintf(file, ", %s %s.\n", answer->pays ? "because" : "where", answer->why);
    if (answer->pays || (answer->now_s > 0 && answer->step_s < (1 - WORTH) * answer->now_s)) {
        (void)fprintf(file, "Forward + backward of the stages, in order%s: ",
                      answer->whole ? ", one board where a stage is not split" : "");
        put_halves(file, answer, name);
        if (answer->now_s > 0) {
            (void)fprintf(file, "; as the boards stand %.4g s", answer->now_s);
        }
        (void)fprintf(file, ". Its gradients are older: man ringpipe-run, pipefb.\n");
    }
}
