/* Start weights from another file: which tensors are taken, and what is refused with which text. */
#include "folder.h"

#include "checkpoint/checkpoint.h"
#include "run_of.h"

static rp_runfile run;
static char donor[128];

/* The donor: fc1, fc3 of this model (fc3 for 4 classes), and a layer under another name. */
static const struct {
    const char *name;
    uint64_t dim[2];
    uint32_t dims;
} tensors[] = {
    {"fc1.weight", {8, 144}, 2}, {"fc1.bias", {8}, 1},      {"body.mid.weight", {8, 8}, 2},
    {"body.mid.bias", {8}, 1},   {"fc3.weight", {4, 8}, 2}, {"fc3.bias", {4}, 1},
};
enum { TENSORS = sizeof tensors / sizeof *tensors, VALUES_MAX = 8 * 144 };

static void write_donor(void) {
    rp_st_entry entry[TENSORS];
    rp_st_writer *writer;
    float value[VALUES_MAX];
    for (uint32_t t = 0; t < TENSORS; t++) {
        entry[t] = (rp_st_entry){.name = tensors[t].name,
                                 .type = RP_ST_F32,
                                 .dims = tensors[t].dims,
                                 .dim = {tensors[t].dim[0], tensors[t].dim[1]},
                                 .bytes = tensors[t].dim[0] * sizeof(float) *
                                          (tensors[t].dims > 1 ? tensors[t].dim[1] : 1)};
    }
    expect_ok(rp_st_create(&arena, donor, entry, TENSORS, NULL, false, &writer));
    for (uint32_t t = 0; t < TENSORS; t++) {
        for (size_t i = 0; i < entry[t].bytes / sizeof(float); i++) {
            value[i] = (float)(t + 1);
        }
        expect_ok(rp_st_write(writer, t, 0, value, entry[t].bytes));
    }
    expect_ok(rp_st_commit(&writer));
}

static int open_folder(void **state) {
    if (setup(state) != 0) {
        return -1;
    }
    (void)snprintf(donor, sizeof donor, "%s/donor.safetensors", folder);
    write_donor();
    return 0;
}

static int close_folder(void **state) {
    (void)unlink(donor);
    return teardown(state);
}

/* A run with `init:` as given; %s stands for the donor's path. */
static void open_run(const char *format) {
    char line[512];
    char set[600];
    const char *const sets[] = {set};
    (void)snprintf(line, sizeof line, format, donor);
    (void)snprintf(set, sizeof set, "train.init=%s", line);
    expect_ok(rp_runfile_read(&arena, write_run(GPIPE), sets, 1, &run));
}

/* The reader gives exactly these: name in the model and value in the donor. */
static void expect_taken(const char *init, const char *const *name, const float *value,
                         uint32_t count) {
    rp_checkpoint_reader *reader;
    rp_checkpoint_tensor tensor;
    bool more;
    open_run(init);
    expect_ok(rp_checkpoint_check_start(&run));
    expect_ok(rp_checkpoint_open_start(&arena, &run, &reader));
    for (uint32_t i = 0; i < count; i++) {
        expect_ok(rp_checkpoint_next(reader, &tensor, &more));
        assert_true(more);
        assert_string_equal(tensor.name, name[i]);
        const uint32_t layer = rp_model_find(run.model, (char[]){'f', 'c', name[i][2], '\0'});
        assert_int_equal(run.model->param[tensor.param].layer, layer);
        expect_close(tensor.values[0], value[i], 0, 0);
        expect_close(tensor.values[tensor.count - 1], value[i], 0, 0);
    }
    expect_ok(rp_checkpoint_next(reader, &tensor, &more));
    assert_false(more);
    rp_checkpoint_close_reader(&reader);
    rp_runfile_close(&run);
}

static void a_part_is_taken(void **state) {
    (void)state;
    expect_taken("{from: %s, only: fc1.*}", (const char *const[]){"fc1.weight", "fc1.bias"},
                 (const float[]){1, 2}, 2);
    expect_taken("{from: %s, only: [fc1.bias]}", (const char *const[]){"fc1.bias"},
                 (const float[]){2}, 1);
    /* another head: all but fc3 */
    expect_taken("{from: %s, except: fc3.*, rename: {body.mid: fc2}}",
                 (const char *const[]){"fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"},
                 (const float[]){1, 2, 3, 4}, 4);
    expect_taken("{from: %s, only: '*.weight', except: fc3.*, rename: {'body.mid.*': 'fc2.*'}}",
                 (const char *const[]){"fc1.weight", "fc2.weight"}, (const float[]){1, 3}, 2);
}

/* Weights of half precision next to a mask, as other programs write them. */
static void halves_are_taken(void **state) {
    (void)state;
    static const uint16_t one_and_a_half[10 * 8] = {[0 ... 79] = 0x3e00};
    const rp_st_entry entry[] = {
        {.name = "fc3.weight", .type = RP_ST_F16, .dims = 2, .dim = {10, 8}},
        {.name = "fc3.bias", .type = RP_ST_BF16, .dims = 1, .dim = {10}},
        {.name = "mask", .type = RP_ST_BOOL, .dims = 1, .dim = {4}},
        {.name = "seen", .type = RP_ST_U64, .dims = 1, .dim = {1}}};
    static const uint8_t bytes[] = {1, 0, 1, 1, 0, 0, 0, 0};
    static const uint16_t two[10] = {[0 ... 9] = 0x4000};
    rp_st_writer *writer;
    expect_ok(rp_st_create(&arena, donor, entry, 4, NULL, false, &writer));
    expect_ok(rp_st_write(writer, 0, 0, one_and_a_half, 160));
    expect_ok(rp_st_write(writer, 1, 0, two, 20));
    expect_ok(rp_st_write(writer, 2, 0, bytes, 4));
    expect_ok(rp_st_write(writer, 3, 0, bytes, 8));
    expect_ok(rp_st_commit(&writer));
    expect_taken("{from: %s, only: fc3.*}", (const char *const[]){"fc3.weight", "fc3.bias"},
                 (const float[]){1.5f, 2}, 2);
}

/* A file of the whole net with a state of the optimiser. `updates`: its metadata, or NULL. */
static void write_states(const char *updates) {
    static const char *const name[] = {"fc1.weight", "fc1.bias", "fc2.weight",          "fc2.bias",
                                       "fc3.weight", "fc3.bias", "optim.drift.fc2.bias"};
    static const uint64_t dim[][2] = {{8, 144}, {8}, {8, 8}, {8}, {10, 8}, {10}, {8}};
    static const float zeros[VALUES_MAX];
    static const float drift[8] = {0.5f, 1, 2, 3, 4, 5, 6, 7};
    const char *const meta[] = {RP_CHECKPOINT_START_UPDATES, updates, NULL};
    enum { COUNT = sizeof name / sizeof *name };
    rp_st_entry entry[COUNT];
    rp_st_writer *writer;
    for (uint32_t i = 0; i < COUNT; i++) {
        const uint64_t columns = dim[i][1] ? dim[i][1] : 1;
        entry[i] = (rp_st_entry){.name = name[i],
                                 .type = RP_ST_F32,
                                 .dims = dim[i][1] ? 2 : 1,
                                 .dim = {dim[i][0], dim[i][1]},
                                 .bytes = dim[i][0] * columns * sizeof(float)};
    }
    expect_ok(rp_st_create(&arena, donor, entry, COUNT, updates ? meta : NULL, false, &writer));
    for (uint32_t i = 0; i < COUNT; i++) {
        expect_ok(rp_st_write(writer, i, 0, i + 1 < COUNT ? zeros : drift, entry[i].bytes));
    }
    expect_ok(rp_st_commit(&writer));
}

/* Tensors that the start gives; *drift: it gives the state; *updates: which that has seen. */
static uint32_t count_taken(const char *init, bool *drift, uint64_t *updates) {
    char set[600];
    const char *const sets[] = {set, "train.anchor={mu: 1, drift: true}"};
    rp_checkpoint_reader *reader;
    rp_checkpoint_tensor tensor;
    uint32_t count = 0;
    bool more = true;
    *drift = false;
    (void)snprintf(set, sizeof set, init, donor);
    expect_ok(rp_runfile_read(&arena, write_run(GPIPE), sets, 2, &run));
    expect_ok(rp_checkpoint_check_start(&run));
    expect_ok(rp_checkpoint_open_start(&arena, &run, &reader));
    *updates = rp_checkpoint_start_updates(reader);
    for (;; count++) {
        expect_ok(rp_checkpoint_next(reader, &tensor, &more));
        if (!more) {
            break;
        }
        const bool state = strncmp(tensor.name, "optim.", 6) == 0;
        assert_int_equal(tensor.is_evaluated, !state);
        *drift |= state && tensor.values[7] >= 7;
    }
    rp_checkpoint_close_reader(&reader);
    rp_runfile_close(&run);
    return count;
}

static void states_are_taken_if_the_file_says_so(void **state) {
    bool drift;
    uint64_t updates;
    (void)state;
    write_states(NULL); /* as from a checkpoint */
    assert_int_equal(count_taken("train.init=%s", &drift, &updates), 6);
    assert_false(drift);
    write_states("12");
    assert_int_equal(count_taken("train.init=%s", &drift, &updates), 7);
    assert_true(drift);
    assert_int_equal(updates, 12);
    assert_int_equal(count_taken("train.init={from: %s, only: fc1.*}", &drift, &updates), 2);
    assert_int_equal(updates, 0);
}

static void expect_refused(const char *init, rp_err err, const char *const *texts) {
    open_run(init);
    expect_err(rp_checkpoint_check_start(&run), err);
    assert_int_equal(rp_err_exit_code(err), 2);
    for (; *texts; texts++) {
        if (!strstr(rp_err_message(), *texts)) {
            fail_msg("%s: '%s' is not in '%s'", init, *texts, rp_err_message());
        }
    }
    rp_runfile_close(&run);
}

#define REFUSED(init, err, ...) expect_refused(init, err, (const char *const[]){__VA_ARGS__, NULL})

static void what_fits_nothing_is_named(void **state) {
    (void)state;
    write_states("twelve");
    REFUSED("%s", RP_ERR_USAGE, "train.init", "'start_updates'");
    write_states("1099511627777"); /* above 2^40 */
    REFUSED("%s", RP_ERR_USAGE, "train.init", "'start_updates'");
    write_donor();
    REFUSED("%s", RP_ERR_USAGE, "train.init", "the file has no 'fc2.weight'",
            "donor.safetensors has", "body.mid.weight", "(6 in all)");
    REFUSED("{from: %s, only: conv*}", RP_ERR_USAGE, "train.init.only",
            "'conv*' matches no tensor of the model", "fc2.weight", "(6 in all)");
    REFUSED("{from: %s, except: fc9.*}", RP_ERR_USAGE, "train.init.except", "'fc9.*'");
    REFUSED("{from: %s, only: fc1.*, except: fc1.*}", RP_ERR_USAGE, "leave no tensor to be taken");
    REFUSED("{from: %s, only: fc2.*, rename: {mid: fc2}}", RP_ERR_USAGE, "train.init.rename",
            "'mid' is not a tensor or layer of the file", "body.mid.weight");
    REFUSED("{from: %s, only: fc1.*, rename: {body.mid: fc4}}", RP_ERR_USAGE, "train.init.rename",
            "'fc4' is not a tensor or layer of the model", "fc3.bias");
    REFUSED("{from: %s, only: fc1.*, rename: {body.mid: fc1}}", RP_ERR_USAGE, "train.init.rename",
            "would both become 'fc1.weight'");
    /* fc3 has other shapes in the file: 4 classes */
    REFUSED("{from: %s, only: fc3.*}", RP_ERR_FORMAT, "tensor 'fc3.weight'", "[4, 8]", "[10, 8]");
    REFUSED("{from: %s.not}", RP_ERR_IO, "donor.safetensors.not");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_part_is_taken, open_folder, close_folder),
        cmocka_unit_test_setup_teardown(halves_are_taken, open_folder, close_folder),
        cmocka_unit_test_setup_teardown(states_are_taken_if_the_file_says_so, open_folder,
                                        close_folder),
        cmocka_unit_test_setup_teardown(what_fits_nothing_is_named, open_folder, close_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
