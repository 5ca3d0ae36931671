#include "folder.h"

#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <sys/stat.h>

#include "folder/now_file.h"
#include "runs/now_place.h"

static char runtime[512];

static json_t *read_json(const char *path) {
    json_t *root = json_load_file(path, 0, NULL);
    assert_non_null(root);
    return root;
}

static rp_now_file *open_now(uint64_t run_id) {
    rp_now_file *file;
    expect_ok(rp_now_open(&arena, folder, run_id, &file));
    return file;
}

static rp_now_board some_board(const char *name) {
    return (rp_now_board){.name = name,
                          .state = "training",
                          .op = "forward",
                          .busy = 0.5,
                          .op_s = {1, 2, 0.25},
                          .idle_s = 3,
                          .memory_bytes = 4096,
                          .heat_c = NAN,
                          .power_w = INFINITY,
                          .energy_j = 7.5,
                          .silent_s = 0.5,
                          .staleness = NAN};
}

static rp_now_wire some_wire(const char *kind, const char *to) {
    return (rp_now_wire){.kind = kind,
                         .from = "a",
                         .to = to,
                         .bytes = 1000,
                         .rate_bytes_s = 1e6,
                         .use = 0.25,
                         .busy_s = 0.5,
                         .queue = NAN,
                         .resent = 1,
                         .delay_s = {NAN, NAN}};
}

static rp_now now_of(const rp_now_board *board, uint32_t boards, const rp_now_wire *wire,
                     uint32_t wires) {
    return (rp_now){.state = "train",
                    .step = 7,
                    .steps = 40,
                    .samples = 448,
                    .loss = NAN,
                    .learning_rate = 0.1,
                    .samples_per_s = NAN,
                    .left_s = 12,
                    .board = board,
                    .board_count = boards,
                    .wire = wire,
                    .wire_count = wires};
}

static int setup_runtime(void **state) {
    if (setup(state) != 0) {
        return -1;
    }
    (void)snprintf(runtime, sizeof runtime, "%s/runtime", folder);
    (void)mkdir(runtime, 0700);
    return setenv("XDG_RUNTIME_DIR", runtime, 1);
}

static void in_the_run_folder_without_a_runtime_folder(void **state) {
    (void)state;
    const rp_now_board board = some_board("a");
    const rp_now_wire wire = some_wire("hop", "b");
    const rp_now now = now_of(&board, 1, &wire, 1);
    assert_int_equal(unsetenv("XDG_RUNTIME_DIR"), 0);
    rp_now_write(open_now(5), &now);
    json_t *root = read_json(in_folder("now.json"));
    const json_t *first = json_array_get(json_object_get(root, "boards"), 0);
    assert_int_equal(json_integer_value(json_object_get(root, "step")), 7);
    assert_null(json_object_get(root, "loss")); /* unknown is absent */
    assert_null(json_object_get(first, "heat_c"));
    assert_null(json_object_get(first, "power_w"));
    assert_true(json_real_value(json_object_get(first, "busy")) == 0.5);
    json_decref(root);
    assert_int_equal(access(in_folder("now.json.tmp"), F_OK), -1);
}

static void sites_of_a_federated_run(void **state) {
    (void)state;
    const rp_now_site sites[] = {{"a", "training"}, {"b", "finished"}};
    rp_now now = now_of(NULL, 0, NULL, 0);
    rp_now_write(open_now(5), &now);
    json_t *root = read_json(in_folder("now.json"));
    assert_null(json_object_get(root, "sites"));
    json_decref(root);
    now.site = sites;
    now.site_count = 2;
    rp_now_write(open_now(5), &now);
    root = read_json(in_folder("now.json"));
    const json_t *last = json_array_get(json_object_get(root, "sites"), 1);
    assert_string_equal(json_string_value(json_object_get(last, "site")), "b");
    assert_string_equal(json_string_value(json_object_get(last, "state")), "finished");
    json_decref(root);
}

static void counts_continue_after_a_resume(void **state) {
    (void)state;
    const rp_now_board board = some_board("a");
    const rp_now_wire wire = some_wire("hop", "b");
    const rp_now now = now_of(&board, 1, &wire, 1);
    rp_now_write(open_now(5), &now); /* the second start of run 5 */
    json_t *root = read_json(in_folder("now.json"));
    const json_t *first = json_array_get(json_object_get(root, "boards"), 0);
    const json_t *hop = json_array_get(json_object_get(root, "wires"), 0);
    const json_t *ops = json_object_get(first, "op_s");
    assert_true(json_real_value(json_object_get(ops, "backward")) == 4);
    assert_true(json_real_value(json_object_get(first, "idle_s")) == 6);
    assert_true(json_real_value(json_object_get(first, "energy_j")) == 15);
    assert_int_equal(json_integer_value(json_object_get(hop, "bytes")), 2000);
    assert_int_equal(json_integer_value(json_object_get(hop, "resent")), 2);
    assert_true(json_real_value(json_object_get(hop, "busy_s")) == 1);
    json_decref(root);
    rp_now_write(open_now(6), &now); /* another run: its counts are its own */
    root = read_json(in_folder("now.json"));
    hop = json_array_get(json_object_get(root, "wires"), 0);
    assert_int_equal(json_integer_value(json_object_get(hop, "bytes")), 1000);
    json_decref(root);
}

/* A link counts from 0 when its peer restarts; its busy time is computed with the newest rate. */
static void counts_never_fall(void **state) {
    (void)state;
    const uint64_t bytes[] = {1000, 1500, 200, 300};
    const int64_t shown[] = {1000, 1500, 1700, 1800};
    const double busy_s[] = {0.5, 0.25, 0.125, 0.0625};
    const double shown_s[] = {0.5, 0.5, 0.625, 0.625};
    rp_now_file *file = open_now(11);
    for (size_t i = 0; i < sizeof bytes / sizeof *bytes; i++) {
        rp_now_wire wire = some_wire("hop", "b");
        wire.bytes = bytes[i];
        wire.busy_s = busy_s[i];
        const rp_now now = now_of(NULL, 0, &wire, 1);
        rp_now_write(file, &now);
        rp_now_write(file, &now);
        json_t *root = read_json(in_folder("now.json"));
        const json_t *hop = json_array_get(json_object_get(root, "wires"), 0);
        assert_int_equal(json_integer_value(json_object_get(hop, "bytes")), shown[i]);
        assert_true(json_real_value(json_object_get(hop, "busy_s")) == shown_s[i]);
        json_decref(root);
    }
}

static void in_the_runtime_folder_while_active(void **state) {
    (void)state;
    char path[RP_NOW_PATH_BYTES];
    const rp_now_board board = some_board("a");
    const rp_now now = now_of(&board, 1, NULL, 0);
    (void)unlink(in_folder("now.json"));
    assert_int_equal(setenv("XDG_RUNTIME_DIR", runtime, 1), 0);
    rp_now_file *file = open_now(7);
    rp_now_write(file, &now);
    assert_true(rp_now_runtime_place(folder, false, path));
    assert_int_equal(access(path, F_OK), 0);
    assert_int_equal(access(in_folder("now.json"), F_OK), -1);
    rp_now_end(file, &now); /* the last state stays with the run */
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(access(in_folder("now.json"), F_OK), 0);
    assert_int_equal(chmod(runtime, 0777), 0); /* others may write there */
    assert_false(rp_now_runtime_place(folder, true, path));
    assert_int_equal(chmod(runtime, 0700), 0);
}

/* A folder that is missing, a link, and a damaged file never are an error. */
static void what_cannot_be_written_is_not_written(void **state) {
    (void)state;
    const rp_now now = now_of(NULL, 0, NULL, 0);
    rp_now_file *file;
    assert_int_equal(unsetenv("XDG_RUNTIME_DIR"), 0);
    expect_ok(rp_now_open(&arena, in_folder("missing"), 1, &file));
    rp_now_write(file, &now);
    rp_now_end(file, &now);
    (void)unlink(in_folder("now.json"));
    (void)write_text("now.json", "{\"run_id\":\"0000000000000001\",\"boards\":[7,{}],\"wires\":"
                                 "[{\"bytes\":-5,\"kind\":\"hop\"}]}");
    file = open_now(1);
    assert_int_equal(symlink("/nonexistent/x", in_folder("now.json.tmp")), 0);
    rp_now_write(file, &now);
    assert_non_null(strstr(slurp("now.json", NULL), "-5")); /* as it was */
    assert_int_equal(unlink(in_folder("now.json.tmp")), 0);
    rp_now_write(file, &now);
    assert_null(strstr(slurp("now.json", NULL), "-5"));
}

static void a_large_ring_fits(void **state) {
    (void)state;
    enum { BOARDS = 600, WIRES = 4 * BOARDS };
    static char names[BOARDS][16];
    static rp_now_board board[BOARDS];
    static rp_now_wire wire[WIRES];
    struct stat facts;
    for (uint32_t i = 0; i < BOARDS; i++) {
        (void)snprintf(names[i], sizeof *names, "board-%u", i);
        board[i] = some_board(names[i]);
    }
    for (uint32_t i = 0; i < WIRES; i++) {
        wire[i] = some_wire(i % 4 ? "control" : "hop", names[i / 4]);
    }
    const uint32_t sizes[] = {40, 150, BOARDS};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const rp_now now = now_of(board, sizes[i], wire, 4 * sizes[i]);
        rp_now_write(open_now(9), &now);
        assert_int_equal(stat(in_folder("now.json"), &facts), 0);
        assert_true(facts.st_size <= RP_NOW_BYTES_MAX);
        json_t *root = read_json(in_folder("now.json"));
        assert_int_equal(json_array_size(json_object_get(root, "boards")), sizes[i]);
        json_decref(root);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_the_run_folder_without_a_runtime_folder),
        cmocka_unit_test(counts_continue_after_a_resume),
        cmocka_unit_test(counts_never_fall),
        cmocka_unit_test(sites_of_a_federated_run),
        cmocka_unit_test(in_the_runtime_folder_while_active),
        cmocka_unit_test(what_cannot_be_written_is_not_written),
        cmocka_unit_test(a_large_ring_fits),
    };
    return cmocka_run_group_tests(tests, setup_runtime, teardown);
}
