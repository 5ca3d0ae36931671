/* Nets whose outputs have a closed form. */
#include "folder.h"

#include <math.h>

#include "device/open.h"
#include "predict/network.h"

#include "base/safetensors.h"

typedef struct {
    const char *name;
    uint32_t dims;
    uint64_t dim[4];
    const float *values;
} tensor;

static void write_weights(const tensor *list, uint32_t count) {
    rp_st_entry entry[8] = {{0}};
    rp_st_writer *writer;
    char path[512];
    for (uint32_t i = 0; i < count; i++) {
        entry[i] = (rp_st_entry){.name = list[i].name, .type = RP_ST_F32, .dims = list[i].dims};
        entry[i].bytes = sizeof(float);
        for (uint32_t d = 0; d < list[i].dims; d++) {
            entry[i].dim[d] = list[i].dim[d];
            entry[i].bytes *= list[i].dim[d];
        }
    }
    (void)snprintf(path, sizeof path, "%s", in_folder("w.safetensors"));
    expect_ok(rp_st_create(&arena, path, entry, count, NULL, true, &writer));
    for (uint32_t i = 0; i < count; i++) {
        expect_ok(rp_st_write(writer, i, 0, list[i].values, entry[i].bytes));
    }
    expect_ok(rp_st_commit(&writer));
}

static rp_err read_network(const char *model, rp_shape sample, uint32_t classes, rp_network **out) {
    char *path;
    rp_network_options options = {.data = {.sample = sample, .classes = classes}};
    expect_ok(rp_config_read_text(&arena, model, strlen(model), "net.yaml", &options.model));
    expect_ok(rp_arena_string(&arena, in_folder("w.safetensors"), &path));
    options.weights = path;
    return rp_network_read(&arena, &options, out);
}

static const char dense[] =
    "input: data\nlayers:\n"
    "  - {name: last.0, kind: dense, out: 2}\n" /* the name of the layer that is added */;
static const float w[] = {1, 2, -3, 0.5f, 0, 4};
static const float b[] = {10, -1};
static const tensor dense_weights[] = {{"last.0.weight", 2, {2, 3}, w}, {"last.0.bias", 1, {2}, b}};

/* Small whole numbers: exact, whatever the size of the microbatch. */
static void a_dense_layer(void **state) {
    (void)state;
    float x[32 * 3];
    float y[32 * 2];
    const uint32_t sizes[] = {1, 5, 32, 3};
    rp_network *net;
    write_weights(dense_weights, 2);
    expect_ok(read_network(dense, rp_shape_1(3), 2, &net));
    expect_ok(rp_network_start(net, device));
    assert_int_equal(rp_network_outputs(net), 2);
    assert_int_equal(rp_network_micro(net), 32);
    for (uint32_t i = 0; i < 32 * 3; i++) {
        x[i] = (float)((int)(i * 7 % 23) - 11);
    }
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        memset(y, 0xff, sizeof y);
        expect_ok(rp_network_run(net, 0, x, sizes[s], y));
        for (uint32_t i = 0; i < sizes[s]; i++) {
            const float *row = x + (size_t)i * 3;
            assert_true(y[2 * i] == row[0] + 2 * row[1] - 3 * row[2] + 10);
            assert_true(y[2 * i + 1] == 0.5f * row[0] + 4 * row[2] - 1);
        }
    }
    rp_network_close(&net);
}

/* Statistics are those of the file, dropout does nothing, a layer may be read twice. */
static void layers_are_as_in_evaluation(void **state) {
    (void)state;
    static const char model[] = "input: [2, 1, 2]\nlayers:\n"
                                "  - {name: bn, kind: batchnorm, eps: 0.0}\n"
                                "  - {name: drop, kind: dropout, p: 0.9}\n"
                                "  - {name: relu, kind: relu}\n"
                                "  - {name: sum, kind: add, from: [drop, relu]}\n"
                                "  - {name: flat, kind: flatten}\n";
    static const float scale[] = {2, -1};
    static const float shift[] = {1, 0.5f};
    static const float mean[] = {3, -4};
    static const float variance[] = {4, 0.25f};
    const tensor list[] = {{"bn.weight", 1, {2}, scale},
                           {"bn.bias", 1, {2}, shift},
                           {"bn.running_mean", 1, {2}, mean},
                           {"bn.running_var", 1, {2}, variance}};
    const float x[] = {5, 0, -4, -3, 1, 2, 3, 4};
    float y[8];
    rp_network *net;
    write_weights(list, 4);
    expect_ok(read_network(model, rp_shape_3(2, 1, 2), 4, &net));
    expect_ok(rp_network_start(net, device));
    for (int again = 0; again < 2; again++) { /* nothing is renewed */
        expect_ok(rp_network_run(net, 0, x, 2, y));
        for (uint32_t i = 0; i < 8; i++) {
            const uint32_t c = i / 2 % 2;
            const double v =
                ((double)x[i] - (double)mean[c]) / sqrt((double)variance[c]) * (double)scale[c] +
                (double)shift[c];
            expect_close(y[i], v > 0 ? 2 * v : v, 1e-6, 1e-6);
        }
    }
    rp_network_close(&net);
}

static void a_large_net_takes_fewer_samples(void **state) {
    (void)state;
    static const char model[] = "input: [1, 2048, 2048]\nlayers:\n"
                                "  - {name: pool, kind: globalavgpool}\n"
                                "  - {name: flat, kind: flatten}\n";
    rp_network *net;
    write_weights(dense_weights, 2);
    expect_ok(read_network(model, rp_shape_3(1, 2048, 2048), 1, &net));
    assert_int_equal(rp_network_micro(net), 4);
    rp_network_close(&net);
}

static void expect_refused(const char *model, const char *part) {
    rp_network *net;
    assert_true(read_network(model, rp_shape_1(3), 2, &net) != RP_OK);
    if (!strstr(rp_err_message(), part)) {
        fail_msg("'%s' is not in '%s'", part, rp_err_message());
    }
}

static void what_does_not_fit_is_named(void **state) {
    (void)state;
    const float bad[] = {1, NAN};
    const tensor lists[][2] = {
        {{"last.0.weight", 2, {3, 2}, w}, {"last.0.bias", 1, {2}, b}},
        {{"last.0.weight", 2, {2, 3}, w}, {"other", 1, {2}, b}},
        {{"last.0.weight", 2, {2, 3}, w}, {"last.0.bias", 1, {2}, bad}},
    };
    const char *const parts[] = {"last.0.weight", "last.0.bias", "last.0.bias"};
    for (int i = 0; i < 3; i++) {
        write_weights(lists[i], 2);
        expect_refused(dense, parts[i]);
        assert_non_null(strstr(rp_err_message(), "w.safetensors"));
    }
    write_weights(dense_weights, 2);
    expect_refused("input: data\n", "net.yaml:1: ");
    expect_refused("input: data\nlayers: [3]\n", "net.yaml:2: ");
    expect_refused("input: data\nlayers: [{name: a, kind: nothing}]\n", "net.yaml:2: ");
    expect_refused("input: [4]\nlayers: [{name: a, kind: dense, out: 2}]\n", "net.yaml:1");
    (void)unlink(in_folder("w.safetensors"));
    expect_refused(dense, "w.safetensors");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_dense_layer, setup, teardown),
        cmocka_unit_test_setup_teardown(layers_are_as_in_evaluation, setup, teardown),
        cmocka_unit_test_setup_teardown(a_large_net_takes_fewer_samples, setup, teardown),
        cmocka_unit_test_setup_teardown(what_does_not_fit_is_named, setup, teardown),
    };
    open_device();
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    close_device();
    return failed;
}
