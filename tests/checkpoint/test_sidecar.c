/* What a checkpoint says of itself and what its sidecar files hold come from outside: taken as
 * written, or refused. */
#include "folder.h"

#include <math.h>

#include "checkpoint/checkpoint.h"

enum { STEP = 7, PARAMS = 2 };
static const char cut[] = "a,b";

/* A file of one or two entries; `data` lies in each. */
static rp_st_reader *open_file(rp_st_entry *entry, uint32_t count, const void *data,
                               const char *const *meta) {
    rp_st_writer *writer = NULL;
    rp_st_reader *reader = NULL;
    expect_ok(rp_st_create(&arena, in_folder("sidecar"), entry, count, meta, false, &writer));
    for (uint32_t i = 0; i < count; i++) {
        expect_ok(rp_st_write(writer, i, 0, data, entry[i].bytes));
    }
    expect_ok(rp_st_commit(&writer));
    expect_ok(rp_st_open(&arena, in_folder("sidecar"), &reader));
    return reader;
}

typedef struct {
    const char *name, *made_for, *fill;
    const char *end; /* NULL: is not there */
    rp_st_type type;
    uint64_t bytes;
    const char *fault; /* NULL: is read */
} in_flight_case;

static rp_err read_in_flight(const in_flight_case *c, rp_in_flight *out) {
    static const char data[64] = "what was in flight";
    const uint64_t count = c->type == RP_ST_F32 ? c->bytes / sizeof(float) : c->bytes;
    const char *const meta[] = {
        "cut", c->made_for, c->fill ? "fill" : NULL, c->fill, c->end ? "end" : NULL, c->end, NULL};
    rp_st_entry entry[] = {{"stage.0", RP_ST_U8, 1, {8}, 0, 8},
                           {c->name, c->type, 1, {count}, 0, c->bytes}};
    rp_st_reader *reader = open_file(entry, 2, data, meta);
    const rp_err err = rp_checkpoint_read_in_flight(&arena, reader, "sidecar", cut, 2, STEP, out);
    if (err == RP_OK && out->here) {
        assert_int_equal(out->part[1].bytes, c->bytes);
        assert_memory_equal(out->part[1].data, data, c->bytes);
    }
    rp_st_close(&reader);
    return err;
}

static void in_flight_files(void **state) {
    (void)state;
    static const in_flight_case cases[] = {
        {"stage.1", "a,b", "0", NULL, RP_ST_U8, 16, NULL},
        {"stage.1", "a,b", "7", NULL, RP_ST_U8, 0, NULL},
        {"stage.1", "a,c", "9", NULL, RP_ST_U8, 16, NULL}, /* of another cut: forwarded anew */
        {"stage.1", "a,b", "8", NULL, RP_ST_U8, 16, "expected a step up to 7"},
        {"stage.1", "a,b", "-1", NULL, RP_ST_U8, 16, "expected a step up to 7"},
        {"stage.1", "a,b", "5x", NULL, RP_ST_U8, 16, "expected a step up to 7"},
        {"stage.1", "a,b", "", NULL, RP_ST_U8, 16, "expected a step up to 7"},
        {"stage.1", "a,b", "99999999999999999999", NULL, RP_ST_U8, 16, "expected a step up to 7"},
        {"stage.1", "a,b", NULL, NULL, RP_ST_U8, 16, "the metadata `cut` and `fill` are missing"},
        {"stage.2", "a,b", "5", NULL, RP_ST_U8, 16, "stage.1: is missing"},
        {"stage.1", "a,b", "5", NULL, RP_ST_F32, 16,
         "stage.1: is missing, or not an array of bytes in whole floats"},
        {"stage.1", "a,b", "5", NULL, RP_ST_U8, 15,
         "stage.1: is missing, or not an array of bytes in whole floats"},
        {"stage.1", "a,b", "5", "7", RP_ST_U8, 16, NULL},
        {"stage.1", "a,b", "5", "6", RP_ST_U8, 16, "`end` is '6', expected a step from 7"},
        {"stage.1", "a,b", "5", "x", RP_ST_U8, 16, "`end` is 'x'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rp_in_flight in_flight;
        const rp_err err = read_in_flight(&cases[i], &in_flight);
        if (err != (cases[i].fault ? RP_ERR_FORMAT : RP_OK) ||
            (cases[i].fault && !strstr(rp_err_message(), cases[i].fault))) {
            fail_msg("case %zu: %d, %s", i, (int)err, rp_err_message());
        }
        const bool here = !cases[i].fault && strcmp(cases[i].made_for, cut) == 0;
        assert_int_equal(err == RP_OK && in_flight.here, here);
        assert_int_equal(err == RP_OK ? in_flight.fill_step : 0,
                         here ? strtoul(cases[i].fill, NULL, 10) : 0);
        assert_int_equal(err == RP_OK ? in_flight.end : 0, here && cases[i].end ? 7 : 0);
    }
}

static rp_err read_applied(const char *schedule, uint32_t stages, const char *text,
                           rp_applied *out) {
    char line[128];
    rp_method method;
    rp_node *root;
    (void)snprintf(line, sizeof line, "schedule: %s", schedule);
    expect_ok(rp_config_read_text(&arena, line, strlen(line), "test", &root));
    expect_ok(rp_method_parse(root, stages, &method));
    return rp_checkpoint_read_applied(&arena, text, "sidecar", &method, STEP, out);
}

static void updates_applied(void **state) {
    (void)state;
    static const char two[] = "{kind: ea-pipe, replicas: 2}";
    static const char lean[] = "{kind: ea-pipe, lean: true}";
    static const struct {
        const char *schedule, *text;
        uint32_t stages; /* 0: is refused */
        uint64_t last;   /* of the last stage's last replica */
    } cases[] = {
        {"gpipe", "7;0;5", 3, 5}, {"gpipe", "0", 1, 0},
        {two, "4,3;4,2", 2, 2},   {lean, "3,2,2;4,3;7", 3, 7},
        {"gpipe", "7;7;8", 0, 0}, /* more than steps */
        {"gpipe", "", 0, 0},      {"gpipe", ";", 0, 0},
        {"gpipe", "7;", 0, 0},    {"gpipe", ";7", 0, 0},
        {"gpipe", "7;;7", 0, 0},  {"gpipe", "7,7", 0, 0},
        {"gpipe", "7;x", 0, 0},   {"gpipe", "7;5x", 0, 0},
        {"gpipe", "7;-1", 0, 0},  {"gpipe", " 7", 0, 0},
        {"gpipe", "+7", 0, 0},    {"gpipe", "18446744073709551616", 0, 0},
        {two, "4,3;4", 0, 0},     {two, "4,3,3;4,2", 0, 0},
        {two, "4,3;4,2,", 0, 0},  {lean, "3,2,2;4,3,1;7", 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rp_applied applied;
        const rp_err err = read_applied(cases[i].schedule, 3, cases[i].text, &applied);
        if (err != (cases[i].stages ? RP_OK : RP_ERR_FORMAT) ||
            (err != RP_OK && !strstr(rp_err_message(), "sidecar: `applied` is '"))) {
            fail_msg("case %zu: %d, %s", i, (int)err, rp_err_message());
        }
        if (err == RP_OK) {
            const uint64_t *last = applied.of[cases[i].stages - 1];
            const bool pairs = cases[i].schedule == two;
            assert_int_equal(applied.stages, cases[i].stages);
            assert_int_equal(last[pairs], cases[i].last);
        }
    }
}

static void too_many_stages(void **state) {
    (void)state;
    char text[2 * RP_CUT_STAGES_MAX + 2];
    rp_applied applied;
    for (uint32_t k = 0; k <= RP_CUT_STAGES_MAX; k++) {
        memcpy(text + 2 * (size_t)k, "1;", 2);
    }
    text[2 * RP_CUT_STAGES_MAX - 1] = '\0';
    expect_ok(read_applied("gpipe", 3, text, &applied));
    assert_int_equal(applied.stages, RP_CUT_STAGES_MAX);
    text[2 * RP_CUT_STAGES_MAX - 1] = ';';
    text[2 * RP_CUT_STAGES_MAX + 1] = '\0';
    expect_err(read_applied("gpipe", 3, text, &applied), RP_ERR_FORMAT);
}

/* By number: 0 entries in use; 1.. their steps; behind 6 of them aa, ab, rest, next, gain. */
enum { NUMBERS = 1 + RP_GAIN_HISTORY + PARAMS * (4 + RP_GAIN_HISTORY), SUMS = 7 };

static rp_err read_gains(const double *numbers, uint32_t count, rp_gain_estimator *estimator) {
    static const char *const none[] = {NULL};
    rp_st_entry entry = {"steer", RP_ST_F64, 1, {count}, 0, count * sizeof(double)};
    rp_st_reader *reader = open_file(&entry, 1, numbers, none);
    const rp_err err = rp_checkpoint_read_gains(&arena, reader, "sidecar", estimator);
    rp_st_close(&reader);
    return err;
}

static void gain_files(void **state) {
    (void)state;
    static const struct {
        uint32_t at;
        double value;
    } bad[] = {
        {0, -1},
        {0, 1.5},
        {0, RP_GAIN_HISTORY + 1},
        {0, (double)NAN},
        {1, -1},
        {1, 2.5},
        {2, 20},
        {3, 1e300},
        {SUMS, -1},
        {SUMS + 1, (double)INFINITY},
        {SUMS + 2, (double)NAN},
        {SUMS + 4, 9},
        {SUMS + 4, 0.5},
        {SUMS + 4, -1},
        {SUMS + 6, 1.5},
        {SUMS + 8, -0.5},
        {NUMBERS - 1, 2},
    };
    double numbers[NUMBERS] = {2, 20, 30}; /* two entries in use */
    double again[NUMBERS];
    rp_gain_estimator estimator;
    numbers[SUMS + 4] = 8;
    numbers[SUMS + 8] = 0.5;
    expect_ok(rp_gain_estimator_open(&arena, PARAMS, &estimator));
    expect_ok(read_gains(numbers, NUMBERS, &estimator));
    rp_gain_estimator_pack(&estimator, again);
    assert_memory_equal(numbers, again, sizeof numbers);
    assert_int_equal(read_gains(numbers, NUMBERS - 1, &estimator), RP_ERR_FORMAT);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const double was = numbers[bad[i].at];
        numbers[bad[i].at] = bad[i].value;
        if (read_gains(numbers, NUMBERS, &estimator) != RP_ERR_FORMAT) {
            fail_msg("number %u was taken as %g", bad[i].at, bad[i].value);
        }
        numbers[bad[i].at] = was;
    }
    expect_ok(read_gains(numbers, NUMBERS, &estimator));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(updates_applied, setup, teardown),
        cmocka_unit_test_setup_teardown(too_many_stages, setup, teardown),
        cmocka_unit_test_setup_teardown(in_flight_files, setup, teardown),
        cmocka_unit_test_setup_teardown(gain_files, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
