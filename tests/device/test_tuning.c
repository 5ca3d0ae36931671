#include "expect.h"

#include <math.h>
#include <unistd.h>

#include "device/tune.h"
#include "device/tuning.h"

static char path[] = "/tmp/rp-test-tuning-XXXXXX";

static rp_err read_text(rp_arena *arena, const char *text, rp_tuning *out) {
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    (void)fputs(text, file);
    assert_int_equal(fclose(file), 0);
    return rp_tuning_read(arena, path, out);
}

static void a_file_is_read(void **state) {
    (void)state;
    rp_arena arena;
    rp_tuning tuning;
    rp_arena_init(&arena, "test", 0);
    expect_ok(read_text(&arena,
                        "{\"gemm\": \"panel\", \"device\": \"a note\","
                        " \"panel\": {\"rows\": 12, \"depth\": 384, \"columns\": 96},"
                        " \"clblast\": {\"Xgemm\": {\"MWG\": 64, \"NWG\": 128}, \"XgemmDirect\": "
                        "{\"WGD\": 8}}, \"programs\": {\"pool\": \"-DWG=32\"}}",
                        &tuning));
    assert_int_equal(tuning.gemm, RP_GEMM_PANEL);
    assert_int_equal(tuning.panel.rows, 12);
    assert_int_equal(tuning.panel.depth, 384);
    assert_int_equal(tuning.panel.columns, 96);
    assert_int_equal(tuning.clblast_count, 2);
    assert_string_equal(tuning.clblast[0].kernel, "Xgemm");
    assert_int_equal(tuning.clblast[0].count, 2);
    assert_int_equal(tuning.clblast[0].value[1], 128);
    assert_string_equal(rp_tuning_defines(&tuning, "pool"), "-DWG=32");
    assert_null(rp_tuning_defines(&tuning, "norm"));
    expect_ok(read_text(&arena, "{}", &tuning));
    assert_int_equal(tuning.gemm, RP_GEMM_CLBLAST);
    assert_int_equal(tuning.panel.rows, rp_tuning_default().panel.rows);
    rp_arena_finish(&arena);
}

static void bad_files_are_named(void **state) {
    (void)state;
    static const char *const texts[][2] = {
        {"{", "1"},
        {"[1]", "map"},
        {"{\"gemm\": \"fast\"}", "gemm"},
        {"{\"gemm\": 1}", "gemm"},
        {"{\"panel\": {\"rows\": 9, \"depth\": 256, \"columns\": 128}}", "panel"},
        {"{\"panel\": {\"rows\": 8, \"depth\": 256}}", "panel"},
        {"{\"panel\": {\"rows\": 8, \"depth\": 256, \"columns\": 128, \"colour\": 1}}", "panel"},
        {"{\"clblast\": {\"Xgemm\": 3}}", "clblast.Xgemm"},
        {"{\"clblast\": {\"Xgemm\": {}}}", "clblast.Xgemm"},
        {"{\"clblast\": {\"Xgemm\": {\"MWG\": -1}}}", "MWG"},
        {"{\"programs\": {\"pool\": 3}}", "programs.pool"},
        {"{\"gemm\": \"panel\", \"gemm\": \"panel\"}", "duplicate"},
    };
    rp_arena arena;
    rp_tuning tuning;
    rp_arena_init(&arena, "test", 0);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        expect_err(read_text(&arena, texts[i][0], &tuning), RP_ERR_FORMAT);
        assert_non_null(strstr(rp_err_message(), path));
        assert_non_null(strstr(rp_err_message(), texts[i][1]));
    }
    expect_err(rp_tuning_read(&arena, "/no/such/tuning.json", &tuning), RP_ERR_IO);
    rp_arena_finish(&arena);
}

static void say_nothing(const char *text) {
    assert_non_null(text);
}

/* No time at all: only CLBlast as it comes is measured, and the file is whole. */
static void tuning_writes_what_reading_takes(void **state) {
    (void)state;
    rp_arena arena;
    rp_device *device;
    rp_tuning tuning;
    char first[4096] = "";
    rp_arena_init(&arena, "test", 0);
    if (rp_device_open(&arena, &(rp_device_options){0}, &device) != RP_OK) {
        print_message("no OpenCL device: %s\n", rp_err_message());
        skip();
    }
    rp_tune_result result;
    expect_ok(rp_tune_run(&arena, device, 0, say_nothing, &result));
    assert_true(result.before > 0 && result.found > 0);
    assert_false(result.better); /* it is the same one */
    expect_ok(rp_tune_write(&arena, &result, path));
    expect_ok(rp_tuning_read(&arena, path, &tuning));
    assert_int_equal(tuning.gemm, RP_GEMM_CLBLAST);
    assert_string_equal(tuning.device, rp_device_facts_of(device)->name);
    assert_string_equal(tuning.driver, rp_device_facts_of(device)->driver);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_true(fread(first, 1, sizeof first - 1, file) > 100);
    assert_int_equal(fclose(file), 0);
    assert_non_null(strstr(first, rp_device_facts_of(device)->name));
    assert_non_null(strstr(first, "512x512x512"));
    expect_err(rp_tune_write(&arena, &result, "/no/such/folder/tuning.json"), RP_ERR_IO);
    rp_device_close(&device);
    rp_arena_finish(&arena);
}

/* Noise is no gain, and what is no number is none either. */
static void only_what_is_faster_is_better(void **state) {
    (void)state;
    assert_true(rp_tune_is_better(100, 103));
    assert_false(rp_tune_is_better(100, 101));
    assert_false(rp_tune_is_better(100, 40));
    assert_true(rp_tune_is_better(0, 1)); /* what was there does not run */
    assert_false(rp_tune_is_better(0, 0));
    assert_false(rp_tune_is_better(100, NAN));
    assert_false(rp_tune_is_better(NAN, 100));
    assert_false(rp_tune_is_better(100, INFINITY));
}

static void put_file(const char *name, const char *text) {
    FILE *file = fopen(name, "w");
    assert_non_null(file);
    (void)fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

/* The user's own comes before the board's; one for another device or driver is not applied. */
static void which_tuning_is_in_force(void **state) {
    (void)state;
    static const rp_tuning_key key = {"Platform", "A (R) device", "1.2+deb"};
    static const char board[] = "{\"gemm\": \"panel\"}";
    static const char own[] = "{\"gemm\": \"clblast\", \"device\": \"A (R) device\","
                              " \"driver\": \"1.2+deb\"}";
    static const char other[] = "{\"gemm\": \"panel\", \"device\": \"A (R) device\","
                                " \"driver\": \"1.1\"}";
    char folder[] = "/tmp/rp-test-tunings-XXXXXX";
    rp_arena arena;
    rp_tuning tuning;
    rp_tuning_origin origin;
    char *mine;
    const char *to;
    rp_arena_init(&arena, "test", 0);
    assert_non_null(mkdtemp(folder));
    assert_int_equal(setenv("RINGPIPE_TUNING", folder, 1), 0);
    expect_ok(rp_tuning_folder(&arena, false, &to));
    assert_string_equal(to, folder);
    expect_ok(rp_tuning_path(&arena, folder, &key, &mine));
    assert_non_null(strstr(mine, "/A-R-device-1.2+deb-"));

    expect_ok(rp_tuning_choose(&arena, &key, NULL, &tuning, &origin));
    assert_null(origin.applied);
    assert_int_equal(tuning.gemm, RP_GEMM_CLBLAST);
    put_file(path, board);
    expect_ok(rp_tuning_choose(&arena, &key, path, &tuning, &origin));
    assert_string_equal(origin.applied, path);
    assert_int_equal(tuning.gemm, RP_GEMM_PANEL);
    put_file(mine, own);
    expect_ok(rp_tuning_choose(&arena, &key, path, &tuning, &origin));
    assert_string_equal(origin.applied, mine);
    assert_null(origin.ignored);
    assert_int_equal(tuning.gemm, RP_GEMM_CLBLAST);
    put_file(mine, other);
    put_file(path, other);
    expect_ok(rp_tuning_choose(&arena, &key, path, &tuning, &origin));
    assert_null(origin.applied);
    assert_non_null(origin.ignored);
    assert_string_equal(origin.ignored_driver, "1.1");
    assert_int_equal(tuning.gemm, RP_GEMM_CLBLAST);
    put_file(mine, "{");
    expect_err(rp_tuning_choose(&arena, &key, path, &tuning, &origin), RP_ERR_FORMAT);

    /* Another driver has another file. */
    char *newer;
    const rp_tuning_key updated = {"Platform", "A (R) device", "1.3"};
    expect_ok(rp_tuning_path(&arena, folder, &updated, &newer));
    assert_string_not_equal(mine, newer);
    assert_int_equal(unlink(mine), 0);
    assert_int_equal(rmdir(folder), 0);
    assert_int_equal(unsetenv("RINGPIPE_TUNING"), 0);
    rp_arena_finish(&arena);
}

/* Every board we ship opens with its file. */
static void boards_tunings_are_good(void **state) {
    (void)state;
    char name[600];
    rp_arena arena;
    rp_tuning tuning;
    const char *source = getenv("RP_SOURCE_DIR");
    if (!source) {
        skip();
    }
    rp_arena_init(&arena, "test", 0);
    (void)snprintf(name, sizeof name, "%s/boards/pocl-cpu/tuning.json", source);
    expect_ok(rp_tuning_read(&arena, name, &tuning));
    assert_int_equal(tuning.gemm, RP_GEMM_PANEL);
    rp_arena_finish(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_is_read),
        cmocka_unit_test(bad_files_are_named),
        cmocka_unit_test(tuning_writes_what_reading_takes),
        cmocka_unit_test(only_what_is_faster_is_better),
        cmocka_unit_test(which_tuning_is_in_force),
        cmocka_unit_test(boards_tunings_are_good),
    };
    int fd = mkstemp(path);
    if (fd < 0) {
        skip_program("no temporary file");
    }
    (void)close(fd);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    (void)unlink(path);
    return failed;
}
