/* A rule over files: f32 weights, an f64 state, and files that cannot be averaged. */
#include "folder.h"

#include <math.h>

#include "base/safetensors.h"
#include "federation/center.h"
#include "golden.h"

enum { MANY = 10000 }; /* more than one piece */

/* Two tensors with the golden weights, a running statistic, a counter, and many values. */
static const char *write_weights(const char *name, const double *w, float variance, float many) {
    static float values[MANY];
    const rp_st_entry entry[] = {{"a.weight", RP_ST_F32, 1, {1}, 0, 4},
                                 {"bn.running_var", RP_ST_F32, 1, {1}, 4, 4},
                                 {"bn.batches", RP_ST_I64, 0, {0}, 8, 8},
                                 {"b.weight", RP_ST_F32, 2, {1, 1}, 16, 4},
                                 {"c.weight", RP_ST_F32, 1, {MANY}, 20, sizeof values}};
    const float first = (float)w[0];
    const float second = (float)w[1];
    const int64_t batches = (int64_t)variance;
    rp_st_writer *writer;
    char *path;
    for (uint32_t i = 0; i < MANY; i++) {
        values[i] = many * (float)i;
    }
    expect_ok(rp_arena_string(&arena, in_folder(name), &path));
    expect_ok(rp_st_create(&arena, path, entry, 5, NULL, false, &writer));
    expect_ok(rp_st_write(writer, 0, 0, &first, 4));
    expect_ok(rp_st_write(writer, 1, 0, &variance, 4));
    expect_ok(rp_st_write(writer, 2, 0, &batches, 8));
    expect_ok(rp_st_write(writer, 3, 0, &second, 4));
    expect_ok(rp_st_write(writer, 4, 0, values, sizeof values));
    expect_ok(rp_st_commit(&writer));
    return path;
}

/* Of a model, only the names and roles of parameters are asked. */
static rp_model_param params[] = {
    {.name = "a.weight"}, {.name = "bn.running_var", .role = RP_PARAM_STATE}, {.name = "b.weight"}};
static const rp_model model = {.param_count = 3, .param = params};

static void read_golden(const char *path, double out[WEIGHTS], double *variance) {
    static const char *const names[] = {"a.weight", "b.weight", "bn.running_var"};
    rp_st_reader *reader;
    double found[3];
    expect_ok(rp_st_open(&arena, path, &reader));
    expect_ok(rp_st_check_sums(reader));
    for (uint32_t i = 0; i < 3; i++) {
        const rp_st_entry *entry = rp_st_find(reader, names[i]);
        const float *value;
        assert_non_null(entry);
        expect_ok(rp_st_need_f32(reader, names[i], entry->dims, entry->dim, &value));
        found[i] = (double)value[0];
    }
    out[0] = found[0];
    out[1] = found[1];
    *variance = found[2];
    rp_st_close(&reader);
}

typedef struct {
    rp_center_member member[SITES];
    rp_center_round round;
    char *center, *next, *state, *next_state;
} files;

static char *path_of(const char *name) {
    char *path;
    expect_ok(rp_arena_string(&arena, in_folder(name), &path));
    return path;
}

static files begin(const rp_rule *rule) {
    files f = {.center = path_of("center"),
               .next = path_of("next"),
               .state = path_of("state"),
               .next_state = path_of("next-state")};
    f.round = (rp_center_round){.center = f.center,
                                .next = f.next,
                                .next_state = f.next_state,
                                .rule = rule,
                                .model = &model,
                                .count = SITES};
    (void)write_weights("center", start, 1, 1);
    return f;
}

/* The sites train from the centre by their exact gradients. */
static void train_sites(files *f, const double *x, const uint32_t *steps) {
    static const char *const names[SITES] = {"site-0", "site-1", "site-2"};
    for (uint32_t i = 0; i < SITES; i++) {
        double y[WEIGHTS];
        char moved[16];
        (void)snprintf(moved, sizeof moved, "moved-%u", i);
        train_site(i, x, steps[i], 0, y);
        f->member[i] =
            (rp_center_member){.weights = write_weights(names[i], y, 2 + (float)i, 1 + (float)i),
                               .moved = path_of(moved),
                               .samples = samples[i],
                               .steps = steps[i]};
    }
    f->round.member = f->member;
}

static void take_round(files *f, const uint32_t *steps) {
    char digest[RP_CENTER_DIGEST];
    double x[WEIGHTS];
    double variance;
    uint32_t bad;
    if (f->round.round == 0) {
        memcpy(x, start, sizeof x);
    } else {
        read_golden(f->center, x, &variance);
    }
    train_sites(f, x, steps);
    f->round.round++;
    expect_ok(rp_center_make(&f->round, digest, &bad));
    assert_int_equal(rename(f->next, f->center), 0);
    if (rp_rule_has_v(f->round.rule)) {
        assert_int_equal(rename(f->next_state, f->state), 0);
        f->round.state = f->state;
    }
}

static void files_give_the_vectors(void **state) {
    const struct {
        rp_rule rule;
        const uint32_t *steps;
        double want[WEIGHTS];
    } cases[] = {
        {{.kind = RP_RULE_FEDAVG}, unequal, {0.8695890909720374, -1.2488287634479998}},
        {{.kind = RP_RULE_FEDAVGM, .lr = 1, .momentum = 0.9},
         unequal,
         {0.8061640012440373, -0.8330395634479996}},
        {{.kind = RP_RULE_FEDADAM,
          .variant = RP_RULE_ADAM,
          .lr = 0.1,
          .beta1 = 0.9,
          .beta2 = 0.99,
          .tau = 1e-3},
         unequal,
         {0.8232720878352708, -1.8039672154135953}},
        {{.kind = RP_RULE_FEDYOGI,
          .variant = RP_RULE_PAPER,
          .lr = 0.1,
          .beta1 = 0.9,
          .beta2 = 0.99,
          .tau = 1e-3},
         unequal,
         {0.7940533465955892, -1.770312326511165}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        files f = begin(&cases[i].rule);
        double x[WEIGHTS];
        double variance;
        take_round(&f, cases[i].steps);
        take_round(&f, cases[i].steps);
        read_golden(f.center, x, &variance);
        expect_close_all(x, cases[i].want, WEIGHTS, 0, 1e-6);
        /* (10 2 + 30 3 + 60 4) / 100, without momentum or moments */
        expect_close(variance, 3.5, 0, 1e-6);
    }
}

/* The state is kept in double, so only the centre is rounded. */
static void the_state_is_double(void **state) {
    const rp_rule rule = {.kind = RP_RULE_FEDAVGM, .lr = 1, .momentum = 0.9};
    files f = begin(&rule);
    rp_st_reader *reader;
    double v;
    (void)state;
    take_round(&f, unequal);
    expect_ok(rp_st_open(&arena, f.state, &reader));
    assert_int_equal(rp_st_count(reader), 3); /* none of the statistic, none of the counter */
    assert_string_equal(rp_st_meta(reader, "updates"), "1");
    assert_string_equal(rp_st_meta(reader, "round"), "1");
    const rp_st_entry *entry = rp_st_find(reader, "v.a.weight");
    assert_int_equal(entry->type, RP_ST_F64);
    memcpy(&v, rp_st_data(reader, entry), sizeof v);
    expect_close(v, 1 - 0.9295276780799998, 0, 1e-7);
    rp_st_close(&reader);
}

/* Everything but floats stays that of the centre; long tensors are averaged in pieces. */
static void all_values_are_averaged(void **state) {
    const rp_rule rule = {.kind = RP_RULE_FEDAVG, .equal = true};
    files f = begin(&rule);
    const uint64_t dim = MANY;
    rp_st_reader *reader;
    const float *values;
    int64_t batches;
    (void)state;
    take_round(&f, unequal);
    expect_ok(rp_st_open(&arena, f.center, &reader));
    expect_ok(rp_st_need_f32(reader, "c.weight", 1, &dim, &values));
    for (uint32_t i = 0; i < MANY; i++) {
        expect_close(values[i], 2.0 * i, 1e-6, 0); /* the mean of i, 2 i and 3 i */
    }
    memcpy(&batches, rp_st_data(reader, rp_st_find(reader, "bn.batches")), sizeof batches);
    assert_int_equal(batches, 1);
    assert_string_equal(rp_st_meta(reader, "round"), "1");
    rp_st_close(&reader);
}

/* The centre keeps its values of them, whatever a site sends, and the rule has no state of them. */
static void kept_tensors_stay(void **state) {
    static const char patterns[] = "keep: ['a.*', c.weight]\n";
    const rp_rule rule = {.kind = RP_RULE_FEDAVGM, .lr = 1, .momentum = 0.9};
    const uint64_t dim = MANY;
    files f = begin(&rule);
    rp_st_reader *reader;
    const float *values;
    rp_node *root;
    double x[WEIGHTS];
    double variance;
    (void)state;
    expect_ok(rp_config_read_text(&arena, patterns, strlen(patterns), "run.yaml", &root));
    f.round.keep = rp_node_find(root, "keep");
    take_round(&f, unequal);
    take_round(&f, unequal);
    read_golden(f.center, x, &variance);
    expect_close(x[0], start[0], 0, 0);
    expect_close(x[1], -0.8330395634479996, 0, 1e-6);
    expect_close(variance, 3.5, 0, 1e-6);
    expect_ok(rp_st_open(&arena, f.center, &reader));
    expect_ok(rp_st_need_f32(reader, "c.weight", 1, &dim, &values));
    for (uint32_t i = 0; i < MANY; i++) {
        expect_close(values[i], (double)i, 0, 0);
    }
    rp_st_close(&reader);
    expect_ok(rp_st_open(&arena, f.state, &reader));
    assert_int_equal(rp_st_count(reader), 1);
    assert_non_null(rp_st_find(reader, "v.b.weight"));
    rp_st_close(&reader);
}

static void elastic_sites_are_moved(void **state) {
    const rp_rule rule = {.kind = RP_RULE_ELASTIC, .equal = true, .alpha = 0.3};
    files f = begin(&rule);
    double z[WEIGHTS];
    double x[WEIGHTS];
    double y[WEIGHTS];
    double variance;
    (void)state;
    take_round(&f, equal);
    read_golden(f.center, z, &variance);
    expect_close(z[0], 1.1268732399999999, 0, 1e-6);
    expect_close(z[1], -1.46051375, 0, 1e-6);
    train_site(2, start, equal[2], 0, y);
    read_golden(f.member[2].moved, x, &variance);
    for (uint32_t j = 0; j < WEIGHTS; j++) {
        expect_close(x[j], y[j] - 0.3 * (y[j] - start[j]), 0, 1e-6);
    }
}

static void the_digest_is_that_of_the_values(void **state) {
    const rp_rule rule = {.kind = RP_RULE_FEDAVG};
    files f = begin(&rule);
    char digest[3][RP_CENTER_DIGEST];
    uint32_t bad;
    (void)state;
    train_sites(&f, start, unequal);
    expect_ok(rp_center_make(&f.round, digest[0], &bad));
    expect_ok(rp_center_make(&f.round, digest[1], &bad));
    assert_string_equal(digest[0], digest[1]);
    f.member[1].samples = 31;
    expect_ok(rp_center_make(&f.round, digest[2], &bad));
    assert_string_not_equal(digest[0], digest[2]);
}

static void bad_files_are_named(void **state) {
    const rp_rule rule = {.kind = RP_RULE_FEDAVG};
    files f = begin(&rule);
    const double wrong[WEIGHTS] = {1, (double)NAN};
    char digest[RP_CENTER_DIGEST];
    uint32_t bad;
    (void)state;
    train_sites(&f, start, unequal);
    (void)write_weights("site-1", wrong, 1, 1);
    expect_err(rp_center_make(&f.round, digest, &bad), RP_ERR_FORMAT);
    assert_int_equal(bad, 1);
    assert_non_null(strstr(rp_err_message(), "site-1"));
    assert_non_null(strstr(rp_err_message(), "b.weight"));
    train_sites(&f, start, unequal);
    f.member[2].weights = in_folder("missing");
    expect_err(rp_center_make(&f.round, digest, &bad), RP_ERR_IO);
    assert_int_equal(bad, 2);
    train_sites(&f, start, unequal);
    write_text("center", "no weights");
    expect_err(rp_center_make(&f.round, digest, &bad), RP_ERR_FORMAT);
    assert_int_equal(bad, SITES);
    assert_int_not_equal(access(f.next, F_OK), 0); /* nothing was made */
}

/* A rate that is too large ends in infinity, which is no centre. */
static void a_centre_is_finite(void **state) {
    const rp_rule rule = {.kind = RP_RULE_FEDAVGM, .lr = 1e45};
    files f = begin(&rule);
    char digest[RP_CENTER_DIGEST];
    uint32_t bad;
    (void)state;
    train_sites(&f, start, unequal);
    expect_err(rp_center_make(&f.round, digest, &bad), RP_ERR_NUMERIC);
    assert_int_equal(bad, SITES);
    assert_int_not_equal(access(f.next, F_OK), 0);
}

/* A state that does not belong to the centre is refused. */
static void a_state_must_fit(void **state) {
    const rp_rule rule = {.kind = RP_RULE_FEDAVGM, .lr = 1, .momentum = 0.9};
    files f = begin(&rule);
    char digest[RP_CENTER_DIGEST];
    uint32_t bad;
    (void)state;
    take_round(&f, unequal);
    const rp_rule moments = {.kind = RP_RULE_FEDADAM, .lr = 1, .tau = 1e-3};
    f.round.rule = &moments;
    expect_err(rp_center_make(&f.round, digest, &bad), RP_ERR_FORMAT);
    assert_non_null(strstr(rp_err_message(), "m.a.weight"));
    f.round.rule = &rule;
    f.round.state = f.center;
    expect_err(rp_center_make(&f.round, digest, &bad), RP_ERR_FORMAT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(files_give_the_vectors, setup, teardown),
        cmocka_unit_test_setup_teardown(the_state_is_double, setup, teardown),
        cmocka_unit_test_setup_teardown(all_values_are_averaged, setup, teardown),
        cmocka_unit_test_setup_teardown(kept_tensors_stay, setup, teardown),
        cmocka_unit_test_setup_teardown(elastic_sites_are_moved, setup, teardown),
        cmocka_unit_test_setup_teardown(the_digest_is_that_of_the_values, setup, teardown),
        cmocka_unit_test_setup_teardown(bad_files_are_named, setup, teardown),
        cmocka_unit_test_setup_teardown(a_centre_is_finite, setup, teardown),
        cmocka_unit_test_setup_teardown(a_state_must_fit, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
