/* What a round of a site writes and reads: asked.json, losses, weights, round.json. */
#include "folder.h"

#include <math.h>

#include "base/safetensors.h"
#include "sites/answer.h"
#include "sites/state.h"

static void expect_part(const char *part) {
    if (!strstr(rp_err_message(), part)) {
        fail_msg("'%s' is not in '%s'", part, rp_err_message());
    }
}

static rp_round_asked example(void) {
    return (rp_round_asked){
        .round = 7, .site = "a", .steps = 50, .in = "0123456789abcdef", .run = "fedcba9876543210"};
}

/* The folder's round is not `asked`, and the message has `part`. */
static void refuse_claim(const rp_round_asked *asked, const char *part) {
    bool claimed;
    expect_err(rp_round_find_claim(folder, asked, &claimed), RP_ERR_USAGE);
    expect_part(part);
}

static void expect_claimed(const rp_round_asked *asked, bool want) {
    bool claimed = !want;
    expect_ok(rp_round_find_claim(folder, asked, &claimed));
    assert_int_equal(claimed, want);
}

static void test_claim(void **state) {
    rp_round_asked asked = example();
    (void)state;
    expect_claimed(&asked, false);
    expect_ok(rp_round_claim(folder, &asked));
    expect_claimed(&asked, true);
    asked.round = 8;
    refuse_claim(&asked, "--round is 7 there and 8 now");
    asked = example();
    asked.in[0] = '1';
    refuse_claim(&asked, "the digest of --in is \"0123456789abcdef\" there");
    asked = example();
    (void)snprintf(asked.split, sizeof asked.split, "aa");
    refuse_claim(&asked, "data.site.split is");
    /* a rule that is not asked for any more, or is new */
    asked = example();
    asked.rules.clip = 2;
    refuse_claim(&asked, "--clip is missing there and 2.0 now");
    asked = example();
    asked.site = "b";
    refuse_claim(&asked, "data.site.name is");
    /* a folder that was given back belongs to the next round */
    expect_ok(rp_round_release(folder));
    expect_ok(rp_round_release(folder));
    expect_claimed(&asked, false);
    asked.rules = (rp_round_rules){.keep = (const char *const[]){"bn*"},
                                   .keep_count = 1,
                                   .anchor = 0.5,
                                   .drift = true,
                                   .keeps_optimizer = true};
    expect_ok(rp_round_claim(folder, &asked));
    expect_claimed(&asked, true);
    asked.rules.drift = false;
    refuse_claim(&asked, "--drift is true there and missing now");
    write_text("asked.json", "{\"version\": 1");
    asked = example();
    refuse_claim(&asked, "asked.json:1");
    /* an answer without the question */
    expect_ok(rp_round_release(folder));
    write_text("round.json", "{}");
    refuse_claim(&asked, "round.json: exists, but");
    assert_int_equal(unlink(in_folder("round.json")), 0);
    expect_claimed(&asked, false);
}

/* The sum over the steps k of (1 - r^k) / (1 - r), from Wang et al.'s definition. */
static double sum_a(uint64_t steps, double r) {
    double sum = 0;
    for (uint64_t k = 1; k <= steps; k++) {
        sum += (1 - pow(r, (double)k)) / (1 - r);
    }
    return sum;
}

enum { STEPS_MOST = 40 };

/* With the same rate in each step; `pull`: rate times mu of the anchor. */
static double constant_a(uint64_t steps, double momentum, double pull) {
    double rate[STEPS_MOST];
    for (uint64_t k = 0; k < STEPS_MOST; k++) {
        rate[k] = 0.05;
    }
    return rp_round_norm_a(&(rp_round_steps){
        .rate = rate, .count = steps, .lr = 0.05, .momentum = momentum, .anchor = pull / 0.05});
}

static void test_norm_a(void **state) {
    (void)state;
    expect_close(constant_a(5, 0, 0), 5, 0, 0);
    expect_close(constant_a(2, 0.9, 0), 2.9, 1e-12, 0); /* 1 + 1.9 */
    for (uint64_t steps = 0; steps < STEPS_MOST; steps++) {
        const double k = (double)steps;
        expect_close(constant_a(steps, 0.9, 0), sum_a(steps, 0.9), 1e-11, 1e-12);
        expect_close(constant_a(steps, 0.5, 0), sum_a(steps, 0.5), 1e-11, 1e-12);
        expect_close(constant_a(steps, 0.9, 0), (k - 0.9 * (1 - pow(0.9, k)) / 0.1) / 0.1, 1e-11,
                     1e-12);
        expect_close(constant_a(steps, 0, 0.1), (1 - pow(0.9, k)) / 0.1, 1e-11, 1e-12);
    }
    expect_close(constant_a(3, 0, 0.1), 1 + 0.9 + 0.81, 1e-12, 0); /* with an anchor */
    assert_true(isnan(constant_a(3, 0.9, 0.1)));
}

/* (start - end) / lr of a scalar that SGD moves along a gradient of 1, as optim_sgd.c computes. An
 * anchor adds mu times the difference from the start to the gradient. */
static double move_scalar(const rp_round_steps *steps) {
    double w = 0;
    double buffer = 0;
    for (uint64_t k = 0; k < steps->count; k++) {
        const double g = 1 + steps->anchor * w;
        const bool gathers = steps->momentum > 0;
        buffer = k == 0 ? g : steps->momentum * buffer + (1 - steps->dampening) * g;
        const double d = !gathers ? g : steps->nesterov ? g + steps->momentum * buffer : buffer;
        w -= steps->rate[k] * d;
    }
    return -w / steps->lr;
}

/* Rates of a warm-up over five steps, then a quarter of the rate. */
static void test_norm_a_rates(void **state) {
    static const double rate[] = {0.02, 0.04, 0.06, 0.08, 0.1, 0.1, 0.025, 0.025};
    rp_round_steps steps = {.rate = rate, .count = 8, .lr = 0.1};
    (void)state;
    expect_close(rp_round_norm_a(&steps), 4.5, 1e-12, 0);
    steps.momentum = 0.9;
    expect_close(rp_round_norm_a(&steps), move_scalar(&steps), 1e-12, 0);
    steps.count = 3;
    expect_close(rp_round_norm_a(&steps), 0.2 + 0.4 * 1.9 + 0.6 * 2.71, 1e-12, 0);
    steps.count = 8;
    steps.nesterov = true;
    expect_close(rp_round_norm_a(&steps), move_scalar(&steps), 1e-12, 0);
    steps.nesterov = false;
    steps.dampening = 0.3;
    expect_close(rp_round_norm_a(&steps), move_scalar(&steps), 1e-12, 0);
    steps = (rp_round_steps){.rate = rate, .count = 8, .lr = 0.1, .anchor = 3};
    expect_close(rp_round_norm_a(&steps), move_scalar(&steps), 1e-12, 0);
    steps.lr = 0;
    assert_true(isnan(rp_round_norm_a(&steps)));
}

static void test_losses(void **state) {
    rp_site_losses losses;
    (void)state;
    write_text("log.jsonl", "{\"step\":1,\"loss\":4.0}\n"
                            "{\"step\":2,\"loss\":3.0}\n"
                            "{\"event\":\"eval\",\"step\":2,\"loss\":9.0}\n"
                            "{\"event\":\"resume\",\"step\":1}\n"
                            "{\"step\":2,\"loss\":2.0}\n"
                            "{\"step\":3,\"loss\":0.0}\n");
    expect_ok(rp_site_read_losses(in_folder("log.jsonl"), UINT64_MAX, &losses));
    assert_int_equal(losses.steps, 3);
    expect_close(losses.first, 4, 0, 0);
    expect_close(losses.mean, 2, 0, 0);
    expect_close(losses.last, 0, 0, 0);
    expect_ok(rp_site_read_losses(in_folder("log.jsonl"), 2, &losses));
    assert_int_equal(losses.steps, 2);
    expect_close(losses.last, 2, 0, 0);
    assert_false(losses.skipped);
    write_text("log.jsonl", "{\"event\":\"skipped\",\"step\":1}\n"
                            "{\"step\":1,\"loss\":null}\n");
    expect_ok(rp_site_read_losses(in_folder("log.jsonl"), UINT64_MAX, &losses));
    assert_true(isnan(losses.mean));
    assert_true(losses.skipped);
    write_text("log.jsonl", "");
    expect_ok(rp_site_read_losses(in_folder("log.jsonl"), UINT64_MAX, &losses));
    assert_int_equal(losses.steps, 0);
    assert_true(isnan(losses.first));
    write_text("log.jsonl", "{\"step\":1,\"loss\":1.0}\nnot JSON\n");
    expect_err(rp_site_read_losses(in_folder("log.jsonl"), UINT64_MAX, &losses), RP_ERR_FORMAT);
    write_text("log.jsonl", "{\"step\":99999999999,\"loss\":1.0}\n");
    expect_err(rp_site_read_losses(in_folder("log.jsonl"), UINT64_MAX, &losses), RP_ERR_FORMAT);
    expect_err(rp_site_read_losses(in_folder("none.jsonl"), UINT64_MAX, &losses), RP_ERR_IO);
}

/* A file with the tensors `w` [2] and, if `others`, `count` (I64) and `left` [1]. */
static void write_weights(const char *name, double first, double second, bool others) {
    static const char *const meta[] = {"format", "pt", NULL};
    const rp_st_entry entry[] = {
        {.name = "count", .type = RP_ST_I64, .dims = 0, .bytes = 8},
        {.name = "w", .type = RP_ST_F64, .dims = 1, .dim = {2}, .bytes = 16},
        {.name = "left", .type = RP_ST_F32, .dims = 1, .dim = {1}, .bytes = 4}};
    const rp_st_entry alone[] = {
        {.name = "w", .type = RP_ST_F32, .dims = 1, .dim = {2}, .bytes = 8}};
    const int64_t count = 77;
    const double w[] = {first, second};
    const float narrow[] = {(float)first, (float)second};
    const float left = 0.5f;
    rp_st_writer *writer = NULL;
    if (others) {
        expect_ok(rp_st_create(&arena, in_folder(name), entry, 3, meta, false, &writer));
        expect_ok(rp_st_write(writer, 0, 0, &count, 8));
        expect_ok(rp_st_write(writer, 1, 0, w, 16));
        expect_ok(rp_st_write(writer, 2, 0, &left, 4));
    } else {
        expect_ok(rp_st_create(&arena, in_folder(name), alone, 1, meta, false, &writer));
        expect_ok(rp_st_write(writer, 0, 0, narrow, 8));
    }
    expect_ok(rp_st_commit(&writer));
}

static void test_weights(void **state) {
    static const char *const keep[] = {"w"};
    rp_round_rules rules = {0};
    rp_st_reader *reader = NULL;
    rp_site_difference out;
    (void)state;
    write_weights("given", 1, 2, true);
    write_weights("trained", 4, -2, false);
    expect_ok(rp_site_write_weights(&arena, in_folder("given"), in_folder("trained"),
                                    in_folder("out"), &rules, &out));
    expect_close(out.norm, 5, 0, 0);
    assert_false(out.clipped);
    expect_ok(rp_st_open(&arena, in_folder("out"), &reader));
    assert_int_equal(rp_st_count(reader), 3);
    const rp_st_entry *w = rp_st_find(reader, "w");
    assert_int_equal(w->type, RP_ST_F32);
    const float *value;
    expect_ok(rp_st_need_f32(reader, "w", 1, (uint64_t[]){2}, &value));
    expect_close(value[0], 4, 0, 0);
    expect_close(value[1], -2, 0, 0);
    int64_t count;
    memcpy(&count, rp_st_data(reader, rp_st_find(reader, "count")), sizeof count);
    assert_int_equal(count, 77);
    expect_ok(rp_st_need_f32(reader, "left", 1, (uint64_t[]){1}, &value));
    expect_close(value[0], 0.5, 0, 0);
    rp_st_close(&reader);
    /* the difference (3, -4) is scaled to length 2.5 */
    rules.clip = 2.5;
    expect_ok(rp_site_write_weights(&arena, in_folder("given"), in_folder("trained"),
                                    in_folder("out"), &rules, &out));
    expect_close(out.norm, 5, 0, 0);
    assert_true(out.clipped);
    expect_ok(rp_st_open(&arena, in_folder("out"), &reader));
    expect_ok(rp_st_need_f32(reader, "w", 1, (uint64_t[]){2}, &value));
    expect_close(value[0], 2.5, 0, 0);
    expect_close(value[1], 0, 0, 0);
    rp_st_close(&reader);
    /* a kept tensor comes out as it came in */
    rules = (rp_round_rules){.keep = keep, .keep_count = 1};
    expect_ok(rp_site_write_weights(&arena, in_folder("given"), in_folder("trained"),
                                    in_folder("out"), &rules, &out));
    expect_close(out.norm, 0, 0, 0);
    expect_ok(rp_st_open(&arena, in_folder("out"), &reader));
    assert_int_equal(rp_st_find(reader, "w")->type, RP_ST_F64);
    rp_st_close(&reader);
    rules = (rp_round_rules){0};
    write_weights("trained", NAN, 0, false);
    expect_err(rp_site_write_weights(&arena, in_folder("given"), in_folder("trained"),
                                     in_folder("bad"), &rules, &out),
               RP_ERR_FORMAT);
    assert_int_not_equal(access(in_folder("bad"), F_OK), 0);
}

static void test_answer(void **state) {
    const rp_round_asked asked = example();
    const rp_site_start start = {.from = RP_SITE_NO_ROUND};
    const rp_round_answer answer = {.asked = &asked,
                                    .start = &start,
                                    .samples = 1600,
                                    .held = 812,
                                    .loss = {.steps = 50, .first = 2, .mean = NAN, .last = 1},
                                    .difference = {.norm = 0.25},
                                    .joules = 12.5,
                                    .optimizer = "sgd",
                                    .lr = 0.1,
                                    .norm_a = 50.5,
                                    .out = "00112233445566"};
    json_t *got = NULL;
    (void)state;
    expect_ok(rp_round_read_answer(folder, &got));
    assert_null(got);
    expect_ok(rp_round_write_answer(folder, &answer));
    expect_ok(rp_round_read_answer(folder, &got));
    assert_string_equal(json_string_value(json_object_get(got, "status")), "finished");
    assert_int_equal(json_integer_value(json_object_get(got, "held")), 812);
    expect_close(json_number_value(json_object_get(got, "joules")), 12.5, 0, 0);
    assert_true(json_is_null(json_object_get(json_object_get(got, "loss"), "mean")));
    assert_null(json_object_get(got, "split"));
    expect_close(json_number_value(json_object_get(got, "norm_a")), 50.5, 0, 0);
    json_decref(got);
}

static void test_digest(void **state) {
    char a[RP_SITES_DIGEST];
    char b[RP_SITES_DIGEST];
    (void)state;
    write_text("x", "one");
    expect_ok(rp_sites_digest_file(in_folder("x"), a));
    expect_ok(rp_sites_digest_file(in_folder("x"), b));
    assert_string_equal(a, b);
    write_text("x", "two");
    expect_ok(rp_sites_digest_file(in_folder("x"), b));
    assert_string_not_equal(a, b);
    expect_err(rp_sites_digest_file(in_folder("none"), b), RP_ERR_IO);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_claim, setup, teardown),
        cmocka_unit_test_setup_teardown(test_norm_a, setup, teardown),
        cmocka_unit_test_setup_teardown(test_norm_a_rates, setup, teardown),
        cmocka_unit_test_setup_teardown(test_losses, setup, teardown),
        cmocka_unit_test_setup_teardown(test_weights, setup, teardown),
        cmocka_unit_test_setup_teardown(test_answer, setup, teardown),
        cmocka_unit_test_setup_teardown(test_digest, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
