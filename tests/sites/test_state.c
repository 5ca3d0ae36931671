/* What a site keeps from one round to the next: state files, start.safetensors, drift. */
#include "folder.h"

#include <math.h>

#include "sites/start.h"
#include "sites/state.h"

static void expect_part(const char *part) {
    if (!strstr(rp_err_message(), part)) {
        fail_msg("'%s' is not in '%s'", part, rp_err_message());
    }
}

/* ---- files ----------------------------------------------------------------------------------- */

typedef struct {
    const char *name;
    double values[2];
    rp_st_type type; /* F32 or F64 */
} tensor;

static void write_tensors(const char *path, const tensor *tensors, uint32_t count) {
    static const char *const meta[] = {"format", "pt", NULL};
    rp_st_entry entry[8];
    rp_st_writer *writer = NULL;
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t size = tensors[i].type == RP_ST_F64 ? 8 : 4;
        entry[i] = (rp_st_entry){.name = tensors[i].name,
                                 .type = tensors[i].type,
                                 .dims = 1,
                                 .dim = {2},
                                 .bytes = 2 * size};
    }
    expect_ok(rp_st_create(&arena, in_folder(path), entry, count, meta, false, &writer));
    for (uint32_t i = 0; i < count; i++) {
        const float narrow[2] = {(float)tensors[i].values[0], (float)tensors[i].values[1]};
        const bool wide = tensors[i].type == RP_ST_F64;
        expect_ok(rp_st_write(writer, i, 0, wide ? (const void *)tensors[i].values : narrow,
                              (size_t)entry[i].bytes));
    }
    expect_ok(rp_st_commit(&writer));
}

static void expect_tensor(const rp_st_reader *reader, const char *name, double a, double b) {
    const float *value;
    expect_ok(rp_st_need_f32(reader, name, 1, (uint64_t[]){2}, &value));
    expect_close(value[0], a, 1e-7, 1e-7);
    expect_close(value[1], b, 1e-7, 1e-7);
}

/* The end of a round: weights `body` and `head`, momentum, a drift, and the start weights. */
static void write_trained(void) {
    static const tensor of[] = {{"body", {3, 5}, RP_ST_F32},
                                {"head", {7, 8}, RP_ST_F32},
                                {"optim.momentum_buffer.body", {0.5, 0.25}, RP_ST_F32},
                                {"optim.anchor.body", {9, 9}, RP_ST_F32},
                                {"optim.drift.body", {1, 2}, RP_ST_F32},
                                {"optim.drift.head", {1, 1}, RP_ST_F32}};
    write_tensors("trained", of, 6);
}

static void write_given(void) {
    static const tensor of[] = {{"body", {4, 4}, RP_ST_F64},
                                {"head", {1, 2}, RP_ST_F32},
                                {"other", {6, 6}, RP_ST_F32},
                                {"optim.momentum_buffer.body", {9, 9}, RP_ST_F32}};
    write_tensors("given", of, 4);
}

static const char *const heads[] = {"h*"};
static const rp_round_rules everything = {
    .keep = heads, .keep_count = 1, .drift = true, .keeps_optimizer = true};

static rp_site_state state_of(const rp_round_rules *rules, uint64_t round) {
    return (rp_site_state){.rules = rules,
                           .folder = folder,
                           .site = "a",
                           .round = round,
                           .trained = in_folder("trained"),
                           .optimizer = "sgd",
                           .updates = 12,
                           .rates = 0.5};
}

static rp_err make_start(const rp_round_rules *rules, uint64_t round, rp_site_start *out) {
    char *path;
    uint64_t from;
    rp_err err;
    RP_TRY(rp_site_find_state(&arena, folder, round, &path, &from));
    const rp_site_start_order order = {.rules = rules,
                                       .given = in_folder("given"),
                                       .state = path,
                                       .round = round,
                                       .from = from,
                                       .site = "a",
                                       .optimizer = "sgd"};
    RP_TRY(rp_site_make_start(&arena, &order, in_folder("start")));
    err = rp_site_read_start(&arena, in_folder("start"), out);
fail:
    return err;
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void first_round(void **state) {
    rp_st_reader *reader = NULL;
    rp_site_start start;
    (void)state;
    write_given();
    expect_ok(make_start(&everything, 4, &start));
    assert_true(start.from == RP_SITE_NO_ROUND);
    assert_false(start.optimizer || start.drift);
    assert_int_equal(start.kept, 1);
    assert_int_equal(start.own, 0);
    expect_ok(rp_st_open(&arena, in_folder("start"), &reader));
    assert_int_equal(rp_st_count(reader), 3); /* given states are not the site's */
    expect_tensor(reader, "body", 4, 4);
    expect_tensor(reader, "head", 1, 2);
    assert_string_equal(rp_st_meta(reader, "start_updates"), "0");
    rp_st_close(&reader);
}

static void later_round(void **state) {
    rp_site_state saved = state_of(&everything, 4);
    rp_st_reader *reader = NULL;
    rp_site_start start;
    (void)state;
    write_given();
    write_trained();
    expect_ok(rp_site_save_state(&arena, &saved));
    expect_ok(make_start(&everything, 5, &start));
    assert_int_equal(start.from, 4);
    assert_int_equal(start.updates, 12);
    assert_true(start.optimizer && start.drift);
    assert_int_equal(start.own, 1);
    expect_ok(rp_st_open(&arena, in_folder("start"), &reader));
    expect_tensor(reader, "body", 4, 4);
    expect_tensor(reader, "head", 7, 8); /* the site's own */
    expect_tensor(reader, "other", 6, 6);
    expect_tensor(reader, "optim.momentum_buffer.body", 0.5, 0.25);
    expect_tensor(reader, "optim.drift.body", 1 + (4 - 3) / 0.5, 2 + (4 - 5) / 0.5);
    assert_null(rp_st_find(reader, "optim.drift.head")); /* no average comes back */
    assert_null(rp_st_find(reader, "optim.anchor.body"));
    rp_st_close(&reader);
    /* a round was left out: the weights that would give the drift are unknown */
    expect_ok(make_start(&everything, 6, &start));
    assert_int_equal(start.from, 4);
    assert_true(start.optimizer && !start.drift);
    /* only what the rules name */
    expect_ok(make_start(&(rp_round_rules){.drift = true}, 5, &start));
    assert_int_equal(start.own, 0);
    assert_int_equal(start.updates, 0);
    assert_true(start.drift);
}

static void a_lost_folder(void **state) {
    rp_site_start start;
    (void)state;
    write_given();
    expect_ok(make_start(&everything, 9, &start));
    assert_true(start.from == RP_SITE_NO_ROUND);
    expect_err(rp_site_find_state(&arena, in_folder("none"), 1, &(char *){NULL}, &(uint64_t){0}),
               RP_ERR_IO);
}

static void rounds(void **state) {
    rp_site_state saved;
    char *path;
    uint64_t from;
    (void)state;
    write_trained();
    write_text("round-0000000099.safetensors.tmp", "");
    write_text("round-99.safetensors", "");
    for (uint64_t round = 1; round <= 4; round++) {
        saved = state_of(&everything, round);
        expect_ok(rp_site_save_state(&arena, &saved));
    }
    /* the last two are kept, so that the newest round can be done again */
    assert_int_not_equal(access(in_folder("round-0000000002.safetensors"), F_OK), 0);
    expect_ok(rp_site_find_state(&arena, folder, 5, &path, &from));
    assert_int_equal(from, 4);
    assert_int_equal(access(path, F_OK), 0);
    expect_ok(rp_site_find_state(&arena, folder, 4, &path, &from));
    assert_int_equal(from, 3);
    expect_err(rp_site_find_state(&arena, folder, 3, &path, &from), RP_ERR_USAGE);
    expect_part("finished round 4");
    /* a round that shall be done again with other settings */
    expect_ok(rp_site_drop_state(folder, 4));
    expect_ok(rp_site_drop_state(folder, 4));
    expect_ok(rp_site_drop_state(in_folder("none"), 4));
    expect_ok(rp_site_find_state(&arena, folder, 5, &path, &from));
    assert_int_equal(from, 3);
    saved = state_of(&everything, 4);
    expect_ok(rp_site_save_state(&arena, &saved));
    /* an old round that ends late does not take the place of a newer one */
    saved = state_of(&everything, 2);
    expect_ok(rp_site_save_state(&arena, &saved));
    assert_int_not_equal(access(in_folder("round-0000000002.safetensors"), F_OK), 0);
}

static void refusals(void **state) {
    static const char *const nothing[] = {"tail*"};
    const rp_round_rules no_match = {.keep = nothing, .keep_count = 1};
    rp_site_state saved = state_of(&everything, 1);
    const tensor nan = {"body", {NAN, 0}, RP_ST_F32};
    rp_site_start start;
    FILE *file;
    (void)state;
    write_given();
    write_trained();
    expect_err(make_start(&no_match, 1, &start), RP_ERR_USAGE);
    expect_part("'tail*' matches no tensor");
    saved.site = "b";
    expect_ok(rp_site_save_state(&arena, &saved));
    expect_err(make_start(&everything, 2, &start), RP_ERR_USAGE);
    expect_part("belongs to site 'b': expected a folder of its own for site 'a'");
    if (strstr(rp_err_message(), "remove")) { /* it is the state of another site */
        fail_msg("%s", rp_err_message());
    }
    saved = state_of(&everything, 1);
    saved.optimizer = "adam";
    expect_ok(rp_site_save_state(&arena, &saved));
    expect_err(make_start(&everything, 2, &start), RP_ERR_USAGE);
    expect_part("belongs to optimizer 'adam'");
    saved = state_of(&everything, 1);
    saved.rates = NAN;
    expect_ok(rp_site_save_state(&arena, &saved));
    expect_err(make_start(&everything, 2, &start), RP_ERR_FORMAT);
    expect_part("'rates'");
    saved = state_of(&everything, 1);
    expect_ok(rp_site_save_state(&arena, &saved));
    expect_ok(make_start(&everything, 2, &start));
    file = fopen(in_folder("round-0000000001.safetensors"), "r+");
    assert_non_null(file);
    assert_int_equal(fseek(file, -1, SEEK_END), 0);
    assert_int_not_equal(fputc(1, file), EOF);
    assert_int_equal(fclose(file), 0);
    expect_err(make_start(&everything, 2, &start), RP_ERR_FORMAT);
    assert_int_equal(unlink(in_folder("round-0000000001.safetensors")), 0);
    write_tensors("given", &nan, 1);
    expect_err(make_start(&(rp_round_rules){0}, 2, &start), RP_ERR_FORMAT);
    expect_part("body");
}

/* ---- the quadratic problem of FEDERATED's golden vectors --------------------------------------
 */

enum { SITES = 3, STEPS = 4, ROUNDS = 400 };
static const double rate = 0.1;
static const double steep[SITES][2] = {{1, 0.5}, {0.2, 2}, {0.6, 1}};
static const double least[SITES][2] = {{3, 0}, {-1, 1}, {0.5, -3}};

/* The distance from the optimum after the rounds. */
static double distance(bool drifts) {
    float d[SITES][2] = {{0}};
    float y[SITES][2];
    float x[2] = {1, -2};
    double squares = 0;
    for (int round = 0; round < ROUNDS; round++) {
        double sum[2] = {0};
        for (int i = 0; i < SITES; i++) {
            for (int j = 0; j < 2; j++) {
                y[i][j] = x[j];
                for (int step = 0; step < STEPS; step++) {
                    const double g = steep[i][j] * ((double)y[i][j] - least[i][j]);
                    y[i][j] = (float)((double)y[i][j] - rate * (g - (double)d[i][j]));
                }
                sum[j] += (double)y[i][j];
            }
        }
        for (int j = 0; j < 2; j++) {
            x[j] = (float)(sum[j] / SITES);
            for (int i = 0; i < SITES && drifts; i++) {
                d[i][j] = rp_site_next_drift(d[i][j], x[j], y[i][j], STEPS * rate);
            }
        }
    }
    for (int j = 0; j < 2; j++) {
        double top = 0;
        double bottom = 0;
        for (int i = 0; i < SITES; i++) {
            top += steep[i][j] * least[i][j];
            bottom += steep[i][j];
        }
        squares += pow((double)x[j] - top / bottom, 2);
    }
    return sqrt(squares);
}

static void drift_ends_at_the_optimum(void **state) {
    (void)state;
    assert_true(distance(true) < 1e-6);
    expect_close(distance(false), 0.124973, 0, 1e-5);
    expect_close(rp_site_next_drift(1, 5, 2, 0), 1, 0, 0); /* no step was done */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(first_round, setup, teardown),
        cmocka_unit_test_setup_teardown(later_round, setup, teardown),
        cmocka_unit_test_setup_teardown(a_lost_folder, setup, teardown),
        cmocka_unit_test_setup_teardown(rounds, setup, teardown),
        cmocka_unit_test_setup_teardown(refusals, setup, teardown),
        cmocka_unit_test(drift_ends_at_the_optimum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
