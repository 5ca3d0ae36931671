/* A plan's text: what is written is read again, and what is wrong is named. */
#include <math.h>

#include "plans.h"

static char *text_of(const rp_plan *plan) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *file = open_memstream(&text, &bytes);
    assert_non_null(file);
    expect_ok(rp_plan_write(plan, file));
    (void)fclose(file);
    return text;
}

static void expect_round_trip(const rp_plan *plan) {
    rp_arena arena;
    rp_plan *again;
    rp_arena_init(&arena, "test", 0);
    char *text = text_of(plan);
    expect_ok(rp_plan_parse(&arena, text, strlen(text), "plan.json", &again));
    assert_true(rp_plan_same(plan, again));
    assert_true(rp_plan_same(again, plan));
    char *twice = text_of(again);
    assert_string_equal(text, twice);
    char *whole;
    expect_ok(rp_plan_text(&arena, plan, &whole));
    assert_string_equal(text, whole);
    expect_ok(rp_plan_check(again, NULL));
    free(text);
    free(twice);
    rp_arena_finish(&arena);
}

static void every_schedule_goes_round(void **state) {
    (void)state;
    static const char *const schedules[] = {
        "gpipe",
        "1f1b",
        "zb-h1",
        "umpipe",
        "{kind: interleaved-1f1b, chunks: 3}",
        "async",
        "{kind: pipedream, vertical_sync: true}",
        "pipedream-2bw",
        "{kind: spectrain, probe: 7}",
        "{kind: pipeoptim, horizon: measured, decay: true, advance: 3}",
        "{kind: xpipe, drain: true}",
        "{kind: ea-pipe, lean: true, period: 3, order: before, evaluate: mean, alpha: 0.3}",
        "{kind: ea-pipe, replicas: 2, weights: stash}",
        "{kind: avgpipe, replicas: 3, evaluate: latest}",
        "pipefb",
        "{kind: pipefb, ahead: [8, 5, 5, 2], publish: 3}"};
    for (size_t i = 0; i < sizeof schedules / sizeof *schedules; i++) {
        const plan_case c = {schedules[i], 4, 12, 3, 100, 30};
        rp_arena arena;
        rp_plan *plan;
        rp_arena_init(&arena, "test", 0);
        expect_ok(make_plan(&arena, &c, &plan));
        plan->stage[1].measured =
            (rp_plan_measured){"left", 4, 2, 5000, 400, 1u << 20, true, 0.25, 1.0 / 3, 0};
        plan->node[2].dials = true;
        plan->stage[2].recompute =
            !rp_method_refuses_again(&plan->method, 2, plan->method.kind->sizes);
        if (plan->method.kind->sizes) {
            plan->stage[0].micro_backward = 5;
            plan->stage[2].micro_forward = 7;
            plan->stage[3].as_forward = true;
            expect_ok(rp_plan_measure(plan));
        }
        plan->predicted_step_s = 0.1;
        plan->predicted_limits = "link board0-board1";
        plan->agent_program_bytes = 12345;
        plan->has_advance = !plan->method.kind->flushed && !plan->method.kind->splits;
        plan->advance_tried = plan->has_advance ? plan->method.advance + 3 : 0;
        plan->advance_busy[2] = 0.7;
        expect_round_trip(plan);
        rp_arena_finish(&arena);
    }
}

static uint32_t next_random(uint64_t *seed, uint32_t count) {
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*seed >> 33) % count;
}

/* Stages on one to four nodes each, shares of any size, some with both directions apart. */
static void random_plans_go_round(void **state) {
    (void)state;
    uint64_t seed = 1;
    for (uint32_t i = 0; i < trials(300, 60); i++) {
        const uint32_t stages = 1 + next_random(&seed, 5);
        const uint32_t batch = 16 + next_random(&seed, 20);
        spread_stage stage[5];
        for (uint32_t k = 0; k < stages; k++) {
            stage[k] = (spread_stage){.nodes = 1 + next_random(&seed, 4),
                                      .micro = 1 + next_random(&seed, batch / 2),
                                      .split = next_random(&seed, 3) == 0};
            for (uint32_t n = 0; n + 1 < stage[k].nodes; n++) {
                stage[k].share[n] = (n + 0.2 + next_random(&seed, 800) / 1000.0) / stage[k].nodes;
            }
        }
        rp_arena arena;
        rp_arena_init(&arena, "test", 0);
        rp_plan *plan = spread_plan(&arena, "gpipe", stage, stages, batch);
        expect_ok(rp_plan_measure(plan));
        expect_round_trip(plan);
        rp_arena_finish(&arena);
    }
}

static void a_difference_is_seen(void **state) {
    (void)state;
    const plan_case c = {"1f1b", 3, 12, 3, 100, 30};
    rp_arena arena;
    rp_plan *a, *b;
    rp_arena_init(&arena, "test", 0);
    expect_ok(make_plan(&arena, &c, &a));
    expect_ok(make_plan(&arena, &c, &b));
    assert_true(rp_plan_same(a, b));
    b->edge[2].window++;
    assert_false(rp_plan_same(a, b));
    b->edge[2].window--;
    b->node[1].dials = true;
    assert_false(rp_plan_same(a, b));
    b->node[1].dials = false;
    b->hold[1].share[1] = 0.5;
    assert_false(rp_plan_same(a, b));
    a->hold[1].share[1] = b->hold[1].share[1] = (double)NAN;
    assert_false(rp_plan_same(a, b));
    rp_arena_finish(&arena);
}

/* One replacement in a good text, and what the message says. */
static void wrong_texts_are_named(void **state) {
    (void)state;
    static const struct {
        const char *from, *to, *message;
    } cases[] = {
        {"\"version\": 1", "\"version\": 2", "version: expected a whole number from 1 to 1"},
        {"\"role\": \"both\"", "\"role\": \"all\"",
         "nodes[0].holds[0].role: expected one of both forward backward average"},
        {"\"carries\": \"input\"", "\"carries\": \"inputs\"",
         "edges[0].carries: expected one of input label activation"},
        {"\"to\": \"board1\"", "\"to\": \"board9\"", ".to: expected the name of a node"},
        {"\"from\": \"host\"", "\"from\": 3", "edges[0].from: expected the name of a node"},
        {"\"window\": 2", "\"window\": 0", ".window: expected a whole number from 1"},
        {"\"window\": 2", "\"windows\": 2",
         "edges[0].windows: is not a key of this part of a plan"},
        {"\"steps\": 30", "\"steps\": 30, \"steps\": 30", "duplicate object key"},
        {"\"steps\": 30", "\"steps\": 30.5", "steps: expected a whole number"},
        {"\"steps\": 30", "\"steps\": -1", "steps: expected a whole number"},
        {"\"microbatch\": 3", "\"microbatch\": 13", "microbatch: expected a whole number from 1"},
        {"\"schedule\": \"1f1b\"", "\"schedule\": \"gpipe\"",
         "schedule: expected the method's kind, 1f1b"},
        {"\"weights\": \"current\"", "\"weights\": \"stash\"", "plan.json: method:1: "},
        {"\"kind\": \"1f1b\"", "\"kind\": \"2f2b\"", "no schedule '2f2b'"},
        {"\"executor\"", "\"dials\": 1, \"executor\"", "nodes[0].dials: expected true or false"},
        {"\"recompute\": false", "\"recompute\": 0",
         "stages[0].recompute: expected true, false, or"},
        {"\"model_digest\": \"0000", "\"model_digest\": \"0x00",
         "model_digest: expected 16 hexadecimal digits"},
        {"\"cut\": []", "\"cut\": [\"conv2\"]", "cut: expected 0 layers, found 1"},
        {"\"stage\": 2", "\"stage\": 3", "stage: expected a whole number from 0 to 2"},
        {"\"samples\": [", "\"samples\": [0.5, ", "samples: expected two numbers from 0 to 1"},
        {"\"nodes\": [", "\"nodes\": [1, ", "nodes[0]: expected an object"},
        {"\"nodes\": [", "\"nodes\": [", NULL},
    };
    const plan_case c = {"1f1b", 3, 12, 3, 100, 30};
    rp_arena arena;
    rp_plan *plan;
    rp_arena_init(&arena, "test", 0);
    expect_ok(make_plan(&arena, &c, &plan));
    char *text = text_of(plan);
    char *changed = malloc(strlen(text) + 100);
    assert_non_null(changed);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *at = strstr(text, cases[i].from);
        rp_plan *again;
        assert_non_null(at);
        (void)snprintf(changed, strlen(text) + 100, "%.*s%s%s", (int)(at - text), text, cases[i].to,
                       at + strlen(cases[i].from));
        const rp_err err = rp_plan_parse(&arena, changed, strlen(changed), "plan.json", &again);
        if (!cases[i].message) {
            expect_ok(err);
            continue;
        }
        if (err == RP_OK || !strstr(rp_err_message(), cases[i].message)) {
            fail_msg("%s: expected '%s', found '%s'", cases[i].to, cases[i].message,
                     rp_err_message());
        }
    }
    free(changed);
    free(text);
    rp_arena_finish(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_schedule_goes_round),
        cmocka_unit_test(random_plans_go_round),
        cmocka_unit_test(a_difference_is_seen),
        cmocka_unit_test(wrong_texts_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
