#include "folder.h"

#include "lab/labfile.h"

static const char base_text[] = "model: mlp\ntrain: {batch: 64}\nschedule: gpipe\n";

static rp_err read_text(const char *text, rp_labfile *lab) {
    write_text("sub/run.yaml", base_text);
    return rp_labfile_read(&arena, write_text("sub/compare.yaml", text), lab);
}

static void a_plain_file(void **state) {
    (void)state;
    rp_labfile lab;
    expect_ok(read_text("base: run.yaml\nseeds: [3, 1]\nmethods:\n  a: {}\n"
                        "  b: {schedule: 1f1b, optimizer.lr: 0.1}\n",
                        &lab));
    assert_string_equal(lab.base, in_folder("sub/run.yaml")); /* beside the file, not the shell */
    assert_int_equal(lab.model_count, 1);
    assert_string_equal(lab.model[0], "mlp");
    assert_int_equal(lab.seed_count, 2);
    assert_int_equal(lab.seed_all, 2);
    assert_int_equal(lab.seed[0], 3);
    assert_int_equal(lab.baseline, lab.method_count);
    assert_false(lab.tune);
    assert_int_equal(lab.method_count, 2);
    assert_string_equal(lab.description, "");
    assert_int_equal(lab.method[0].point[0].set_count, 0);
    assert_string_equal(lab.method[1].name, "b");
    assert_int_equal(lab.method[1].point_count, 1);
    assert_string_equal(lab.method[1].point[0].label, "");
    assert_int_equal(lab.method[1].point[0].set_count, 2);
    assert_memory_equal(lab.method[1].point[0].set[0], "schedule=1f1b", 13);
    assert_memory_equal(lab.method[1].point[0].set[1], "optimizer.lr=0.1", 16);
}

static void sweeps_multiply(void **state) {
    (void)state;
    rp_labfile lab;
    expect_ok(read_text("base: run.yaml\nseeds: [1]\nmethods:\n  a:\n    optimizer.lr: [0.1, 0.2]\n"
                        "    schedule: [gpipe, {kind: x, y: 1}]\n    train.batch: [8]\n",
                        &lab));
    const rp_lab_method *method = &lab.method[0];
    assert_int_equal(method->point_count, 4);
    assert_null(method->sweep); /* two are swept */
    const char *const labels[] = {"lr=0.1, schedule=gpipe", "lr=0.1, schedule={kind: x, y: 1}",
                                  "lr=0.2, schedule=gpipe", "lr=0.2, schedule={kind: x, y: 1}"};
    const char *const tags[] = {"lr=0.1,schedule=gpipe", "lr=0.1,schedule.2",
                                "lr=0.2,schedule=gpipe", "lr=0.2,schedule.2"};
    for (uint32_t i = 0; i < 4; i++) {
        assert_string_equal(method->point[i].label, labels[i]);
        assert_string_equal(method->point[i].tag, tags[i]);
        assert_int_equal(method->point[i].set_count, 3);
        assert_memory_equal(method->point[i].set[2], "train.batch=8", 13); /* a list of one */
    }
}

/* What the assignments do to a tree is what counts. */
static void lists_in_lists_and_in_maps_are_values(void **state) {
    (void)state;
    rp_labfile lab;
    rp_node *root;
    uint32_t eight = 0;
    expect_ok(read_text("base: run.yaml\nseeds: [1]\nmethods:\n  a:\n    cut: [[conv2, fc1]]\n"
                        "    schedule: {kind: umpipe, forward: [8, 32]}\n    model2.x: 'a: \"b'\n",
                        &lab));
    assert_int_equal(lab.method[0].point_count, 1);
    expect_ok(rp_config_read_text(&arena, base_text, strlen(base_text), "base", &root));
    for (uint32_t i = 0; i < 3; i++) {
        expect_ok(rp_config_set(&arena, root, lab.method[0].point[0].set[i]));
    }
    rp_node *cut = rp_node_find(root, "cut");
    assert_int_equal(rp_node_count(cut), 2);
    assert_string_equal(rp_node_text(rp_node_item(cut, 1)), "fc1");
    rp_node *forward = rp_node_find(rp_node_find(root, "schedule"), "forward");
    assert_int_equal(rp_node_count(forward), 2);
    expect_ok(rp_node_item_u32(forward, 0, 0, 99, &eight));
    assert_int_equal(eight, 8);
    assert_string_equal(rp_node_text(rp_node_find(rp_node_find(root, "model2"), "x")), "a: \"b");
}

static void tuning(void **state) {
    (void)state;
    rp_labfile lab;
    expect_ok(read_text("base: run.yaml\nmodels: [mlp, own/net.yaml]\nseeds: [1, 2]\nbaseline: b\n"
                        "methods:\n  a: {optimizer.lr: [1, 2, 0.5]}\n  b: {}\n"
                        "tune: {metric: loss, seeds: [7, 2]}\n",
                        &lab));
    assert_int_equal(lab.model_count, 2);
    assert_string_equal(lab.model[1], "own/net.yaml");
    assert_string_equal(lab.folder[1], "net");
    assert_int_equal(lab.baseline, 1);
    assert_int_equal(lab.metric, RP_LAB_LOSS);
    assert_int_equal(lab.seed_count, 2);
    assert_int_equal(lab.seed_all, 3);
    assert_int_equal(lab.seed[2], 7);
    assert_true(!lab.tunes[0] && lab.tunes[1] && lab.tunes[2]);
    assert_string_equal(lab.method[0].sweep, "optimizer.lr");
    expect_close(lab.method[0].number[2], 0.5, 0, 0);
    expect_ok(read_text("base: run.yaml\nseeds: [5, 6]\nmethods: {a: {optimizer.lr: [1, x]}}\n"
                        "tune: {}\n",
                        &lab));
    assert_true(lab.tune && lab.tunes[0] && !lab.tunes[1]); /* the first seed */
    assert_int_equal(lab.metric, RP_LAB_AUTO);
    assert_null(lab.method[0].number);
    assert_null(lab.tune_set);
    expect_ok(read_text("base: run.yaml\nseeds: [5]\nmethods: {a: {optimizer.lr: [1, 2]}}\n"
                        "tune: {seeds: [7], set: {train.epochs: 1}}\n",
                        &lab));
    assert_int_equal(lab.tune_set->point->set_count, 1);
    assert_string_equal(lab.tune_set->point->set[0], "train.epochs=1");
}

static void expect_refused_file(const char *text, const char *line, const char *word) {
    rp_labfile lab;
    expect_err(read_text(text, &lab), RP_ERR_USAGE);
    char place[64];
    (void)snprintf(place, sizeof place, "compare.yaml:%s", line);
    if (!strstr(rp_err_message(), place) || !strstr(rp_err_message(), word)) {
        fail_msg("wanted '%s' and '%s' in '%s'", place, word, rp_err_message());
    }
}

static void wrong_files(void **state) {
    (void)state;
    expect_refused_file("seeds: [1]\nmethods: {a: {}}\n", "1", "base");
    expect_refused_file("base: run.yaml\nmethods: {a: {}}\n", "1", "seeds");
    expect_refused_file("base: run.yaml\nseeds: []\nmethods: {a: {}}\n", "2", "seeds");
    expect_refused_file("base: run.yaml\nseeds: [1, x]\nmethods: {a: {}}\n", "2", "'x'");
    expect_refused_file("base: run.yaml\nseeds: [1, 1]\nmethods: {a: {}}\n", "2", "twice");
    expect_refused_file("base: run.yaml\nseeds: [1]\n", "1", "methods");
    expect_refused_file("base: run.yaml\nseeds: [1]\nmethods: {}\n", "3", "methods");
    expect_refused_file("base: run.yaml\nseeds: [1]\nmethods:\n  a: {}\n  a: {}\n", "5", "twice");
    expect_refused_file("base: run.yaml\nseeds: [1]\nmethods:\n  a: gpipe\n", "4", "map");
    expect_refused_file("base: run.yaml\nseeds: [1]\nmethods:\n  a/b: {}\n", "4", "name");
    expect_refused_file("base: run.yaml\nseeds: [1]\nmethods:\n  ..: {}\n", "4", "name");
    expect_refused_file("base: run.yaml\nseeds: [1]\nmethods:\n  a:\n    x=y: 1\n", "5", "key");
    expect_refused_file("base: run.yaml\nseeds: [1]\nmethods:\n  a:\n    x..y: 1\n", "5", "key");
    expect_refused_file("base: run.yaml\nseeds: [1]\nmethods:\n  a:\n    x: []\n", "5", "sweep");
    expect_refused_file("base: run.yaml\nseeds: [1]\nmethods:\n  a: {train.seed: 4}\n", "4",
                        "seeds");
    expect_refused_file("base: run.yaml\nseeds: [1]\nmethods:\n  a: {model: mlp}\n", "4", "models");
    expect_refused_file("base: run.yaml\nseeds: [1]\nmethods:\n  a:\n    x.y: 1\n    x: {z: 2}\n",
                        "6", "x.y");
    expect_refused_file("base: run.yaml\nseeds: [1]\nmethods:\n  a: {x: [1, 1]}\n", "4", "twice");
    expect_refused_file("base: run.yaml\nseeds: [1]\nbaseline: c\nmethods: {a: {}}\n", "3", "'c'");
    expect_refused_file("base: run.yaml\nseeds: [1]\nbaseline: a\nmethods: {a: {x: [1, 2]}}\n", "3",
                        "tune");
    expect_refused_file("base: run.yaml\nseeds: [1]\nmethods: {a: {}}\ntune: {}\n", "1", "tune");
    expect_refused_file(
        "base: run.yaml\nseeds: [1]\nmethods: {a: {x: [1, 2]}}\ntune: {metric: speed}\n", "4",
        "accuracy");
    expect_refused_file("base: run.yaml\nseeds: [1]\nmethods: {a: {x: [1, 2]}}\ntune: {seed: 1}\n",
                        "4", "seeds");
    expect_refused_file(
        "base: run.yaml\nseeds: [1]\nmethods: {a: {x: [1, 2]}}\ntune: {set: {y: 1}}\n", "4",
        "tune.seeds");
    expect_refused_file("base: run.yaml\nseeds: [1]\nmethods: {a: {x: [1, 2]}}\n"
                        "tune: {seeds: [2], set: {y: [1]}}\n",
                        "4", "one value");
    expect_refused_file("base: run.yaml\nseeds: [1]\nmodels: [mlp, a/mlp.yaml]\nmethods: {a: {}}\n",
                        "3", "mlp");
    expect_refused_file("base: run.yaml\nseeds: [1]\nmodels: [..]\nmethods: {a: {}}\n", "3", "..");
    expect_refused_file("base: run.yaml\nseeds: [1]\nmethods: {a: {}}\nbaselin: a\n", "4",
                        "baseline");
    expect_refused_file("base: run.yaml\nseds: [1]\nmethods: {a: {}}\n", "2",
                        "did you mean 'seeds'");
    expect_refused_file("base: run.yaml\nseeds: [1]\nmethod: {a: {}}\n", "3",
                        "did you mean 'methods'");
}

static void too_much(void **state) {
    (void)state;
    char text[4096] = "base: run.yaml\nseeds: [1]\nmethods:\n  a:\n";
    for (int key = 0; key < 3; key++) { /* 8 x 8 x 8 points */
        size_t used = strlen(text);
        (void)snprintf(text + used, sizeof text - used, "    k%d: [1, 2, 3, 4, 5, 6, 7, 8]\n", key);
    }
    expect_refused_file(text, "4", "256");
}

static void no_base(void **state) {
    (void)state;
    rp_labfile lab;
    const char *path =
        write_text("compare.yaml", "base: gone.yaml\nseeds: [1]\nmethods: {a: {}}\n");
    expect_err(rp_labfile_read(&arena, path, &lab), RP_ERR_IO);
    assert_non_null(strstr(rp_err_message(), "gone.yaml"));
}

static void the_line_to_blame(void **state) {
    (void)state;
    rp_labfile lab;
    expect_ok(read_text("base: run.yaml\nseeds: [1]\nmethods:\n  a:\n    schedule: x\n"
                        "    optimizer.lr: y\n",
                        &lab));
    const rp_lab_method *a = &lab.method[0];
    const rp_node *node = rp_labfile_blame(a, "--set: optimizer.lr: expected a number");
    assert_int_equal(rp_node_line(node), 6);
    node = rp_labfile_blame(a, "run.yaml:3: train.batch: too large");
    assert_int_equal(rp_node_line(node), 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_plain_file, setup, teardown),
        cmocka_unit_test_setup_teardown(sweeps_multiply, setup, teardown),
        cmocka_unit_test_setup_teardown(lists_in_lists_and_in_maps_are_values, setup, teardown),
        cmocka_unit_test_setup_teardown(tuning, setup, teardown),
        cmocka_unit_test_setup_teardown(wrong_files, setup, teardown),
        cmocka_unit_test_setup_teardown(too_much, setup, teardown),
        cmocka_unit_test_setup_teardown(no_base, setup, teardown),
        cmocka_unit_test_setup_teardown(the_line_to_blame, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
