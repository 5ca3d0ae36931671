/* export: a trained net as safetensors or as an ONNX model. */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>

#include "base/json_print.h"
#include "base/printable.h"
#include "cli/onnx_report.h"
#include "cli/output_file.h"
#include "export/export.h"
#include "predict/trained.h"
#include "run/zoo.h"

static bool ends_with(const char *word, const char *end) {
    const size_t length = strlen(word);
    return length > strlen(end) && strcmp(word + length - strlen(end), end) == 0;
}

/* ---- the net --------------------------------------------------------------------------------- */

/* A model file with weights; what the file leaves to the data comes from options. */
static rp_err open_model(rp_arena *arena, const rp_cli_args *args, rp_export_options *options) {
    const char *path;
    rp_err err;
    if (!args->model.weights) {
        return rp_fail(RP_ERR_USAGE, "%s is a model file: expected --weights FILE.safetensors",
                       args->words.item[0]);
    }
    RP_TRY(rp_cli_read_input(args->model.input, &options->data.sample));
    options->data.classes = args->model.classes;
    options->data.tokens = args->model.tokens;
    options->data.type = args->model.tokens > 0 ? RP_I32 : RP_F32;
    RP_TRY(rp_zoo_path(arena, args->words.item[0], &path));
    RP_TRY(rp_config_read_file(arena, path, &options->model));
    options->weights = args->model.weights;
fail:
    return err;
}

static rp_err open_folder(rp_arena *arena, const rp_cli_args *args, rp_export_options *options) {
    rp_trained_files files;
    rp_err err;
    if (args->model.input || args->model.classes || args->model.tokens) {
        return rp_fail(RP_ERR_USAGE, "export: --input, --classes and --tokens are for a model "
                                     "file; data.json of a run folder has these values");
    }
    RP_TRY(rp_trained_find(arena, args->words.item[0], args->model.weights, &files));
    options->model = files.model;
    options->weights = files.weights;
    options->data = (rp_model_data){.sample = files.about.sample,
                                    .type = files.about.type,
                                    .classes = files.about.classes,
                                    .tokens = files.about.tokens};
fail:
    return err;
}

static rp_err open_net(rp_arena *arena, const rp_cli_args *args, rp_export_net **out) {
    rp_export_options options = {.merge = args->export.merge};
    rp_err err;
    if (rp_cli_is_model(args->words.item[0])) {
        RP_TRY(open_model(arena, args, &options));
    } else {
        RP_TRY(open_folder(arena, args, &options));
    }
    RP_TRY(rp_export_open(arena, &options, out));
fail:
    return err;
}

/* ---- results --------------------------------------------------------------------------------- */

static json_t *names_json(const rp_export_net *net) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < rp_export_input_count(net); i++) {
        (void)json_array_append_new(list, json_string(rp_export_input_name(net, i)));
    }
    return list;
}

static rp_err print_weights(const rp_cli_args *args, const rp_export_report *report) {
    if (rp_cli_is_json(args)) {
        return rp_json_print(json_pack("{s:i, s:o, s:i, s:I, s:i}", "version", 1, "weights",
                                       rp_json_path(args->out), "tensors", (int)report->tensors,
                                       "parameters", (json_int_t)report->elements, "tied",
                                       (int)report->tied),
                             0, stdout);
    }
    rp_print(stdout, "%s: %u tensors, %" PRIu64 " numbers\n", args->out, report->tensors,
             report->elements);
    if (report->tied > 0) {
        rp_print(stdout, "%u tensors are shared: `tied` in the metadata has their other names\n",
                 report->tied);
    }
    return RP_OK;
}

static rp_err print_onnx(const rp_cli_args *args, const rp_export_net *net,
                         const rp_export_report *report) {
    if (rp_cli_is_json(args)) {
        return rp_json_print(
            json_pack("{s:i, s:o, s:i, s:i, s:i, s:I, s:o, s:[s], s:I, s:I}", "version", 1, "onnx",
                      rp_json_path(args->out), "opset", (int)args->export.opset, "nodes",
                      (int)report->nodes, "tensors", (int)report->tensors, "parameters",
                      (json_int_t)report->elements, "inputs", names_json(net), "outputs",
                      rp_export_output_name(net), "bytes", (json_int_t)report->bytes,
                      "external_bytes", (json_int_t)report->external_bytes),
            0, stdout);
    }
    rp_print(stdout, "%s: opset %u, %u nodes, %u tensors, %" PRIu64 " numbers\n", args->out,
             args->export.opset, report->nodes, report->tensors, report->elements);
    if (report->external_bytes > 0) {
        rp_print(stdout, "%s.data: the numbers, which belong to it\n", args->out);
    }
    return RP_OK;
}

/* ---- the verb -------------------------------------------------------------------------------- */

static rp_err export_onnx(rp_arena *arena, const rp_cli_args *args, const rp_export_net *net) {
    const rp_export_form form = {.opset = args->export.opset,
                                 .train = args->export.train,
                                 .inline_bytes = RP_EXPORT_INLINE_BYTES};
    rp_onnx_findings refusals;
    rp_export_graph *graph;
    rp_export_report report;
    char *data;
    rp_err err;
    RP_TRY(rp_export_build(net, &form, &refusals, &graph));
    if (refusals.count > 0) {
        err = rp_cli_refuse(args->words.item[0], "exported", &refusals);
        goto fail;
    }
    if (rp_export_is_split(graph)) {
        RP_TRY(rp_arena_printf(arena, &data, "%s.data", args->out));
        RP_TRY(rp_cli_check_output(args, data));
    }
    RP_TRY(rp_export_onnx(graph, args->out, &report));
    RP_TRY(print_onnx(args, net, &report));
fail:
    return err;
}

static rp_err export_weights(const rp_cli_args *args, const rp_export_net *net) {
    rp_export_report report;
    rp_err err;
    RP_TRY(rp_export_weights(net, args->out, &report));
    RP_TRY(print_weights(args, &report));
fail:
    return err;
}

/* Options that only an ONNX model has are refused for weights. */
static rp_err check_form(const rp_cli_args *args, bool *is_onnx) {
    *is_onnx = ends_with(args->out, ".onnx");
    if (!*is_onnx && !ends_with(args->out, ".safetensors")) {
        return rp_fail(RP_ERR_USAGE,
                       "--out: expected a name that ends with .onnx or .safetensors, found '%s'",
                       args->out);
    }
    if (!*is_onnx && (args->export.train || args->export.opset != RP_EXPORT_OPSET)) {
        return rp_fail(RP_ERR_USAGE, "export: --%s applies only to an ONNX model",
                       args->export.train ? "train" : "opset");
    }
    return RP_OK;
}

/* The weights are read while the result is written, so it must be another file. */
static rp_err check_paths(const rp_cli_args *args, const char *weights) {
    const char *words[2] = {args->words.item[0], weights};
    rp_cli_args both = *args;
    both.words.item = words;
    both.words.count = weights ? 2 : 1;
    const rp_err err = rp_cli_check_inputs(&both, args->out);
    return err == RP_OK ? rp_cli_check_output(args, args->out) : err;
}

rp_err rp_verb_export(rp_arena *arena, const rp_cli_args *args) {
    rp_export_net *net = NULL;
    bool is_onnx;
    rp_err err;
    RP_TRY(check_form(args, &is_onnx));
    RP_TRY(check_paths(args, args->model.weights));
    RP_TRY(open_net(arena, args, &net));
    RP_TRY(is_onnx ? export_onnx(arena, args, net) : export_weights(args, net));
fail:
    rp_export_close(&net);
    return err;
}
