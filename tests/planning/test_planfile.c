/* A plan that somebody gives: what an earlier run wrote is taken, and what is changed in it by hand
 * is obeyed or refused with the file and the key in the message. */
#include "open_run.h"

#include "planning/planfile.h"

static char path[512];

static int open_run(void **state) {
    if (setup(state) != 0) {
        return -1;
    }
    read_run(&run, "schedule: 1f1b\noptimizer: {kind: sgd, lr: 0.1}\n");
    (void)snprintf(path, sizeof path, "%s", in_folder("plan.json"));
    return 0;
}

/* The plan of a cut in front of `second`, as its text. */
static rp_plan *make_plan(uint32_t second) {
    static const char *const names[] = {"0", "1"};
    const uint32_t first[] = {0, second, 3};
    const rp_cut cut = {.stage_count = 2, .first = first};
    const rp_planfile chosen = {.run = &run, .cut = &cut, .board = names};
    rp_plan *plan;
    expect_ok(rp_planfile_make(&arena, &chosen, &plan));
    return plan;
}

static void write_plan(const rp_plan *plan) {
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    expect_ok(rp_plan_write(plan, file));
    assert_int_equal(fclose(file), 0);
}

static void what_a_run_wrote_is_taken(void **state) {
    (void)state;
    rp_plan *given;
    for (uint32_t second = 1; second < 3; second++) {
        rp_plan *plan = make_plan(second);
        plan->edge[2].window = 1;
        write_plan(plan);
        expect_ok(rp_planfile_read(&arena, path, &run, "opencl", &given));
        assert_true(rp_plan_same(plan, given));
        assert_int_equal(given->edge[2].window, 1);
        assert_int_equal(given->stage[0].layer_count, second);
    }
}

static void how_long_is_the_runs_matter(void **state) {
    (void)state;
    rp_plan *given;
    const uint64_t steps = run.steps;
    run.steps = 1;
    write_plan(make_plan(1));
    run.steps = steps;
    expect_ok(rp_planfile_read(&arena, path, &run, "opencl", &given));
    assert_int_equal(given->steps, steps);
    assert_true(given->hold[0].slots >= make_plan(1)->hold[0].slots);
}

static void another_executor_stands_for_opencl(void **state) {
    (void)state;
    rp_plan *given;
    rp_plan *plan = make_plan(1);
    write_plan(plan);
    expect_ok(rp_planfile_read(&arena, path, &run, "digest", &given));
    plan->node[1].executor = "digest";
    write_plan(plan);
    expect_ok(rp_planfile_read(&arena, path, &run, "digest", &given));
    expect_err(rp_planfile_read(&arena, path, &run, "timed", &given), RP_ERR_USAGE);
}

/* The first `was` behind `behind` in the plan's text. */
static void edit(const char *behind, const char *was, const char *is) {
    static char text[1 << 16];
    FILE *file = fopen(path, "r");
    const size_t bytes = fread(text, 1, sizeof text - 1, file);
    (void)fclose(file);
    text[bytes] = '\0';
    char *from = strstr(text, behind);
    assert_non_null(from);
    char *at = strstr(from, was);
    assert_non_null(at);
    file = fopen(path, "w");
    (void)fprintf(file, "%.*s%s%s", (int)(at - text), text, is, at + strlen(was));
    assert_int_equal(fclose(file), 0);
}

static void wrong_plans_are_refused_by_key(void **state) {
    (void)state;
    static const struct {
        const char *behind, *was, *is, *message;
        rp_err err;
    } cases[] = {
        {"{", "model.yaml", "other.yaml", "model: is", RP_ERR_USAGE},
        {"{", "\"batch\": 16", "\"batch\": 32", "batch: is 32, the run file says 16", RP_ERR_USAGE},
        {"{", "\"microbatch\": 8", "\"microbatch\": 4", "microbatch: is 4, the run file says 8",
         RP_ERR_USAGE},
        {"{", "\"epoch_samples\": 64", "\"epoch_samples\": 60",
         "epoch_samples: is 60, the data set has 64", RP_ERR_USAGE},
        {"{", "\"version\": 1", "\"version\": 2", "version: expected", RP_ERR_FORMAT},
        {"{", "\"version\"", "\"varsion\"", "varsion: is not a key", RP_ERR_FORMAT},
        {"{", "\"1f1b\"", "\"gpipe\"", "schedule: expected", RP_ERR_FORMAT},
        {"\"model_digest\"", ": \"", ": \"z", "model_digest: expected", RP_ERR_FORMAT},
        {"\"nodes\"", "\"1\"", "\"x\"", "edges[", RP_ERR_FORMAT}, /* an edge to nowhere */
        {"\"nodes\"", "\"opencl\"", "\"abacus\"", "nodes[0].executor: is 'abacus'", RP_ERR_USAGE},
        {"\"nodes\"", "\"role\": \"both\"", "\"role\": \"neither\"",
         "nodes[0].holds[0].role: expected one of", RP_ERR_FORMAT},
        {"\"nodes\"", "\"stage\": 0", "\"stage\": 1", "stage 0: no node does the forward",
         RP_ERR_USAGE},
        {"\"nodes\"", "1.0", "0.5", "holds.samples: stage 0: no node does the forward from 0.5",
         RP_ERR_USAGE},
        {"\"nodes\"", "1.0", "1.5", "nodes[0].holds[0].samples: expected", RP_ERR_FORMAT},
        {"\"nodes\"", "1.0", "NaN", "invalid token near 'NaN'", RP_ERR_FORMAT},
        {"\"edges\"", "\"to\": \"0\"", "\"to\": \"2\"", "edges[0].to: expected the name of a node",
         RP_ERR_FORMAT},
        {"\"edges\"", "\"window\": ", "\"window\": -", "edges[0].window: expected", RP_ERR_FORMAT},
        {"\"edges\"", "\"codec\": \"f32\"", "\"codec\": \"f8\"",
         "edges[1].codec: expected one of f32 f16 bf16 int8 int4 uint8 topk-0.1 topk-0.03 "
         "topk-0.01",
         RP_ERR_FORMAT},
        {"\"stages\"", "\"fc1\"", "\"fc9\"", "stages[0].layers: layer 0 is 'fc9'", RP_ERR_USAGE},
        {"\"stages\"", "\"forward\": 8", "\"forward\": 4", "stages[0].backward:", RP_ERR_USAGE},
        {"\"stages\"", "\"recompute\": false", "\"recompute\": [\"fc9\"]",
         "stages[0].recompute[0]: expected layers", RP_ERR_USAGE},
        {"\"edges\"", "}", "", "plan.json:", RP_ERR_FORMAT},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rp_plan *given;
        write_plan(make_plan(1));
        edit(cases[i].behind, cases[i].was, cases[i].is);
        const rp_err err = rp_planfile_read(&arena, path, &run, "opencl", &given);
        if (err != cases[i].err || !strstr(rp_err_message(), cases[i].message) ||
            !strstr(rp_err_message(), path)) {
            fail_msg("%s -> %s: expected '%s' and the file, found %d '%s'", cases[i].was,
                     cases[i].is, cases[i].message, (int)err, rp_err_message());
        }
    }
}

/* They are the plan's own, unless the run file says others. */
static void a_plan_brings_its_codecs(void **state) {
    (void)state;
    static const rp_codec own[1][2] = {{RP_CODEC_INT8, RP_CODEC_F16}};
    static const rp_codec other[1][2] = {{RP_CODEC_INT8, RP_CODEC_F32}};
    rp_plan *given;
    rp_plan *plan = make_plan(1);
    rp_plan_set_codecs(plan, run.model, own);
    write_plan(plan);
    expect_ok(rp_planfile_read(&arena, path, &run, "opencl", &given));
    assert_true(rp_plan_same(plan, given));
    for (uint32_t e = 0; e < plan->edge_count; e++) {
        if (plan->edge[e].codec != RP_CODEC_F32) {
            assert_int_equal(given->edge[e].parcel_bytes, plan->edge[e].parcel_bytes);
        }
    }
    run.codec = own;
    expect_ok(rp_planfile_read(&arena, path, &run, "opencl", &given));
    run.codec = other;
    expect_err(rp_planfile_read(&arena, path, &run, "opencl", &given), RP_ERR_USAGE);
    assert_non_null(strstr(rp_err_message(), "codec: is f16, the run file's links.codec f32"));
    run.codec = NULL;
}

static void boards_train_with_one_microbatch(void **state) {
    (void)state;
    rp_plan *given;
    rp_plan *plan = make_plan(1);
    plan->stage[1].micro_forward = plan->stage[1].micro_backward = 4;
    for (uint32_t e = 0; e < plan->edge_count; e++) {
        plan->edge[e].window = 16;
    }
    write_plan(plan);
    expect_err(rp_planfile_read(&arena, path, &run, "opencl", &given), RP_ERR_USAGE);
    assert_non_null(strstr(rp_err_message(), path));
}

static void a_plan_in_pieces_is_refused(void **state) {
    (void)state;
    rp_plan *given;
    char *text = NULL;
    size_t bytes = 0;
    FILE *file = open_memstream(&text, &bytes);
    assert_non_null(file);
    expect_ok(rp_plan_write(make_plan(1), file));
    (void)fclose(file);
    for (size_t cut = 0; cut + 2 < bytes; cut += 37) {
        file = fopen(path, "w");
        assert_int_equal(fwrite(text, 1, cut, file), cut);
        (void)fclose(file);
        expect_err(rp_planfile_read(&arena, path, &run, "opencl", &given), RP_ERR_FORMAT);
        assert_non_null(strstr(rp_err_message(), path));
    }
    free(text);
    expect_err(rp_planfile_read(&arena, "/nowhere/plan.json", &run, "opencl", &given), RP_ERR_IO);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_a_run_wrote_is_taken, open_run, close_run),
        cmocka_unit_test_setup_teardown(how_long_is_the_runs_matter, open_run, close_run),
        cmocka_unit_test_setup_teardown(another_executor_stands_for_opencl, open_run, close_run),
        cmocka_unit_test_setup_teardown(wrong_plans_are_refused_by_key, open_run, close_run),
        cmocka_unit_test_setup_teardown(a_plan_brings_its_codecs, open_run, close_run),
        cmocka_unit_test_setup_teardown(boards_train_with_one_microbatch, open_run, close_run),
        cmocka_unit_test_setup_teardown(a_plan_in_pieces_is_refused, open_run, close_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
