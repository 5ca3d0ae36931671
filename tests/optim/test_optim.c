#include "case.h"

#include <math.h>

static void common_keys(void **state) {
    (void)state;
    rp_optim optim;
    rp_arena arena;
    rp_arena_init(&arena, "keys", 0);
    expect_ok(optim_case_parse(&arena, "{kind: sgd, lr: 0, clip_norm: 5}", &optim));
    assert_string_equal(optim.kind->name, "sgd");
    expect_close(optim.lr, 0, 0, 0);
    expect_close(optim.clip_norm, 5, 0, 0);
    assert_true(optim.predicts);
    expect_ok(optim_case_parse(&arena, "{kind: adam, lr: 1e20}", &optim));
    expect_close(optim.clip_norm, 0, 0, 0);
    expect_ok(optim_case_parse(
        &arena,
        "{kind: adam, lr: 1, clip_norm_stage: 2, staleness_power: 0.75, staleness_per_stage: 3}",
        &optim));
    expect_close(optim.clip_norm_stage, 2, 0, 0);
    expect_close(optim.staleness_power, 0.75, 0, 0);
    expect_close(optim.staleness_per_stage, 3, 0, 0);
    rp_arena_finish(&arena);
}

/* METHODS 11. Off, the factor is 1 to the bit: rates of other runs stay what they are. */
static void rates_know_staleness(void **state) {
    (void)state;
    rp_optim optim = {.staleness_power = 0};
    assert_true(rp_optim_stage_rate(&optim, 7) == 1.0);
    optim.staleness_power = 1;
    assert_true(rp_optim_stage_rate(&optim, 0) == 1.0);
    expect_close(rp_optim_stage_rate(&optim, 3), 0.25, 1e-15, 0);
    expect_close(rp_optim_stage_rate(&optim, 0.5), 2.0 / 3, 1e-15, 0);
    optim.staleness_power = 0.5;
    expect_close(rp_optim_stage_rate(&optim, 3), 0.5, 1e-15, 0);
}

static void gradients_are_clipped_as_torch_does(void **state) {
    (void)state;
    assert_true(rp_optim_clip_scale(0, 1e9) == 1.0); /* off */
    assert_true(rp_optim_clip_scale(2, 1) == 1.0);
    expect_close(rp_optim_clip_scale(2, 8), 2 / (8 + 1e-6), 1e-15, 0);
    assert_true(rp_optim_clip_scale(2, 0) == 1.0);
    assert_true(rp_optim_clip_scale(2, (double)NAN) == 1.0); /* such a step is skipped */
}

static void momentum_of_any_kind(void **state) {
    (void)state;
    static const struct {
        const char *text;
        double momentum;
    } cases[] = {{"{kind: sgd, lr: 1}", 0},
                 {"{kind: sgd, lr: 1, momentum: 0.8}", 0.8},
                 {"{kind: rmsprop, lr: 1, momentum: 0.7}", 0.7},
                 {"{kind: adam, lr: 1}", 0.9},
                 {"{kind: adamw, lr: 1, betas: [0, 0.99]}", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rp_optim optim;
        rp_arena arena;
        rp_arena_init(&arena, "momentum", 0);
        expect_ok(optim_case_parse(&arena, cases[i].text, &optim));
        expect_close(rp_optim_momentum(&optim), cases[i].momentum, 0, 0);
        rp_arena_finish(&arena);
    }
}

/* The manual is written from `keys`. */
static void keys_are_read(void **state) {
    (void)state;
    for (uint32_t i = 0; rp_optim_kinds[i]; i++) {
        rp_optim optim;
        rp_arena arena;
        char keys[128];
        char text[512];
        size_t used =
            (size_t)snprintf(text, sizeof text, "{kind: %s, lr: 1", rp_optim_kinds[i]->name);
        (void)snprintf(keys, sizeof keys, "%s", rp_optim_kinds[i]->keys);
        for (char *at = NULL, *key = strtok_r(keys, ", ", &at); key;
             key = strtok_r(NULL, ", ", &at)) {
            const bool flag = strcmp(key, "nesterov") == 0 || strcmp(key, "centered") == 0;
            const char *value = strcmp(key, "betas") == 0 ? "[0.9, 0.9]" : flag ? "false" : "0.5";
            used += (size_t)snprintf(text + used, sizeof text - used, ", %s: %s", key, value);
        }
        (void)snprintf(text + used, sizeof text - used, "}");
        rp_arena_init(&arena, "keys", 0);
        expect_ok(optim_case_parse(&arena, text, &optim));
        rp_arena_finish(&arena);
    }
}

static void bad_keys(void **state) {
    (void)state;
    optim_case_refused("{kind: sgd}", "lr");
    optim_case_refused("{lr: 1}", "kind");
    optim_case_refused("{kind: lion, lr: 1}", "sgd adam adamw rmsprop");
    optim_case_refused("{kind: sgd, lr: -1}", "lr");
    optim_case_refused("{kind: sgd, lr: inf}", "lr");
    optim_case_refused("{kind: sgd, lr: 1, clip_norm: -1}", "clip_norm");
    optim_case_refused("{kind: sgd, lr: 1, clip_norm_stage: -1}", "clip_norm_stage");
    optim_case_refused("{kind: sgd, lr: 1, clip_norm: 1, clip_norm_stage: 1}", "only one of them");
    optim_case_refused("{kind: sgd, lr: 1, staleness_power: -1}", "staleness_power");
    optim_case_refused("{kind: sgd, lr: 1, staleness_power: 9}", "staleness_power");
    optim_case_refused("{kind: sgd, lr: 1, staleness_power: 1, staleness_per_stage: -1}",
                       "staleness_per_stage");
    optim_case_refused("{kind: sgd, lr: 1, staleness_per_stage: 1}", "staleness_power above 0");
    optim_case_refused("kind: sgd\nlr: 1\nlearning: 2\n", "run.yaml:3");
}

static void scalar_is_refused(void **state) {
    (void)state;
    const char text[] = "optimizer: sgd\n";
    rp_optim optim;
    rp_node *root;
    rp_arena arena;
    rp_arena_init(&arena, "scalar", 0);
    expect_ok(rp_config_read_text(&arena, text, sizeof text - 1, "run.yaml", &root));
    expect_err(rp_optim_parse(&optim, rp_node_find(root, "optimizer")), RP_ERR_USAGE);
    assert_non_null(strstr(rp_err_message(), "run.yaml:1"));
    rp_arena_finish(&arena);
}

/* Each tensor has its own share of what was predicted, and at 0 nothing of it, not even a NaN. */
static void shares_by_tensor(void **state) {
    (void)state;
    enum { COUNT = 100, TENSORS = 5 };
    const uint32_t spans[2 * TENSORS] = {0, 5, 16, 16, 32, 40, 80, 1, 96, 4};
    const float shares[TENSORS] = {0, 0.25f, 1, 0.5f, 0.75f};
    float w[COUNT];
    float ahead[COUNT];
    float got[COUNT];
    rp_arena arena;
    rp_optim optim;
    rp_darena *memory;
    rp_buffer *at[2];
    optim_case c;
    rp_arena_init(&arena, "shares", 0);
    expect_ok(optim_case_parse(&arena, "{kind: sgd, lr: 1}", &optim));
    optim_case_open(&c, &optim, COUNT);
    expect_ok(rp_darena_open(&arena, golden_device(), "shares", 0, 0, &memory));
    expect_ok(rp_darena_take(memory, sizeof spans, &at[0]));
    expect_ok(rp_darena_take(memory, sizeof shares, &at[1]));
    expect_ok(rp_buffer_write_now(golden_device(), at[0], 0, spans, sizeof spans));
    expect_ok(rp_buffer_write_now(golden_device(), at[1], 0, shares, sizeof shares));
    golden_values("w", COUNT, w);
    golden_values("ahead", COUNT, ahead);
    ahead[3] = NAN;
    optim_case_write(c.call.w, w, COUNT);
    optim_case_write(c.out, ahead, COUNT);
    expect_ok(rp_optim_in_shares(&c.call, c.out, at[0], at[1], TENSORS));
    optim_case_read(c.out, got, COUNT);
    for (uint32_t t = 0; t < TENSORS; t++) {
        for (uint32_t i = spans[2 * t]; i < spans[2 * t] + spans[2 * t + 1]; i++) {
            const double moved = (double)shares[t] * ((double)ahead[i] - (double)w[i]);
            expect_close(got[i], shares[t] > 0 ? (double)w[i] + moved : (double)w[i], 1e-6, 0);
        }
    }
    assert_memory_equal(got + 32, ahead + 32, 40 * sizeof(float));
    rp_darena_close(&memory);
    optim_case_close(&c);
    rp_arena_finish(&arena);
}

/* Every kind over a large block: zero gaps stay zero, neighbours do not mix. */
static void large_block(void **state) {
    (void)state;
    enum { COUNT = 100003 };
    static float w[COUNT];
    static float g[COUNT];
    static float after[COUNT];
    for (const rp_optim_kind *const *kind = rp_optim_kinds; *kind; kind++) {
        char text[64];
        rp_optim optim;
        optim_case c;
        rp_arena arena;
        rp_arena_init(&arena, "large", 0);
        snprintf(text, sizeof text, "{kind: %s, lr: 0.1, weight_decay: 0.01}", (*kind)->name);
        expect_ok(optim_case_parse(&arena, text, &optim));
        rp_arena_finish(&arena);
        golden_values("w", COUNT, w);
        golden_values("g", COUNT, g);
        for (size_t i = 0; i < COUNT; i += 7) {
            w[i] = g[i] = 0.0f;
        }
        optim_case_open(&c, &optim, COUNT);
        optim_case_write(c.call.w, w, COUNT);
        optim_case_step(&c, g);
        optim_case_read(c.call.w, after, COUNT);
        for (size_t i = 0; i < COUNT; i++) {
            assert_true(i % 7 == 0 ? after[i] == 0.0f : after[i] != w[i] && isfinite(after[i]));
        }
        optim_case_close(&c);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(common_keys),
        cmocka_unit_test(rates_know_staleness),
        cmocka_unit_test(gradients_are_clipped_as_torch_does),
        cmocka_unit_test(momentum_of_any_kind),
        cmocka_unit_test(keys_are_read),
        cmocka_unit_test(bad_keys),
        cmocka_unit_test(scalar_is_refused),
        cmocka_unit_test(shares_by_tensor),
        cmocka_unit_test(large_block),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
