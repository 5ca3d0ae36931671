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
    rp_arena_finish(&arena);
}

static void bad_keys(void **state) {
    (void)state;
    optim_case_refused("{kind: sgd}", "lr");
    optim_case_refused("{lr: 1}", "kind");
    optim_case_refused("{kind: lion, lr: 1}", "sgd adam adamw rmsprop");
    optim_case_refused("{kind: sgd, lr: -1}", "lr");
    optim_case_refused("{kind: sgd, lr: inf}", "lr");
    optim_case_refused("{kind: sgd, lr: 1, clip_norm: -1}", "clip_norm");
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
        cmocka_unit_test(bad_keys),
        cmocka_unit_test(scalar_is_refused),
        cmocka_unit_test(large_block),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
