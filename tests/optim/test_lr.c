#include "nn/golden.h"

#include "optim/optim.h"

static const double base_lr = 0.4;

static void equals_pytorch(void **state) {
    (void)state;
    rp_arena arena;
    char *names;
    char *rest;
    rp_arena_init(&arena, "lr", 0);
    rp_st_reader *reader = golden_file(&arena, "lr");
    expect_ok(rp_arena_string(&arena, rp_st_meta(reader, "cases"), &names));
    for (char *name = strtok_r(names, " ", &rest); name; name = strtok_r(NULL, " ", &rest)) {
        const char *text = rp_st_meta(reader, name);
        char full[RP_ST_NAME_MAX];
        rp_node *facts;
        uint32_t steps = 0;
        uint32_t epoch = 0;
        rp_lr_schedule schedule;
        expect_ok(rp_config_read_text(&arena, text, strlen(text), name, &facts));
        expect_ok(rp_node_u32(facts, "steps", 1, 1000, &steps));
        expect_ok(rp_node_u32(facts, "epoch", 1, 1000, &epoch));
        expect_ok(rp_lr_parse(&schedule, rp_node_find(facts, "lr_schedule")));
        snprintf(full, sizeof full, "%s/lr", name);
        const uint64_t dim = steps;
        const float *want;
        expect_ok(rp_st_need_f32(reader, full, 1, &dim, &want));
        for (uint32_t t = 0; t < steps; t++) {
            expect_close_at(rp_lr_at(&schedule, base_lr, t, steps, epoch), (double)want[t], 1e-6,
                            1e-9, name, t, __FILE__, __LINE__);
        }
    }
    rp_st_close(&reader);
    rp_arena_finish(&arena);
}

static rp_err parse_schedule(rp_arena *arena, const char *text, rp_lr_schedule *schedule) {
    rp_node *root;
    rp_err err = rp_config_read_text(arena, text, strlen(text), "run.yaml", &root);
    return err == RP_OK ? rp_lr_parse(schedule, rp_node_find(root, "lr_schedule")) : err;
}

static void words_and_maps(void **state) {
    (void)state;
    rp_lr_schedule schedule;
    rp_arena arena;
    rp_arena_init(&arena, "words", 0);
    expect_ok(rp_lr_parse(&schedule, NULL));
    assert_int_equal(schedule.kind, RP_LR_CONSTANT);
    expect_ok(parse_schedule(&arena, "lr_schedule: cosine", &schedule));
    assert_int_equal(schedule.kind, RP_LR_COSINE);
    expect_ok(
        parse_schedule(&arena, "lr_schedule: {kind: poly, power: 2, min_lr: 0.1}", &schedule));
    assert_int_equal(schedule.kind, RP_LR_POLY);
    expect_close(schedule.power + schedule.min_lr, 2.1, 1e-12, 0);
    expect_ok(parse_schedule(&arena, "lr_schedule: {kind: step, step_size: 30}", &schedule));
    expect_close(schedule.gamma, 0.1, 0, 0);
    rp_arena_finish(&arena);
}

static void bad_schedules(void **state) {
    (void)state;
    const char *const texts[] = {
        "lr_schedule: linear",
        "lr_schedule: step",
        "lr_schedule: [cosine]",
        "lr_schedule: {kind: linear}",
        "lr_schedule: {warmup_steps: 3}",
        "lr_schedule: {kind: step}",
        "lr_schedule: {kind: step, step_size: 0}",
        "lr_schedule: {kind: cosine, gamma: 0.1}",
        "lr_schedule: {kind: constant, min_lr: 0.1}",
        "lr_schedule: {kind: cosine, warmup_steps: -1}",
    };
    rp_arena arena;
    rp_arena_init(&arena, "bad", 0);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        rp_lr_schedule schedule;
        expect_err(parse_schedule(&arena, texts[i], &schedule), RP_ERR_USAGE);
        assert_non_null(strstr(rp_err_message(), "run.yaml:1"));
    }
    rp_arena_finish(&arena);
}

static void edges(void **state) {
    (void)state;
    rp_lr_schedule cosine = {.kind = RP_LR_COSINE, .warmup_steps = 4, .min_lr = 0.1};
    expect_close(rp_lr_at(&cosine, 0.4, 0, 8, 1), 0.1, 1e-12, 0);
    expect_close(rp_lr_at(&cosine, 0.4, 3, 8, 1), 0.4, 1e-12, 0);
    expect_close(rp_lr_at(&cosine, 0.4, 4, 8, 1), 0.4, 1e-12, 0);
    expect_close(rp_lr_at(&cosine, 0.4, 8, 8, 1), 0.1, 1e-12, 0);
    expect_close(rp_lr_at(&cosine, 0.4, 100, 8, 1), 0.1, 1e-12, 0);
    expect_close(rp_lr_at(&cosine, 0.4, 5, 2, 1), 0.4, 1e-12, 0); /* all of it warm-up */
    rp_lr_schedule step = {.kind = RP_LR_STEP, .step_size = 2, .gamma = 0.5};
    expect_close(rp_lr_at(&step, 1.0, 39, 100, 10), 0.5, 1e-12, 0);
    expect_close(rp_lr_at(&step, 1.0, 40, 100, 10), 0.25, 1e-12, 0);
    expect_close(rp_lr_at(&step, 1.0, 40, 100, 0), 1.0, 1e-12, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_pytorch),
        cmocka_unit_test(words_and_maps),
        cmocka_unit_test(bad_schedules),
        cmocka_unit_test(edges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
