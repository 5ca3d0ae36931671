/* What trains wrong without an error: refused before the run, or noted. */
#include "folder.h"

#include "run/rate.h"
#include "run/remarks.h"

static const char run_text[] = "model: ./model.yaml\n"
                               "data: {set: glyphs, train: 50, test: 10}\n"
                               "ring: {boards: 2}\n"
                               "train: {epochs: 3, batch: 16, microbatch: 4}\n"
                               "loss: cross-entropy\n"
                               "optimizer: {kind: sgd, lr: 0.1}\n"
                               "schedule: gpipe\n";
static const char pixels[] = "{name: norm, kind: batchnorm}"; /* behind a convolution */
static const char none[] = "{name: norm, kind: tanh}";
static const char act[] = "{name: act, kind: tanh}";

static void put(const char *name, const char *text) {
    FILE *file = fopen(in_folder(name), "w");
    assert_non_null(file);
    (void)fputs(text, file);
    (void)fclose(file);
}

/* `image` and `row` normalise what a convolution and what a dense layer gives. */
static void read_run(const char *image, const char *row, const char *const *set, uint32_t sets,
                     rp_runfile *out) {
    char model[1024];
    char path[600];
    (void)snprintf(model, sizeof model,
                   "input: data\nlayers:\n"
                   "  - {name: conv, kind: conv2d, out: 4, kernel: 3, pad: 1}\n  - %s\n"
                   "  - {name: pool, kind: globalavgpool}\n  - {name: flat, kind: flatten}\n"
                   "  - {name: f1, kind: dense, out: 4}\n  - %s\n"
                   "  - {name: f2, kind: dense, out: classes}\n",
                   image, row);
    put("model.yaml", model);
    put("run.yaml", run_text);
    (void)snprintf(path, sizeof path, "%s", in_folder("run.yaml"));
    expect_ok(rp_runfile_read(&arena, path, set, sets, out));
}

typedef struct {
    const char *image, *row, *set[3];
    const char *refused; /* text, or NULL */
    bool noted;
} value_case;

static void expect_values(const value_case *c) {
    rp_runfile run;
    rp_notes notes = {0};
    uint32_t sets = 0;
    while (sets < 3 && c->set[sets]) {
        sets++;
    }
    read_run(c->image, c->row, c->set, sets, &run);
    const rp_err err = rp_runfile_check_values(&run);
    if (c->refused) {
        assert_int_equal(rp_err_exit_code(err), 2);
        assert_non_null(strstr(rp_err_message(), c->refused));
    } else {
        expect_ok(err);
        expect_ok(rp_runfile_note(&arena, &run, &notes));
        assert_int_equal(notes.count, c->noted);
        assert_true(
            !c->noted ||
            strstr(notes.text[0], "layer 'bn': the last microbatch of a step has one sample"));
    }
    rp_runfile_close(&run);
}

static void a_value_that_is_normalised_by_itself(void **state) {
    (void)state;
    static const char bn[] = "{name: bn, kind: batchnorm}";
    static const char deferred[] = "{name: bn, kind: batchnorm, deferred: true}";
    static const char each[] = "{name: gn, kind: groupnorm, groups: 4}";
    static const char two[] = "{name: gn, kind: groupnorm, groups: 2}";
    static const value_case cases[] = {
        {pixels,
         bn,
         {"train.microbatch=1"},
         "layer 'bn': batchnorm normalises over a micro",
         false},
        {none, deferred, {"train.microbatch=1"}, "(train.batch, train.microbatch)", false},
        {none, bn, {"train.batch=1", "train.microbatch=1"}, "run.yaml:4", false},
        {none, bn, {"data.train=1"}, "layer 'bn'", false},
        {none, bn, {"train.microbatch=1", "train.freeze=[bn]"}, NULL, false},
        {pixels, act, {"train.microbatch=1"}, NULL, false}, /* 784 values */
        {none, each, {NULL}, "layer 'gn' of ./model.yaml: groupnorm normalises one value", false},
        {none, two, {"train.microbatch=1"}, NULL, false},
        {none, bn, {NULL}, NULL, false},                                 /* 4 4 4 4, and 2 */
        {none, bn, {"train.microbatch=5"}, NULL, true},                  /* 5 5 5 1 */
        {none, bn, {"train.batch=7", "train.microbatch=7"}, NULL, true}, /* 50 by 7 leaves 1 */
        {none, bn, {"train.batch=8"}, NULL, false},                      /* 4 4, and 2 */
        {none, bn, {"train={epochs: 1, batch: 5}", "lanes={count: 3, lane: 0}"}, NULL, false},
        {none, bn, {"train={epochs: 1, batch: 5}", "lanes={count: 3, lane: 2}"}, NULL, true},
        {none, bn, {"train={epochs: 1, batch: 5}", "lanes.count=3"}, NULL, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        expect_values(&cases[i]);
    }
}

/* Boards that share a stage have parts of every step. */
static void a_share_of_one_sample(void **state) {
    (void)state;
    static const double one[2] = {0, 1.0 / 16};
    static const double five[2] = {0, 5.0 / 16};
    static const double half[2] = {0.5, 1};
    rp_runfile run;
    rp_notes notes = {0};
    read_run(none, "{name: bn, kind: batchnorm}", NULL, 0, &run);
    const uint32_t layers = run.model->layer_count;
    expect_err(rp_runfile_check_shared_values(&run, 0, layers, one), RP_ERR_USAGE);
    expect_ok(
        rp_runfile_check_shared_values(&run, 0, layers - 2, one)); /* bn is in another stage */
    expect_ok(rp_runfile_check_shared_values(&run, 0, layers, five));
    expect_ok(rp_runfile_note_shared(&arena, &run, 0, layers, five, &notes));
    assert_int_equal(notes.count, 1);
    expect_ok(rp_runfile_note_shared(&arena, &run, 0, layers, half, &notes));
    assert_int_equal(notes.count, 2); /* half of the last step's 2 samples */
    rp_runfile_close(&run);
}

static void a_warm_up_that_never_ends(void **state) {
    (void)state;
    static const char *const sets[] = {"lr_schedule={kind: cosine, warmup_steps: 13}",
                                       "lr_schedule={kind: cosine, warmup_steps: 12}"};
    for (uint32_t i = 0; i < 2; i++) { /* of 12 steps */
        rp_runfile run;
        rp_notes notes = {0};
        read_run(none, act, &sets[i], 1, &run);
        expect_ok(rp_runfile_note(&arena, &run, &notes));
        assert_int_equal(notes.count, 1 - i);
        assert_true(i > 0 || strstr(notes.text[0], "ends at 0.0923 and never reaches 0.1"));
        rp_runfile_close(&run);
    }
}

/* `want` NULL: it does not change. */
static void expect_rate(const char *before, const char *const *now, uint32_t sets, uint64_t step,
                        const rp_rate_change *want) {
    rp_rate_change got;
    rp_runfile run;
    rp_node *root;
    expect_ok(rp_config_read_text(&arena, before, strlen(before), "run.yaml", &root));
    read_run(none, act, now, sets, &run);
    assert_int_equal(rp_runfile_rate_change(root, &run, step, &got), want != NULL);
    if (want) {
        expect_close(got.before, want->before, 1e-4, 0);
        expect_close(got.now, want->now, 1e-4, 0);
        assert_true(got.steps == want->steps && got.steps_before == want->steps_before);
        assert_true(got.curve == want->curve || strcmp(got.curve, want->curve) == 0);
    }
    rp_runfile_close(&run);
}

static void a_rate_that_jumps(void **state) {
    (void)state;
    static const char cosine[] = "train: {epochs: 3, batch: 16}\n"
                                 "optimizer: {kind: sgd, lr: 0.1}\nlr_schedule: cosine\n";
    static const char constant[] =
        "train: {steps: 8, batch: 16}\noptimizer: {kind: sgd, lr: 0.1}\n";
    static const char *const longer[] = {"lr_schedule=cosine", "train.epochs=6"};
    static const char *const other[] = {"optimizer.lr=0.02", "train.epochs=9"};
    const rp_rate_change is_longer = {
        .before = 0.0017037, .now = 0.05, .curve = "cosine", .steps = 24, .steps_before = 12};
    expect_rate(cosine, longer, 1, 12, NULL);
    expect_rate(cosine, longer, 2, 0, NULL); /* nothing has been trained */
    expect_rate(cosine, longer, 2, 12, &is_longer);
    expect_rate(constant, longer + 1, 1, 8, NULL);
    expect_rate(constant, other, 2, 8, &(rp_rate_change){.before = 0.1, .now = 0.02});
    expect_rate("no: run\n", longer, 2, 12, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_value_that_is_normalised_by_itself, setup, teardown),
        cmocka_unit_test_setup_teardown(a_share_of_one_sample, setup, teardown),
        cmocka_unit_test_setup_teardown(a_warm_up_that_never_ends, setup, teardown),
        cmocka_unit_test_setup_teardown(a_rate_that_jumps, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
