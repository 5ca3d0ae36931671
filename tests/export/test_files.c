/* The files that an export writes: names, shared tensors, merged corrections, weights in a file of
 * their own, and what is left after an error. */
#include "exported.h"

#include <dirent.h>

static const rp_model_data nothing = {0};

static const char tied[] = "input: {shape: [3], type: i32}\n"
                           "onnx: {inputs: [\"ids of text\"], outputs: [logits]}\n"
                           "layers:\n"
                           "  - {name: wte, kind: embedding, count: 5, out: 4}\n"
                           "  - {name: lm_head, kind: linear, out: 5, bias: false, names: {weight: "
                           "wte.weight}}\n";

static const char corrected[] =
    "input: [2, 3]\n"
    "layers:\n"
    "  - {name: a, kind: linear, out: 4, lora: {rank: 2, alpha: 6}}\n"
    "  - {name: b, kind: linear, out: 3, layout: in-out, bias: false, lora: {rank: 1}}\n";

static const rp_export_form plain = {.opset = 17, .inline_bytes = RP_EXPORT_INLINE_BYTES};

static rp_export_net *open_text(const char *text, bool merge) {
    write_weights(model_of(text, &nothing), in_folder("w.safetensors"));
    const rp_export_options options = {
        .model = tree_of(text), .weights = in_folder("w.safetensors"), .merge = merge};
    rp_export_net *net;
    assert_int_equal(rp_export_open(&arena, &options, &net), RP_OK);
    return net;
}

static rp_export_graph *build(rp_export_net *net, const rp_export_form *form) {
    rp_onnx_findings refusals;
    rp_export_graph *graph;
    assert_int_equal(rp_export_build(net, form, &refusals, &graph), RP_OK);
    assert_int_equal(refusals.count, 0);
    return graph;
}

static const float *values_of(rp_st_reader *reader, const char *name) {
    const rp_st_entry *entry = rp_st_find(reader, name);
    assert_non_null(entry);
    return rp_st_data(reader, entry);
}

static uint32_t count_files(void) {
    DIR *dir = opendir(folder);
    uint32_t count = 0;
    assert_non_null(dir);
    for (const struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
        count += entry->d_name[0] != '.';
    }
    assert_int_equal(closedir(dir), 0);
    return count;
}

/* ---- weights --------------------------------------------------------------------------------- */

static void a_shared_tensor_is_written_once(void **state) {
    (void)state;
    rp_export_net *net = open_text(tied, false);
    rp_export_report report;
    rp_st_reader *reader;
    assert_int_equal(rp_export_weights(net, in_folder("out.safetensors"), &report), RP_OK);
    assert_int_equal(report.tensors, 1);
    assert_int_equal(report.tied, 1);
    assert_int_equal(rp_st_open(&arena, in_folder("out.safetensors"), &reader), RP_OK);
    assert_int_equal(rp_st_count(reader), 1);
    assert_non_null(rp_st_find(reader, "wte.weight"));
    assert_string_equal(rp_st_meta(reader, "tied"), "{\"lm_head.weight\": \"wte.weight\"}");
    assert_string_equal(rp_st_meta(reader, "format"), "pt");
    rp_st_close(&reader);
    rp_export_close(&net);
}

/* The tensor has the name of the second layer, so the first one's is the name to give back. */
static void the_second_name_of_a_shared_tensor(void **state) {
    (void)state;
    static const char text[] =
        "input: {shape: [3], type: i32}\n"
        "layers:\n"
        "  - {name: wte, kind: embedding, count: 9, out: 4, names: {weight: lm_head.weight}}\n"
        "  - {name: lm_head, kind: linear, out: 9, bias: false}\n";
    rp_export_net *net = open_text(text, false);
    rp_export_report report;
    rp_st_reader *reader;
    assert_int_equal(rp_export_weights(net, in_folder("out.safetensors"), &report), RP_OK);
    assert_int_equal(report.tensors, 1);
    assert_int_equal(report.tied, 1);
    assert_int_equal(rp_st_open(&arena, in_folder("out.safetensors"), &reader), RP_OK);
    assert_string_equal(rp_st_meta(reader, "tied"), "{\"wte.weight\": \"lm_head.weight\"}");
    rp_st_close(&reader);
    rp_export_close(&net);
}

static void corrections_are_added(void **state) {
    (void)state;
    rp_export_net *net = open_text(corrected, true);
    rp_export_report report;
    rp_st_reader *from;
    rp_st_reader *to;
    assert_int_equal(rp_export_weights(net, in_folder("out.safetensors"), &report), RP_OK);
    assert_int_equal(rp_st_open(&arena, in_folder("w.safetensors"), &from), RP_OK);
    assert_int_equal(rp_st_open(&arena, in_folder("out.safetensors"), &to), RP_OK);
    assert_int_equal(rp_st_count(to), 3);
    const float *w = values_of(from, "a.weight");
    const float *a = values_of(from, "a.lora_A.weight");
    const float *b = values_of(from, "a.lora_B.weight");
    const float *sum = values_of(to, "a.weight");
    for (uint32_t k = 0; k < 4; k++) {
        for (uint32_t i = 0; i < 3; i++) {
            const float product = b[k * 2] * a[i] + b[k * 2 + 1] * a[3 + i];
            expect_close(sum[k * 3 + i], w[k * 3 + i] + 3.0f * product, 1e-6, 0);
        }
    }
    w = values_of(from, "b.weight");
    a = values_of(from, "b.lora_A.weight");
    b = values_of(from, "b.lora_B.weight");
    sum = values_of(to, "b.weight");
    for (uint32_t k = 0; k < 3; k++) {
        for (uint32_t i = 0; i < 4; i++) { /* stored [in, out]; alpha is 2 rank */
            expect_close(sum[i * 3 + k], w[i * 3 + k] + 2.0f * b[k] * a[i], 1e-6, 0);
        }
    }
    rp_st_close(&from);
    rp_st_close(&to);
    rp_export_close(&net);
}

static void merging_needs_corrections_of_their_own(void **state) {
    (void)state;
    static const char shared[] =
        "input: {shape: [3], type: i32}\n"
        "layers:\n"
        "  - {name: e, kind: embedding, count: 5, out: 4, train: false}\n"
        "  - {name: f, kind: linear, out: 5, bias: false, names: {weight: e.weight}, lora: {rank: "
        "1}}\n";
    rp_export_net *net = NULL;
    rp_export_options options = {.model = tree_of(tied), .merge = true};
    write_weights(model_of(tied, &nothing), in_folder("w.safetensors"));
    options.weights = in_folder("w.safetensors");
    assert_int_equal(rp_export_open(&arena, &options, &net), RP_ERR_USAGE);
    assert_null(net);
    write_weights(model_of(shared, &nothing), in_folder("w.safetensors"));
    options.model = tree_of(shared);
    assert_int_equal(rp_export_open(&arena, &options, &net), RP_ERR_USAGE);
}

static void a_missing_tensor_is_named(void **state) {
    (void)state;
    rp_export_net *net = NULL;
    write_weights(model_of(tied, &nothing), in_folder("w.safetensors"));
    const rp_export_options options = {.model = tree_of(corrected),
                                       .weights = in_folder("w.safetensors")};
    const bool held = rp_err_hold(true);
    assert_int_equal(rp_export_open(&arena, &options, &net), RP_ERR_FORMAT);
    (void)rp_err_hold(held);
    assert_non_null(strstr(rp_err_message(), "a.weight"));
}

/* ---- an ONNX model --------------------------------------------------------------------------- */

static void names_are_those_of_the_import(void **state) {
    (void)state;
    rp_export_net *net = open_text(tied, false);
    rp_export_report report;
    rp_onnx_model *model;
    assert_int_equal(rp_export_onnx(build(net, &plain), in_folder("net.onnx"), &report), RP_OK);
    assert_int_equal(rp_onnx_open(&arena, in_folder("net.onnx"), &model), RP_OK);
    assert_int_equal(model->input_count, 1);
    assert_string_equal(model->value[model->input[0]], "ids of text");
    assert_string_equal(model->value[model->output[0]], "logits");
    assert_int_equal(model->info[model->input[0]].type, RP_ONNX_INT64);
    assert_int_equal(model->tensor_count, 1);
    assert_string_equal(model->info[model->input[0]].symbol[0], "batch");
    rp_onnx_close(&model);
    assert_non_null(strstr(import_file(in_folder("net.onnx"), in_folder("back.safetensors")),
                           "onnx: {inputs: [\"ids of text\"], outputs: [logits]}\n"));
    rp_export_close(&net);
}

/* A net whose layers only drop is its input, under the name of the output. */
static void an_output_that_is_an_input(void **state) {
    (void)state;
    rp_export_net *net = open_text("input: [4]\nlayers:\n  - {name: d, kind: dropout}\n", false);
    rp_export_report report;
    rp_onnx_model *model;
    assert_int_equal(rp_export_onnx(build(net, &plain), in_folder("net.onnx"), &report), RP_OK);
    assert_int_equal(rp_onnx_open(&arena, in_folder("net.onnx"), &model), RP_OK);
    assert_int_equal(model->node_count, 1);
    assert_string_equal(model->node[0].op, "Identity");
    rp_onnx_close(&model);
    rp_export_close(&net);
}

static void large_weights_have_a_file_of_their_own(void **state) {
    (void)state;
    static const char net_text[] = "input: [40]\nlayers:\n"
                                   "  - {name: a, kind: dense, out: 50}\n"
                                   "  - {name: b, kind: dense, out: 3}\n";
    rp_export_net *net = open_text(net_text, false);
    const rp_export_form small = {.opset = 17, .inline_bytes = 4000};
    rp_export_graph *graph = build(net, &small);
    rp_export_report report;
    rp_st_reader *from;
    rp_st_reader *to;
    assert_true(rp_export_is_split(graph));
    assert_false(rp_export_is_split(build(net, &plain)));
    assert_int_equal(rp_export_onnx(graph, in_folder("net.onnx"), &report), RP_OK);
    assert_true(report.external_bytes >= 2050 * 4);
    assert_true(report.bytes < 4000);
    assert_int_equal(access(in_folder("net.onnx.data"), F_OK), 0);
    (void)import_file(in_folder("net.onnx"), in_folder("back.safetensors"));
    assert_int_equal(rp_st_open(&arena, in_folder("w.safetensors"), &from), RP_OK);
    assert_int_equal(rp_st_open(&arena, in_folder("back.safetensors"), &to), RP_OK);
    for (uint32_t i = 0; i < rp_st_count(from); i++) {
        const rp_st_entry *entry = rp_st_entry_at(from, i);
        assert_memory_equal(rp_st_data(from, entry), values_of(to, entry->name), entry->bytes);
    }
    rp_st_close(&from);
    rp_st_close(&to);
    rp_export_close(&net);
}

/* The model cannot be written at all, so weights of the same name stay those of the old model. */
static void weights_are_not_replaced_alone(void **state) {
    (void)state;
    rp_export_net *net = open_text(corrected, false);
    const rp_export_form small = {.opset = 17, .inline_bytes = 10};
    rp_export_report report;
    char old[8] = "";
    (void)write_text("net.onnx.data", "old");
    (void)write_text("net.onnx.tmp/file", ""); /* a folder at the place of the temporary file */
    const uint32_t before = count_files();
    assert_int_equal(rp_export_onnx(build(net, &small), in_folder("net.onnx"), &report), RP_ERR_IO);
    assert_non_null(strstr(rp_err_message(), "net.onnx: cannot be written"));
    assert_int_equal(count_files(), before);
    FILE *file = fopen(in_folder("net.onnx.data"), "r");
    assert_non_null(file);
    assert_int_equal(fread(old, 1, sizeof old, file), 3);
    assert_string_equal(old, "old");
    (void)fclose(file);
    rp_export_close(&net);
}

/* The model's path is a folder with something in it, so the last rename fails. */
static void nothing_is_left_after_an_error(void **state) {
    (void)state;
    rp_export_net *net = open_text(corrected, false);
    const rp_export_form small = {.opset = 17, .inline_bytes = 10};
    rp_export_report report;
    (void)write_text("taken/file", "");
    const uint32_t before = count_files();
    assert_int_not_equal(rp_export_onnx(build(net, &small), in_folder("taken"), &report), RP_OK);
    assert_int_equal(count_files(), before);
    assert_int_not_equal(rp_export_onnx(build(net, &plain), in_folder("taken"), &report), RP_OK);
    assert_int_not_equal(rp_export_onnx(build(net, &plain), in_folder("none/x.onnx"), &report),
                         RP_OK);
    assert_int_not_equal(rp_export_weights(net, in_folder("taken"), &report), RP_OK);
    assert_int_equal(count_files(), before);
    rp_export_close(&net);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_shared_tensor_is_written_once, setup, teardown),
        cmocka_unit_test_setup_teardown(the_second_name_of_a_shared_tensor, setup, teardown),
        cmocka_unit_test_setup_teardown(corrections_are_added, setup, teardown),
        cmocka_unit_test_setup_teardown(merging_needs_corrections_of_their_own, setup, teardown),
        cmocka_unit_test_setup_teardown(a_missing_tensor_is_named, setup, teardown),
        cmocka_unit_test_setup_teardown(names_are_those_of_the_import, setup, teardown),
        cmocka_unit_test_setup_teardown(an_output_that_is_an_input, setup, teardown),
        cmocka_unit_test_setup_teardown(large_weights_have_a_file_of_their_own, setup, teardown),
        cmocka_unit_test_setup_teardown(weights_are_not_replaced_alone, setup, teardown),
        cmocka_unit_test_setup_teardown(nothing_is_left_after_an_error, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
