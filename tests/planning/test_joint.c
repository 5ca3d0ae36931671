/* Boards, order and cut: never worse than the ring as it is, above the bound, within the memory. */
#include "open_run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "planning/joint.h"
#include "planning/planfile.h"

enum { BOARDS = 4, LAYERS = 8 };
static const char *const names[] = {"north", "east", "south", "west"};

static void read_run_of(const uint32_t *width, const char *more) {
    char text[1024];
    char out[16];
    size_t length = (size_t)snprintf(text, sizeof text, "input: data\nlayers:\n");
    for (uint32_t i = 0; i < LAYERS; i++) {
        (void)snprintf(out, sizeof out, "%u", width[i]);
        length += (size_t)snprintf(text + length, sizeof text - length,
                                   "  - {name: fc%u, kind: dense, out: %s}\n", i,
                                   i + 1 < LAYERS ? out : "classes");
    }
    write_file("model.yaml", text, length);
    (void)snprintf(text, sizeof text,
                   "model: %s/model.yaml\n"
                   "data: {set: glyphs, train: 64, test: 24, size: 12}\n"
                   "ring: {boards: %u}\n"
                   "train: {epochs: 2, batch: 16, microbatch: 2, seed: 1}\n"
                   "loss: cross-entropy\n"
                   "optimizer: {kind: sgd, lr: 0.1}\n"
                   "%s",
                   folder, BOARDS, more);
    expect_ok(rp_runfile_read(&arena, write_text("run.yaml", text), NULL, 0, &run));
}

static void read_even(const char *more) {
    static const uint32_t even[LAYERS] = {16, 16, 16, 16, 16, 16, 16, 16};
    read_run_of(even, more);
}

/* A board of a speed, layers of a cost, for any size in proportion and a little at once. */
static void take_board(rp_profile *profile, uint32_t board, const double *layer, double speed) {
    const size_t count = rp_measured_count(LAYERS, profile->size_count);
    double *values;
    expect_ok(RP_ARENA_NEW(&arena, count, &values));
    for (size_t s = 0; s < profile->size_count; s++) {
        for (size_t i = 0; i < LAYERS; i++) {
            for (size_t p = 0; p < RP_MEASURED_PASSES; p++) {
                double *at = &values[rp_measured_at(LAYERS, s, i, p)];
                at[0] = layer[i] / speed * (1 + profile->sizes[s]) * 1e-3 * (p == 1 ? 2 : 1);
                at[1] = 0.01;
            }
        }
    }
    expect_ok(rp_profile_take(&arena, profile, board, values, count));
}

static void open_profile(rp_profile *out) {
    expect_ok(rp_profile_open(&arena, &run, BOARDS, out));
    for (uint32_t k = 0; k < BOARDS; k++) {
        out->board[k].name = out->board[k].like = names[k];
        out->board[k].device = "a CPU";
        out->board[k].memory_bytes = 1u << 30;
    }
}

static void draw_profile(rp_rng *rng, rp_profile *out) {
    double layer[LAYERS];
    open_profile(out);
    for (uint32_t i = 0; i < LAYERS; i++) {
        layer[i] = 0.1 + rp_rng_uniform(rng);
    }
    for (uint32_t k = 0; k < BOARDS; k++) {
        take_board(out, k, layer, pow(8, rp_rng_uniform(rng)));
    }
    for (uint32_t from = 0; from < BOARDS; from++) {
        for (uint32_t to = 0; to < BOARDS; to++) {
            const double slow = pow(100, rp_rng_uniform(rng));
            const rp_curve_point trips[] = {{64, 1e-5, 0.1}, {1 << 20, 2e-3 * slow, 0.1}};
            if (from != to) {
                expect_ok(rp_profile_take_wire(out, from, to, trips, 2));
            }
        }
    }
}

static rp_joint_answer ask_for(const rp_profile *profile, bool open) {
    rp_joint_answer answer;
    const rp_joint_ask ask = {.run = &run, .profile = profile, .boards_open = open};
    expect_ok(rp_joint_search(&ask, &answer));
    return answer;
}

static void expect_sound(const rp_joint_answer *answer, bool open) {
    const rp_joint_plan *best = &answer->plan[0];
    assert_true(answer->is_known && answer->is_complete && answer->count > 0);
    assert_true(best->step_s <= answer->now.step_s &&
                best->step_s <= answer->alike.step_s * 1.0101);
    assert_true(answer->bound_s > 0 && answer->bound_s <= best->step_s);
    assert_true(answer->micro_step_s <= best->step_s);
    for (uint32_t i = 0; i < answer->count; i++) {
        const rp_joint_plan *plan = &answer->plan[i];
        uint32_t used = 0;
        assert_true(i < 2 || answer->plan[i - 1].step_s <= plan->step_s);
        assert_true(open || rp_joint_is_ring(plan, BOARDS));
        assert_true(plan->first[0] == 0 && plan->first[plan->count] == LAYERS);
        for (uint32_t k = 0; k < plan->count; k++) {
            assert_true(plan->first[k] < plan->first[k + 1]);
            assert_false(used >> plan->place[k] & 1);
            used |= 1u << plan->place[k];
        }
    }
}

static void it_is_never_worse(void **state) {
    (void)state;
    static const char *const schedules[] = {"gpipe", "1f1b", "pipedream"};
    rp_rng rng = rp_rng_named(9, "test/joint");
    uint32_t fewer = 0;
    uint32_t other = 0;
    for (uint32_t kind = 0; kind < 3; kind++) {
        char text[64];
        (void)snprintf(text, sizeof text, "schedule: %s\n", schedules[kind]);
        read_even(text);
        for (uint32_t trial = 0; trial < 12; trial++) {
            rp_profile profile;
            draw_profile(&rng, &profile);
            const rp_joint_answer closed = ask_for(&profile, false);
            const rp_joint_answer open = ask_for(&profile, true);
            const rp_joint_answer again = ask_for(&profile, true);
            expect_sound(&closed, false);
            expect_sound(&open, true);
            assert_true(open.plan[0].step_s <= closed.plan[0].step_s * 1.0101);
            assert_int_equal(open.tried, 64); /* orders of one board, of two, three and four */
            assert_int_equal(open.count, again.count);
            for (uint32_t i = 0; i < open.count; i++) {
                assert_true(open.plan[i].step_s == again.plan[i].step_s);
                assert_memory_equal(open.plan[i].place, again.plan[i].place,
                                    open.plan[i].count * sizeof *open.plan[i].place);
            }
            fewer += open.plan[0].count < BOARDS;
            other += !rp_joint_is_ring(&open.plan[0], BOARDS);
        }
        if (kind + 1 < 3) {
            rp_runfile_close(&run);
        }
    }
    assert_true(fewer > 0 && other > fewer);
}

static void even_profile(rp_profile *profile) {
    static const double layer[LAYERS] = {1, 1, 1, 1, 1, 1, 1, 1};
    open_profile(profile);
    for (uint32_t k = 0; k < BOARDS; k++) {
        take_board(profile, k, layer, 1);
    }
}

static void say(const rp_joint_answer *answer, char *text, size_t bytes) {
    FILE *file = fmemopen(text, bytes, "w");
    assert_non_null(file);
    rp_joint_say(file, answer, names);
    assert_int_equal(fclose(file), 0);
}

/* A board that holds up all the others is left out, with the reason; one that helps is not. */
static void boards_that_only_hold_up_are_left_out(void **state) {
    (void)state;
    rp_profile profile;
    char text[2048];
    read_even("schedule: gpipe\n");
    even_profile(&profile);
    rp_joint_answer answer = ask_for(&profile, true);
    assert_int_equal(answer.plan[0].count, BOARDS);
    say(&answer, text, sizeof text);
    assert_non_null(strstr(text, "No other order of these boards"));
    assert_non_null(strstr(text, "Next best, with other boards: "));
    assert_non_null(strstr(text, "No plan of these boards takes less than "));
    rp_profile_slow_down(&profile, 1, 50);
    answer = ask_for(&profile, true);
    assert_int_equal(answer.plan[0].count, 3);
    assert_true(answer.plan[0].step_s < answer.now.step_s / 5);
    say(&answer, text, sizeof text);
    assert_non_null(strstr(text, "3 of 4 boards are faster"));
    assert_non_null(strstr(text, "Left out: board east ("));
    assert_non_null(strstr(text, " s for a microbatch).\nIn this order: "));
    run.cut_auto = false; /* somebody has said what is where */
    assert_false(ask_for(&profile, true).is_known);
}

static void it_ends_by_its_limits(void **state) {
    (void)state;
    rp_profile profile;
    rp_joint_answer answer;
    rp_joint_ask ask = {.run = &run, .profile = &profile, .boards_open = true, .rounds = 3};
    read_even("schedule: 1f1b\n");
    even_profile(&profile);
    rp_profile_slow_down(&profile, 1, 50);
    expect_ok(rp_joint_search(&ask, &answer));
    assert_true(answer.is_known && !answer.is_complete && answer.count > 0);
    assert_int_equal(answer.tried, 3);
    ask.rounds = 0;
    ask.limit_ns = 1;
    assert_int_equal(rp_joint_search(&ask, &answer), RP_ERR_USAGE); /* no clock */
    const rp_clock stands = rp_clock_stepped(5);
    ask.clock = &stands;
    expect_ok(rp_joint_search(&ask, &answer));
    assert_true(answer.is_complete);
    const rp_clock runs = rp_clock_real();
    ask.clock = &runs;
    expect_ok(rp_joint_search(&ask, &answer)); /* a nanosecond has gone by */
    assert_true(answer.is_known && !answer.is_complete);
    assert_true(answer.plan[0].step_s <= answer.now.step_s);
}

static void memory_is_a_limit(void **state) {
    (void)state;
    rp_profile profile;
    rp_joint_answer answer;
    const rp_joint_ask ask = {.run = &run, .profile = &profile, .boards_open = true};
    read_even("schedule: gpipe\n");
    even_profile(&profile);
    profile.board[0].memory_bytes = 12 << 10; /* the first layer alone takes more: 144 * 16 * 8 */
    answer = ask_for(&profile, true);
    assert_true(answer.is_known);
    for (uint32_t i = 0; i < answer.count; i++) {
        assert_int_not_equal(answer.plan[i].place[0], 0);
    }
    for (uint32_t k = 0; k < BOARDS; k++) {
        profile.board[k].memory_bytes = 1 << 10;
    }
    assert_int_equal(rp_joint_search(&ask, &answer), RP_ERR_USAGE);
    assert_non_null(strstr(rp_err_message(), "fits into their memory"));
    for (uint32_t k = 0; k < BOARDS; k++) {
        profile.board[k].memory_bytes = 0; /* nobody knows */
    }
    assert_true(ask_for(&profile, true).is_known);
}

/* Sizes by stage and direction where the planner chooses them: the order of the plans is that with
 * them, and no plan that is sized is slower than with one size by more than the two models part. */
static void sizes_are_chosen_with_the_cut(void **state) {
    (void)state;
    static const double layer[LAYERS] = {1, 4, 1, 2, 1, 3, 1, 1};
    rp_profile profile;
    char text[2048];
    read_even("schedule: {kind: umpipe, planner: dgap}\n");
    open_profile(&profile);
    for (uint32_t k = 0; k < BOARDS; k++) {
        take_board(&profile, k, layer, 1 + k);
    }
    const rp_joint_answer answer = ask_for(&profile, false);
    uint32_t sized = 0;
    assert_true(answer.is_known && answer.count > 0);
    for (uint32_t i = 0; i < answer.count; i++) {
        const rp_joint_plan *plan = &answer.plan[i];
        assert_true(i == 0 || answer.plan[i - 1].step_s <= plan->step_s);
        sized += plan->even_s > 0;
        for (uint32_t k = 0; plan->even_s > 0 && k < plan->count; k++) {
            assert_true(plan->size[k][0] >= 1 && plan->size[k][0] <= run.batch);
            assert_true(plan->size[k][1] >= 1 && plan->size[k][1] <= run.batch);
        }
    }
    assert_true(sized > 0 && sized <= 3);
    assert_true(answer.plan[0].even_s > 0 && answer.plan[0].step_s < answer.plan[0].even_s);
    say(&answer, text, sizeof text);
    assert_non_null(strstr(text, "unequal sizes save "));
}

/* Microbatches of 1 are too small. */
static void the_microbatch_is_chosen_where_it_may_be(void **state) {
    (void)state;
    static const double layer[LAYERS] = {1, 1, 1, 1, 1, 1, 1, 1};
    rp_profile profile;
    rp_joint_answer fixed;
    rp_joint_answer open;
    rp_joint_ask ask = {.run = &run, .profile = &profile, .cuts_open = true};
    read_even("schedule: gpipe\n");
    run.micro = 1; /* a cost of each op, as of one sample more */
    open_profile(&profile);
    for (uint32_t k = 0; k < BOARDS; k++) {
        take_board(&profile, k, layer, 1);
    }
    expect_ok(rp_joint_search(&ask, &fixed));
    ask.micro_open = true;
    expect_ok(rp_joint_search(&ask, &open));
    assert_int_equal(fixed.with_micro, 1);
    assert_int_not_equal(fixed.micro, 1);
    assert_int_equal(open.with_micro, fixed.micro);
    assert_true(open.plan[0].step_s <= fixed.micro_step_s);
    assert_int_equal(run.micro, 1); /* the question is as it was */
}

/* Twice as many ops have to win 3 %: of sizes up to the run's own that are nearly as good
 * the largest is taken. */
static void a_smaller_microbatch_has_to_win(void **state) {
    (void)state;
    static const double layer[LAYERS] = {1, 1, 1, 1, 1, 1, 1, 1};
    uint32_t larger = 0;
    read_even("schedule: gpipe\n");
    for (uint32_t step = 0; step < 24; step++) {
        double step_s[4]; /* with microbatches of 1, 2, 4 and 8 */
        rp_profile profile;
        rp_joint_answer answer;
        rp_joint_ask ask = {.run = &run, .profile = &profile, .cuts_open = true};
        open_profile(&profile);
        for (uint32_t k = 0; k < BOARDS; k++) {
            take_board(&profile, k, layer, 1);
            profile.board[k].has_besides = true;
            profile.board[k].besides_s[RP_BESIDES_HANDLING] = step * 1e-3;
        }
        for (uint32_t power = 0; power < 4; power++) {
            run.micro = 1u << power;
            expect_ok(rp_joint_search(&ask, &answer));
            step_s[power] = answer.plan[0].step_s;
        }
        const uint32_t taken = (uint32_t)log2(answer.micro);
        bool is_least = true;
        for (uint32_t power = 0; power < 4; power++) {
            const double won = pow(1.03, (double)power - taken);
            assert_true(power <= taken || step_s[power] >= step_s[taken] * won * (1 - 1e-9));
            is_least &= step_s[power] >= step_s[taken] * (1 - 1e-9);
        }
        larger += !is_least;
    }
    assert_in_range(larger, 1, 23);
}

/* One layer takes nearly all; the second board is twice as fast as the others. */
static void open_one_heavy(rp_profile *profile) {
    static const double layer[LAYERS] = {0.1, 40, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1};
    open_profile(profile);
    for (uint32_t k = 0; k < BOARDS; k++) {
        take_board(profile, k, layer, k == 1 ? 2 : 1);
    }
}

/* One layer takes nearly all: boards share it, by their speeds, and a step is as much shorter. The
 * plan holds together, and no board has samples of another one. */
static void boards_may_share_a_stage(void **state) {
    (void)state;
    rp_profile profile;
    rp_joint_ask ask = {.run = &run, .profile = &profile, .share_most = 3};
    rp_joint_answer alone;
    rp_joint_answer answer;
    char text[2048];
    read_even("schedule: gpipe\n");
    open_one_heavy(&profile);
    for (uint32_t open = 0; open < 2; open++) {
        ask.boards_open = open > 0;
        ask.share_most = 1;
        expect_ok(rp_joint_search(&ask, &alone));
        ask.share_most = 3;
        expect_ok(rp_joint_search(&ask, &answer));
        const rp_joint_plan *best = &answer.plan[0];
        assert_true(rp_joint_is_shared(best) && !rp_joint_is_shared(&alone.plan[0]));
        assert_true(best->step_s < 0.7 * alone.plan[0].step_s);
        assert_true(answer.bound_s <= best->step_s);
        assert_int_equal(best->first[best->stages], LAYERS);
        assert_int_equal(best->group[best->stages], best->count);
        uint32_t most = 0;
        for (uint32_t s = 0; s < best->stages; s++) {
            const uint32_t own = best->group[s + 1] - best->group[s];
            double before = 0;
            assert_true(own >= 1 && own <= 3 && best->first[s] < best->first[s + 1]);
            for (uint32_t k = best->group[s]; k < best->group[s + 1]; k++) {
                assert_true(best->share[k] > before);
                before = best->share[k];
            }
            assert_true(before == 1);
            most = own > most ? own : most;
        }
        assert_int_equal(most, 3);
        say(&answer, text, sizeof text);
        assert_non_null(strstr(text, open ? " boards" : "in which boards share stages"));
        assert_non_null(strstr(text, " %) + "));
    }
}

/* Where boards share stages all stages have one size by direction, with which a step is shorter
 * than with train.microbatch. The same sizes, given, stay and are predicted to take no longer. */
static void sizes_of_shared_stages_are_replayed(void **state) {
    (void)state;
    rp_profile profile;
    rp_joint_ask ask = {.run = &run, .profile = &profile, .share_most = 3};
    rp_joint_answer given;
    rp_joint_answer answer;
    char text[2048];
    read_even("schedule: {kind: umpipe, planner: dgap}\nplan: {share: 3}\n");
    open_one_heavy(&profile);
    expect_ok(rp_joint_search(&ask, &answer));
    const rp_joint_plan best = answer.plan[0];
    assert_true(rp_joint_is_shared(&best));
    assert_true(best.even_s > 0 && best.step_s <= best.even_s);
    for (uint32_t k = 0; k < best.stages; k++) {
        for (uint32_t d = 0; d < 2; d++) {
            assert_true(best.size[k][d] >= 1 && best.size[k][d] <= run.batch);
            assert_int_equal(best.size[k][d], best.size[0][d]);
        }
    }
    assert_true(best.size[0][0] != run.micro || best.size[0][1] != run.micro);
    assert_true(best.step_s < best.even_s);
    say(&answer, text, sizeof text);
    (void)snprintf(text + 1024, 1024, "microbatches of %u samples forward and %u backward save",
                   best.size[0][0], best.size[0][1]);
    assert_non_null(strstr(text, text + 1024));

    assert_int_equal(close_run(state), 0);
    assert_int_equal(setup(state), 0);
    (void)snprintf(text, sizeof text,
                   "schedule: {kind: umpipe, forward: %u, backward: %u}\nplan: {share: 3}\n",
                   best.size[0][0], best.size[0][1]);
    read_even(text);
    open_one_heavy(&profile);
    expect_ok(rp_joint_search(&ask, &given));
    assert_true(given.is_known && rp_joint_is_shared(&given.plan[0]));
    assert_true(given.plan[0].even_s == 0);
    assert_true(given.plan[0].step_s <= best.step_s * 1.0001);
}

/* With cuts open other layers and boards on both sides of a boundary are looked at, too: never
 * worse, and what a trial may try. */
static void shares_near_the_best_are_looked_at(void **state) {
    (void)state;
    static const double layer[LAYERS] = {4, 20, 9, 1, 6, 0.1, 3, 2};
    rp_profile profile;
    rp_joint_ask ask = {.run = &run, .profile = &profile, .share_most = 3};
    rp_joint_answer answer;
    rp_joint_answer closer;
    uint32_t shared = 0;
    read_even("schedule: gpipe\n");
    open_profile(&profile);
    for (uint32_t k = 0; k < BOARDS; k++) {
        take_board(&profile, k, layer, 1 + 0.7 * k);
    }
    expect_ok(rp_joint_search(&ask, &answer));
    ask.cuts_open = true;
    expect_ok(rp_joint_search(&ask, &closer));
    assert_true(rp_joint_is_shared(&closer.plan[0]));
    assert_true(closer.plan[0].step_s <= answer.plan[0].step_s);
    for (uint32_t i = 0; i < closer.count; i++) {
        const rp_joint_plan *plan = &closer.plan[i];
        if (!rp_joint_is_shared(plan)) {
            continue;
        }
        shared++;
        assert_int_equal(plan->group[plan->stages], BOARDS);
        assert_int_equal(plan->first[plan->stages], LAYERS);
        for (uint32_t s = 0; s < plan->stages; s++) {
            const uint32_t own = plan->group[s + 1] - plan->group[s];
            assert_true(own >= 1 && own <= 3 && plan->first[s] < plan->first[s + 1]);
            assert_true(plan->share[plan->group[s + 1] - 1] == 1);
        }
        for (uint32_t k = 0; k < i; k++) {
            assert_true(plan->stages != closer.plan[k].stages ||
                        memcmp(plan->first, closer.plan[k].first,
                               (plan->stages + 1) * sizeof *plan->first) != 0 ||
                        memcmp(plan->group, closer.plan[k].group,
                               (plan->stages + 1) * sizeof *plan->group) != 0);
        }
    }
    assert_true(shared >= 3);
}

/* Of all cuts of the ring as it is, by replay. */
static double best_of_all_s(const rp_profile *profile) {
    double best = (double)INFINITY;
    for (uint32_t code = 0; code < (LAYERS - 1) * (LAYERS - 1) * (LAYERS - 1); code++) {
        const uint32_t a = 1 + code % (LAYERS - 1);
        const uint32_t b = 1 + code / (LAYERS - 1) % (LAYERS - 1);
        const uint32_t c = 1 + code / (LAYERS - 1) / (LAYERS - 1);
        const uint32_t first[] = {0, a, b, c, LAYERS};
        const rp_cut cut = {.stage_count = BOARDS, .first = first};
        const rp_planfile chosen = {.run = &run, .cut = &cut, .board = names, .profile = profile};
        rp_prediction found;
        rp_plan *plan;
        if (a < b && b < c) {
            expect_ok(rp_planfile_make(&arena, &chosen, &plan));
            expect_ok(rp_predict(&arena, &run, profile, plan, 0, &found));
            best = fmin(best, found.step_s);
        }
    }
    return best;
}

/* All boards on one air, and boundaries that differ: what all of them take together is what counts.
 * A cut by parts of the rate that are equal finds fewer of the best ones. */
static void wires_that_take_turns_are_one(void **state) {
    (void)state;
    rp_rng rng = rp_rng_named(14, "test/joint/air");
    uint32_t best = 0;
    double worst = 1;
    for (uint32_t trial = 0; trial < 24; trial++) {
        rp_profile profile;
        rp_joint_answer answer;
        rp_joint_ask ask = {.run = &run, .profile = &profile};
        uint32_t width[LAYERS];
        double layer[LAYERS];
        for (uint32_t i = 0; i < LAYERS; i++) {
            width[i] = 4u << rp_rng_below(&rng, 6);
            layer[i] = 0.3 + rp_rng_uniform(&rng);
        }
        read_run_of(width, trial % 2 ? "schedule: gpipe\n" : "schedule: 1f1b\n");
        run.emulate = true;
        (void)snprintf(run.link.shared, sizeof run.link.shared, "air");
        run.link.rate_mbit = pow(10, rp_rng_uniform(&rng) - 0.7);
        open_profile(&profile);
        for (uint32_t k = 0; k < BOARDS; k++) {
            take_board(&profile, k, layer, 1 + rp_rng_uniform(&rng));
        }
        expect_ok(rp_joint_search(&ask, &answer));
        const double ratio = answer.plan[0].step_s / best_of_all_s(&profile);
        best += ratio < 1.01;
        worst = fmax(worst, ratio);
        rp_runfile_close(&run);
    }
    printf("%u of 24 within 1 %% of the best cut, the worst takes %.3f of it\n", best, worst);
    assert_true(best >= 18 && worst < 1.1);
}

/* One of three wires is slow: it alone gets codecs, a step is as short as with the strongest on all
 * wires, and a codec that takes longer than it saves is none. */
static void codecs_are_chosen_with_the_cut(void **state) {
    (void)state;
    static const double layer[LAYERS] = {1, 1, 1, 1, 1, 1, 1, 1};
    static const rp_codec strong[BOARDS][2] = {{RP_CODEC_INT8, RP_CODEC_INT8},
                                               {RP_CODEC_INT8, RP_CODEC_INT8},
                                               {RP_CODEC_INT8, RP_CODEC_INT8}};
    rp_profile profile;
    rp_joint_answer plain;
    rp_joint_answer all;
    rp_joint_answer answer;
    rp_joint_ask ask = {.run = &run, .profile = &profile};
    char text[2048];
    read_even("schedule: 1f1b\nlinks: {codec: auto}\n");
    open_profile(&profile);
    for (uint32_t k = 0; k < BOARDS; k++) {
        take_board(&profile, k, layer, 1);
    }
    for (uint32_t i = 0; i < 2 * (BOARDS - 1); i++) {
        const double slow_s = i / 2 == 1 ? 0.2 : 1e-4; /* for 128 bytes: 16 f32 of 2 samples */
        const rp_curve_point trips[] = {{1, 1e-6, 0.1}, {128, slow_s, 0.1}};
        expect_ok(rp_profile_take_wire(&profile, i / 2 + i % 2, i / 2 + 1 - i % 2, trips, 2));
    }
    assert_true(run.codec_auto);
    expect_ok(rp_joint_search(&ask, &plain));
    run.codec = strong;
    expect_ok(rp_joint_search(&ask, &all));
    run.codec = NULL;
    ask.codecs_open = true;
    expect_ok(rp_joint_search(&ask, &answer));
    const rp_joint_plan *best = &answer.plan[0];
    assert_true(best->step_s < 0.8 * plain.plan[0].step_s);
    assert_true(best->step_s <= 1.003 * all.plan[0].step_s);
    assert_true(best->plain_s > best->step_s);
    for (uint32_t i = 0; i < 2 * (BOARDS - 1); i++) {
        assert_true((best->codec[i / 2][i % 2] == RP_CODEC_F32) == (i / 2 != 1));
    }
    say(&answer, text, sizeof text);
    assert_non_null(strstr(text, "; codecs save "));
    for (uint32_t k = 0; k < BOARDS; k++) { /* half a second to encode anything at all */
        profile.board[k].has_besides = true;
        for (uint32_t codec = RP_CODEC_F16; codec < RP_CODECS; codec++) {
            for (uint32_t size = 0; size < 2; size++) {
                profile.board[k].besides_s[rp_besides_codec(codec, 0, size)] = 0.5;
            }
        }
    }
    expect_ok(rp_joint_search(&ask, &answer));
    for (uint32_t i = 0; i < 2 * (BOARDS - 1); i++) {
        assert_int_equal(answer.plan[0].codec[i / 2][i % 2], RP_CODEC_F32);
    }
}

static void ask_with_schedules(const char *more, rp_profile *profile, rp_joint_answer *without,
                               rp_joint_answer *out) {
    rp_joint_ask ask = {.run = &run, .profile = profile};
    read_even(more);
    even_profile(profile);
    assert_true(run.schedule_auto && run.schedules.count > 1);
    expect_ok(rp_joint_search(&ask, without));
    ask.schedules_open = true;
    expect_ok(rp_joint_search(&ask, out));
    assert_true(without->is_known && out->is_known);
    assert_string_equal(without->schedule, "");
    assert_true(out->plan[0].own_s == without->plan[0].step_s);
    assert_true(out->plan[0].step_s <= out->plan[0].own_s);
}

static void expect_schedule(const rp_joint_answer *answer, const char *name, const char *words) {
    const rp_joint_plan *best = &answer->plan[0];
    char text[4096];
    assert_string_equal(run.schedules.at[best->schedule].method.kind->name, name);
    if (!strstr(answer->schedule, words)) {
        fail_msg("'%s' is not in '%s'", words, answer->schedule);
    }
    say(answer, text, sizeof text);
    if (isfinite(answer->now.step_s)) {
        assert_non_null(strstr(text, answer->schedule));
    }
}

/* The fastest of those that the run file allows: one that trains the same for little, one that does
 * not for more. */
static void the_schedule_is_chosen_where_it_may_be(void **state) {
    (void)state;
    rp_profile profile;
    rp_joint_answer without;
    rp_joint_answer answer;
    ask_with_schedules("schedule: gpipe\nplan: {schedules: [1f1b, zb-h1]}\n", &profile, &without,
                       &answer);
    expect_schedule(&answer, "zb-h1", "zb-h1 instead of gpipe saves ");
    expect_schedule(&answer, "zb-h1", "the same except for rounding; 1f1b takes ");
    assert_true(answer.plan[0].step_s < 0.99 * answer.plan[0].own_s);
    rp_runfile_close(&run);
    ask_with_schedules("schedule: gpipe\nplan: {schedules: [gpipe, zb-h1, pipedream]}\n", &profile,
                       &without, &answer);
    assert_int_equal(run.schedules.count, 3); /* its own is there once */
    expect_schedule(&answer, "pipedream", "of the first stage is up to 1 update old");
    /* eight microbatches and no bubble in place of eight and three */
    assert_true(answer.plan[0].step_s < 0.8 * answer.plan[0].own_s);
    rp_runfile_close(&run);
    ask_with_schedules("schedule: zb-h1\nplan: {schedules: [gpipe]}\n", &profile, &without,
                       &answer);
    expect_schedule(&answer, "zb-h1", "schedule zb-h1 stays");
    expect_schedule(&answer, "zb-h1", "; gpipe takes ");
    assert_true(answer.plan[0].step_s == answer.plan[0].own_s);
}

/* Versions of the weights count: with less and less memory the one that keeps some is left before
 * nothing fits at all. */
static void a_schedule_has_to_fit(void **state) {
    (void)state;
    rp_profile profile;
    rp_joint_answer without;
    rp_joint_answer answer = {.count = 0};
    rp_joint_ask ask = {.run = &run, .profile = &profile, .schedules_open = true};
    rp_err err = RP_OK;
    bool refused = false;
    ask_with_schedules("schedule: 1f1b\nplan: {schedules: [pipedream]}\n", &profile, &without,
                       &answer);
    expect_schedule(&answer, "pipedream", "pipedream instead of 1f1b");
    for (double bytes = 1 << 20; err == RP_OK && bytes > 1024; bytes *= 0.9) {
        for (uint32_t k = 0; k < BOARDS; k++) {
            profile.board[k].memory_bytes = (uint64_t)bytes;
        }
        err = rp_joint_search(&ask, &answer);
        if (err == RP_OK && answer.plan[0].schedule == 0) {
            expect_schedule(&answer, "1f1b", "; pipedream does not fit");
            refused = true;
        }
        assert_false(err == RP_OK && refused && answer.plan[0].schedule > 0);
    }
    assert_true(refused);
    assert_int_equal(err, RP_ERR_USAGE);
}

/* advance: auto. Plans are compared with the advance that the run would have on these wires, and
 * with as much less as their boards have no memory for. */
static void plans_have_the_advance_of_the_run(void **state) {
    (void)state;
    static const rp_curve_point trips[] = {{64, 20e-3, 0.1}, {1 << 20, 21e-3, 0.1}};
    rp_profile profile;
    rp_joint_answer fixed;
    rp_joint_answer answer;
    rp_joint_ask ask = {.run = &run, .profile = &profile};
    uint32_t least = RP_ADVANCE_MAX;
    rp_err err = RP_OK;
    read_even("schedule: {kind: pipedream, advance: 0}\n");
    for (uint32_t turn = 0; turn < 2; turn++) {
        even_profile(&profile);
        for (uint32_t i = 0; i < 2 * (BOARDS - 1); i++) {
            expect_ok(rp_profile_take_wire(&profile, i / 2 + i % 2, i / 2 + 1 - i % 2, trips, 2));
        }
        expect_ok(rp_joint_search(&ask, turn == 0 ? &fixed : &answer));
        if (turn == 0) {
            rp_runfile_close(&run);
            read_even("schedule: {kind: pipedream, advance: auto}\n");
        }
    }
    assert_false(fixed.plan[0].has_advance);
    assert_true(answer.plan[0].has_advance && answer.plan[0].advance > 0);
    assert_true(answer.plan[0].step_s < 0.8 * fixed.plan[0].step_s);
    assert_true(answer.now.has_advance && answer.alike.has_advance);
    const uint32_t most = answer.plan[0].advance;
    for (double bytes = 1 << 20; err == RP_OK && bytes > 1024; bytes *= 0.9) {
        for (uint32_t k = 0; k < BOARDS; k++) {
            profile.board[k].memory_bytes = (uint64_t)bytes;
        }
        err = rp_joint_search(&ask, &answer);
        if (err == RP_OK && answer.plan[0].has_advance) {
            assert_true(answer.plan[0].advance <= least);
            least = answer.plan[0].advance;
        }
    }
    assert_true(least < most);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(it_is_never_worse, setup, close_run),
        cmocka_unit_test_setup_teardown(boards_that_only_hold_up_are_left_out, setup, close_run),
        cmocka_unit_test_setup_teardown(it_ends_by_its_limits, setup, close_run),
        cmocka_unit_test_setup_teardown(memory_is_a_limit, setup, close_run),
        cmocka_unit_test_setup_teardown(sizes_are_chosen_with_the_cut, setup, close_run),
        cmocka_unit_test_setup_teardown(the_microbatch_is_chosen_where_it_may_be, setup, close_run),
        cmocka_unit_test_setup_teardown(a_smaller_microbatch_has_to_win, setup, close_run),
        cmocka_unit_test_setup_teardown(wires_that_take_turns_are_one, setup, close_run),
        cmocka_unit_test_setup_teardown(shares_near_the_best_are_looked_at, setup, close_run),
        cmocka_unit_test_setup_teardown(boards_may_share_a_stage, setup, close_run),
        cmocka_unit_test_setup_teardown(sizes_of_shared_stages_are_replayed, setup, close_run),
        cmocka_unit_test_setup_teardown(codecs_are_chosen_with_the_cut, setup, close_run),
        cmocka_unit_test_setup_teardown(the_schedule_is_chosen_where_it_may_be, setup, close_run),
        cmocka_unit_test_setup_teardown(a_schedule_has_to_fit, setup, close_run),
        cmocka_unit_test_setup_teardown(plans_have_the_advance_of_the_run, setup, close_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
