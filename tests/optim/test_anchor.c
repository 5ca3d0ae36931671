/* The anchor's term against its formula, its keys and its states. */
#include "case.h"

enum { COUNT = 37 };

static void read_anchor(const char *text, rp_optim_anchor *out, rp_err want) {
    rp_arena arena;
    rp_node *root;
    rp_arena_init(&arena, "anchor", 0);
    expect_ok(rp_config_read_text(&arena, text, strlen(text), "run.yaml", &root));
    const rp_err err = rp_optim_parse_anchor(out, root);
    assert_int_equal(err, want);
    rp_arena_finish(&arena);
}

static void keys(void **state) {
    rp_optim_anchor anchor;
    (void)state;
    read_anchor("a: 1\n", &anchor, RP_OK);
    assert_false(anchor.mu > 0 || anchor.drift);
    read_anchor("anchor: none\n", &anchor, RP_OK);
    assert_false(anchor.mu > 0 || anchor.drift);
    read_anchor("anchor: 0.25\n", &anchor, RP_OK);
    expect_close(anchor.mu, 0.25, 0, 0);
    assert_false(anchor.drift);
    read_anchor("anchor: {mu: 0.5, drift: true}\n", &anchor, RP_OK);
    expect_close(anchor.mu, 0.5, 0, 0);
    assert_true(anchor.drift);
    read_anchor("anchor: -1\n", &anchor, RP_ERR_USAGE);
    read_anchor("anchor: nan\n", &anchor, RP_ERR_USAGE);
    read_anchor("anchor: {mu: 1, pull: 2}\n", &anchor, RP_ERR_USAGE);
    assert_non_null(strstr(rp_err_message(), "pull"));
}

/* States follow those of the kind. */
static void states(void **state) {
    static const struct {
        const char *text;
        rp_optim_anchor anchor;
        const char *names[4];
    } cases[] = {
        {"{kind: sgd, lr: 1}", {0, false}, {NULL}},
        {"{kind: sgd, lr: 1}", {1, true}, {"anchor", "drift", NULL}},
        {"{kind: sgd, lr: 1}", {0, true}, {"drift", NULL}},
        {"{kind: sgd, lr: 1, momentum: 0.9}", {1, false}, {"momentum_buffer", "anchor", NULL}},
        {"{kind: adam, lr: 1}", {1, false}, {"exp_avg", "exp_avg_sq", "anchor", NULL}},
    };
    rp_arena arena;
    (void)state;
    rp_arena_init(&arena, "states", 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rp_optim optim;
        uint32_t count = 0;
        expect_ok(optim_case_parse(&arena, cases[i].text, &optim));
        optim.predicts = false;
        optim.anchor = cases[i].anchor;
        for (; cases[i].names[count]; count++) {
            assert_true(count < rp_optim_state_count(&optim));
            assert_string_equal(rp_optim_state_name(&optim, count), cases[i].names[count]);
        }
        assert_int_equal(rp_optim_state_count(&optim), count);
        assert_int_equal(rp_optim_anchor_state(&optim) == RP_OPTIM_NO_STATE,
                         !(optim.anchor.mu > 0));
        assert_int_equal(rp_optim_drift_state(&optim) == RP_OPTIM_NO_STATE, !optim.anchor.drift);
        assert_int_equal(rp_optim_is_anchored(&optim), i > 0);
    }
    rp_arena_finish(&arena);
}

static void drift_needs_plain_steps(void **state) {
    static const char *const refused[] = {"{kind: sgd, lr: 1, momentum: 0.9}",
                                          "{kind: adam, lr: 1}",
                                          "{kind: sgd, lr: 1, staleness_power: 1}"};
    rp_arena arena;
    rp_optim optim;
    rp_node *node;
    (void)state;
    rp_arena_init(&arena, "drift", 0);
    expect_ok(rp_config_read_text(&arena, "a: 1\n", 5, "run.yaml", &node));
    expect_ok(optim_case_parse(&arena, "{kind: sgd, lr: 1, weight_decay: 0.1}", &optim));
    optim.anchor = (rp_optim_anchor){.mu = 1, .drift = true};
    expect_ok(rp_optim_check_anchor(&optim, node));
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        expect_ok(optim_case_parse(&arena, refused[i], &optim));
        optim.anchor.mu = 1;
        expect_ok(rp_optim_check_anchor(&optim, node));
        optim.anchor.drift = true;
        expect_err(rp_optim_check_anchor(&optim, node), RP_ERR_USAGE);
    }
    rp_arena_finish(&arena);
}

/* g + mu (w - start) - drift, with either part missing. */
static void term(void **state) {
    static float g[COUNT], w[COUNT], start[COUNT], drift[COUNT], got[COUNT];
    rp_optim optim;
    optim_case c;
    rp_arena arena;
    (void)state;
    rp_arena_init(&arena, "term", 0);
    expect_ok(optim_case_parse(&arena, "{kind: adam, lr: 1}", &optim)); /* has two blocks */
    optim_case_open(&c, &optim, COUNT);
    golden_values("g", COUNT, g);
    golden_values("w", COUNT, w);
    golden_values("start", COUNT, start);
    golden_values("drift", COUNT, drift);
    optim_case_write(c.call.w, w, COUNT);
    optim_case_write(c.call.state[0], start, COUNT);
    optim_case_write(c.call.state[1], drift, COUNT);
    for (int parts = 1; parts < 4; parts++) {
        const bool pulls = parts & 1;
        const bool drifts = parts & 2;
        c.optim.anchor.mu = pulls ? 0.375 : 0;
        optim_case_write(c.g, g, COUNT);
        expect_ok(rp_optim_anchor_gradient(&c.call, c.g, pulls ? c.call.state[0] : NULL,
                                           drifts ? c.call.state[1] : NULL));
        optim_case_read(c.g, got, COUNT);
        for (int i = 0; i < COUNT; i++) {
            const double pull = pulls ? 0.375 * ((double)w[i] - (double)start[i]) : 0;
            expect_close(got[i], (double)g[i] + pull - (drifts ? (double)drift[i] : 0), 1e-6, 1e-6);
        }
    }
    optim_case_close(&c);
    rp_arena_finish(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys),
        cmocka_unit_test(states),
        cmocka_unit_test(drift_needs_plain_steps),
        cmocka_unit_test(term),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
