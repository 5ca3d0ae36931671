#include "expect.h"

#include <sys/stat.h>
#include <unistd.h>

#include "agent/board.h"
#include "device/device.h"

/* First in this program: a driver may take the number of threads from the first call only. */
static void auto_limits_the_threads(void **state) {
    (void)state;
    rp_arena arena;
    rp_arena_init(&arena, "test", 0);
    rp_board board;
    rp_device *device = NULL;
    expect_ok(rp_board_find(&arena, "auto", 1, &board));
    const rp_device_options options = {
        .platform = board.platform, .device = board.device, .threads = 1};
    expect_ok(rp_device_open(&arena, &options, &device));
    if (strcmp(board.name, "pocl-cpu") == 0) {
        assert_int_equal(rp_device_facts_of(device)->compute_units, 1);
    }
    rp_device_close(&device);
    rp_arena_finish(&arena);
}

static void known_boards_and_unknown_ones(void **state) {
    (void)state;
    rp_arena arena;
    rp_arena_init(&arena, "test", 0);
    rp_board board;
    expect_ok(rp_board_find(&arena, "pocl-cpu", 0, &board));
    assert_string_equal(board.name, "pocl-cpu");
    assert_non_null(board.platform);
    assert_non_null(board.tuning_path);
    assert_true(board.memory_fraction > 0 && board.memory_fraction <= 1);
    expect_err(rp_board_find(&arena, "no-such-board", 0, &board), RP_ERR_USAGE);
    assert_non_null(strstr(rp_err_message(), "pocl-cpu"));
    expect_err(rp_board_find(&arena, "../boards/pocl-cpu", 0, &board), RP_ERR_USAGE);
    rp_arena_finish(&arena);
}

static void auto_finds_one(void **state) {
    (void)state;
    rp_arena arena;
    rp_arena_init(&arena, "test", 0);
    rp_board board;
    expect_ok(rp_board_find(&arena, "auto", 0, &board));
    assert_true(strlen(board.name) > 0);
    rp_arena_finish(&arena);
}

static void write_text(const char *path, const char *text) {
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    (void)fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static void a_folder_of_ones_own(void **state) {
    (void)state;
    rp_arena arena;
    rp_arena_init(&arena, "test", 0);
    rp_board board;
    assert_int_equal(setenv("RINGPIPE_BOARDS", "/nonexistent", 1), 0);
    expect_err(rp_board_find(&arena, "pocl-cpu", 0, &board), RP_ERR_USAGE);
    expect_ok(rp_board_find(&arena, "auto", 0, &board));
    assert_string_equal(board.name, "generic");
    assert_false(board.is_profile);
    assert_null(board.tuning_path);
    assert_int_equal(unsetenv("RINGPIPE_BOARDS"), 0);
    rp_arena_finish(&arena);
}

/* Every key that says something is read, strangers are errors with their line. */
static void a_profile_is_read_strictly(void **state) {
    (void)state;
    static const struct {
        const char *text, *part;
    } bad[] = {
        {"match: {}\n", "name"},
        {"name: x\nmemory_fracton: 0.5\n", "board.yaml:2"},
        {"name: x\nmemory_fraction: 1.5\n", "memory_fraction"},
        {"name: x\nmatch: {platfrom: y}\n", "platfrom"},
        {"name: x\nname: y\n", "board.yaml:2"},
        {"name: x\nmatch: {machin: y}\n", "machin"},
        {"name: x\nchoose: best\n", "fastest"},
        {"name: x\ntier: 4\n", "tier"},
        {"name: x\nopencl: {routes: y}\n", "routes"},
        {"name: x\nopencl: {packages: y}\n", "expected a list"},
        {"name: x\nquirks: [{a: b}]\n", "expected a text"},
        {"name: x\nenvironment: {path: y}\n", "VARIABLE"},
        {"name: x\ntuning: {cpu: ../y}\n", "name of a profile"},
        {"name: x\nflash: {way: y}\n", "way"},
    };
    char folder[] = "/tmp/rp-test-boards-XXXXXX";
    char path[128];
    assert_non_null(mkdtemp(folder));
    (void)snprintf(path, sizeof path, "%s/own", folder);
    assert_int_equal(mkdir(path, 0700), 0);
    (void)snprintf(path, sizeof path, "%s/own/board.yaml", folder);
    assert_int_equal(setenv("RINGPIPE_BOARDS", folder, 1), 0);
    rp_arena arena;
    rp_arena_init(&arena, "test", 0);
    rp_board board;
    write_text(path, "name: own\nmatch: {platform: p, device: d}\nmemory_fraction: 0.25\n"
                     "vendor: v\nsoc: s\ntier: 3\nfeatures: [f]\nlink: l\nconsole: none\n"
                     "flash: {method: none}\nnotes: [any, {kind: of}]\n");
    expect_ok(rp_board_find(&arena, "own", 0, &board));
    assert_string_equal(board.platform, "p");
    assert_string_equal(board.device, "d");
    expect_close(board.memory_fraction, 0.25, 0, 0);
    assert_null(board.tuning_path);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        write_text(path, bad[i].text);
        expect_err(rp_board_find(&arena, "own", 0, &board), RP_ERR_USAGE);
        assert_non_null(strstr(rp_err_message(), bad[i].part));
    }
    rp_arena_finish(&arena);
    assert_int_equal(unsetenv("RINGPIPE_BOARDS"), 0);
    assert_int_equal(unlink(path), 0);
    (void)snprintf(path, sizeof path, "%s/own", folder);
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(rmdir(folder), 0);
}

/* A board that was never seen is not said to be tested, and no fact of a profile is left out. */
static void every_profile_here_is_whole(void **state) {
    (void)state;
    char *names[RP_BOARDS_MAX];
    uint32_t count;
    rp_arena arena;
    rp_arena_init(&arena, "test", 0);
    expect_ok(rp_board_list(&arena, names, RP_BOARDS_MAX, &count));
    assert_true(count >= 12);
    for (uint32_t i = 0; i < count; i++) {
        rp_board_about facts;
        int year, month, day;
        print_message("%s\n", names[i]);
        expect_ok(rp_board_read_about(&arena, names[i], &facts));
        const char *const texts[] = {facts.vendor,  facts.model,   facts.soc,      facts.arch,
                                     facts.memory,  facts.network, facts.evidence, facts.route,
                                     facts.console, facts.method,  facts.how};
        for (size_t t = 0; t < sizeof texts / sizeof *texts; t++) {
            assert_true(strlen(texts[t]) > 0);
        }
        assert_true(facts.tier >= 1 && facts.tier <= 3);
        assert_int_equal(sscanf(facts.checked, "%4d-%2d-%2d", &year, &month, &day), 3);
        assert_true(strlen(facts.checked) == 10 && year >= 2026 && month <= 12 && day <= 31);
        assert_true((facts.tier == 3) ==
                    (strstr(facts.evidence, "no such board was here") != NULL));
        assert_true(strcmp(facts.arch, "arm64") == 0 || strcmp(facts.arch, "amd64") == 0 ||
                    strcmp(facts.arch, "any") == 0);
        assert_true(strstr(facts.route, "PoCL") == NULL || facts.packages[0] || facts.tier == 3);
    }
    rp_arena_finish(&arena);
}

static void the_machine_names_its_board(void **state) {
    (void)state;
    rp_arena arena;
    rp_board board;
    rp_arena_init(&arena, "test", 0);
    assert_int_equal(unsetenv("RUSTICL_ENABLE"), 0);
    assert_int_equal(setenv("RINGPIPE_MACHINE", "raspberrypi,5-model-b brcm,bcm2712", 1), 0);
    expect_ok(rp_board_find(&arena, "auto", 0, &board));
    assert_string_equal(board.name, "raspberry-pi-5");
    assert_true(board.fastest);
    assert_null(board.tuning_path);
    assert_non_null(strstr(board.cpu_tuning_path, "pocl-cpu/tuning.json"));
    assert_string_equal(getenv("RUSTICL_ENABLE"), "v3d");
    /* What somebody has set stays. */
    assert_int_equal(setenv("RUSTICL_ENABLE", "mine", 1), 0);
    expect_ok(rp_board_find(&arena, "raspberry-pi-5", 0, &board));
    assert_string_equal(getenv("RUSTICL_ENABLE"), "mine");
    assert_int_equal(unsetenv("RUSTICL_ENABLE"), 0);
    /* Not by its name: by its device, and never a profile that says nothing of either. */
    assert_int_equal(setenv("RINGPIPE_MACHINE", "acme,toaster", 1), 0);
    expect_ok(rp_board_find(&arena, "auto", 0, &board));
    assert_null(strstr(board.name, "generic-"));
    assert_null(getenv("RUSTICL_ENABLE"));
    assert_int_equal(unsetenv("RINGPIPE_MACHINE"), 0);
    rp_arena_finish(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(auto_limits_the_threads),
        cmocka_unit_test(known_boards_and_unknown_ones),
        cmocka_unit_test(auto_finds_one),
        cmocka_unit_test(a_folder_of_ones_own),
        cmocka_unit_test(a_profile_is_read_strictly),
        cmocka_unit_test(every_profile_here_is_whole),
        cmocka_unit_test(the_machine_names_its_board),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
