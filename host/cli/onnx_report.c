#include "cli/onnx_report.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>

#include "base/json_print.h"
#include "base/printable.h"
#include "base/safetensors.h"
#include "onnx/summary.h"

enum { INFO_TEXT = 400 };

/* The names of a file's floats. */
static rp_err read_names(rp_arena *arena, const char *path, rp_onnx_options *options) {
    rp_st_reader *reader = NULL;
    const char **names;
    rp_err err;
    RP_TRY(rp_st_open(arena, path, &reader));
    RP_TRY(RP_ARENA_NEW(arena, rp_st_count(reader) + 1, &names));
    for (uint32_t i = 0; i < rp_st_count(reader); i++) {
        const rp_st_entry *entry = rp_st_entry_at(reader, i);
        char *copy;
        if (rp_st_is_float(entry->type)) {
            RP_TRY(rp_arena_string(arena, entry->name, &copy));
            names[options->name_count++] = copy;
        }
    }
    options->names = names;
    options->names_file = path;
fail:
    rp_st_close(&reader);
    return err;
}

static rp_err read_options(rp_arena *arena, const rp_cli_onnx *given, rp_onnx_options *out) {
    rp_onnx_given_shape *shapes;
    rp_err err;
    *out = (rp_onnx_options){.shape_count = given->shapes.count,
                             .budget = RP_ONNX_BUDGET,
                             .freeze = given->freeze.item,
                             .freeze_count = given->freeze.count,
                             .no_fuse = given->no_fuse,
                             .untie = given->untie,
                             .accept_tied = strcmp(given->tied, "accept") == 0,
                             .accept_folded = given->accept_folded};
    RP_TRY(RP_ARENA_NEW(arena, given->shapes.count + 1, &shapes));
    for (uint32_t i = 0; i < given->shapes.count; i++) {
        RP_TRY(rp_onnx_parse_shape(arena, given->shapes.item[i], &shapes[i]));
    }
    out->shapes = shapes;
    if (given->names) {
        RP_TRY(read_names(arena, given->names, out));
    }
fail:
    return err;
}

rp_err rp_cli_analyse_onnx(rp_arena *arena, const rp_cli_args *args, rp_onnx_model **model,
                           rp_onnx_import *out) {
    rp_onnx_options options;
    rp_err err;
    RP_TRY(read_options(arena, &args->onnx, &options));
    RP_TRY(rp_onnx_open(arena, args->words.item[0], model));
    RP_TRY(rp_onnx_analyse(arena, *model, &options, out));
fail:
    return err;
}

/* ---- findings -------------------------------------------------------------------------------- */

static void print_findings(FILE *file, const char *before, const rp_onnx_findings *findings) {
    const uint32_t shown =
        findings->count < RP_ONNX_FINDINGS_SHOWN ? findings->count : RP_ONNX_FINDINGS_SHOWN;
    for (uint32_t i = 0; i < shown; i++) {
        const rp_onnx_finding *finding = &findings->item[i];
        rp_print(file, "%s%s%s%s", before, finding->op ? finding->op : "", finding->op ? ": " : "",
                 finding->text);
        if (finding->nodes > 1) {
            rp_print(file, " and %u more", finding->nodes - 1);
        }
        rp_print(file, "\n");
    }
    if (findings->count + findings->lost > shown) {
        rp_print(file, "%sand %u more reasons\n", before, findings->count + findings->lost - shown);
    }
}

static json_t *findings_json(const rp_onnx_findings *findings) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < findings->count; i++) {
        const rp_onnx_finding *finding = &findings->item[i];
        json_t *object = json_pack("{s:s, s:s, s:i}", "topic", finding->topic, "text",
                                   finding->text, "nodes", (int)finding->nodes);
        if (finding->op) {
            (void)json_object_set_new(object, "op", json_string(finding->op));
        }
        (void)json_array_append_new(list, object);
    }
    return list;
}

static json_t *texts_json(const rp_onnx_findings *findings) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < findings->count; i++) {
        (void)json_array_append_new(list, json_string(findings->item[i].text));
    }
    return list;
}

rp_err rp_cli_refuse(const char *file, const char *what, const rp_onnx_findings *findings) {
    const uint32_t count = findings->count + findings->lost;
    rp_print(stderr, "%s cannot be %s:\n", file, what);
    print_findings(stderr, "  ", findings);
    return rp_fail(RP_ERR_USAGE, "%s: nothing was written, for %u reason%s", file, count,
                   count == 1 ? "" : "s");
}

/* ---- inspect --------------------------------------------------------------------------------- */

static void print_values(const rp_onnx_model *model, const char *what, const uint32_t *value,
                         uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        char text[INFO_TEXT];
        rp_print(stdout, "%s %s: %s\n", what, model->value[value[i]],
                 rp_onnx_info_text(&model->info[value[i]], text, sizeof text));
    }
}

static rp_err print_text(rp_arena *arena, const rp_onnx_import *import) {
    const rp_onnx_model *model = import->model;
    rp_onnx_op_count *ops;
    uint32_t count;
    uint32_t tensors;
    uint64_t elements;
    rp_err err;
    RP_TRY(rp_onnx_count_ops(arena, model, &ops, &count));
    rp_onnx_count_floats(model, &tensors, &elements);
    rp_print(stdout, "%s: %s%s%s, IR version %" PRId64 ", opset %" PRId64 "\n", model->file,
             model->producer[0] ? model->producer : "unknown producer",
             model->producer_version[0] ? " " : "", model->producer_version, model->ir_version,
             model->opset);
    print_values(model, "input", model->input, model->input_count);
    print_values(model, "output", model->output, model->output_count);
    rp_print(stdout, "%u nodes with %u operators\n", model->node_count, count);
    for (uint32_t i = 0; i < count; i++) {
        rp_print(stdout, "%8u  %s\n", ops[i].nodes, ops[i].op);
    }
    rp_print(stdout, "%" PRIu64 " numbers in %u tensors\n", elements, tensors);
    if (import->text) {
        rp_print(stdout, "import: %u layers, %" PRIu64 " parameters in %u tensors\n",
                 import->layers, import->parameters, import->tensors);
        print_findings(stdout, "  assumed: ", &import->notes);
    } else {
        rp_print(stdout, "import would refuse it:\n");
        print_findings(stdout, "  ", &import->refusals);
    }
fail:
    return err;
}

static json_t *values_json(const rp_onnx_model *model, const uint32_t *value, uint32_t count) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < count; i++) {
        const rp_onnx_info *info = &model->info[value[i]];
        char text[INFO_TEXT];
        json_t *shape = json_array();
        for (uint32_t d = 0; d < info->rank; d++) {
            (void)json_array_append_new(shape, info->dim[d] > 0 ? json_integer(info->dim[d])
                                                                : json_string(info->symbol[d]));
        }
        (void)json_array_append_new(
            list, json_pack("{s:s, s:s, s:o}", "name", model->value[value[i]], "type",
                            rp_onnx_info_text(info, text, sizeof text), "shape", shape));
    }
    return list;
}

static rp_err print_json(rp_arena *arena, const rp_onnx_import *import) {
    const rp_onnx_model *model = import->model;
    rp_onnx_op_count *ops;
    uint32_t count;
    uint32_t tensors;
    uint64_t elements;
    json_t *operators = json_object();
    const rp_err err = rp_onnx_count_ops(arena, model, &ops, &count);
    if (err != RP_OK) {
        json_decref(operators);
        return err;
    }
    rp_onnx_count_floats(model, &tensors, &elements);
    for (uint32_t i = 0; i < count; i++) {
        (void)json_object_set_new(operators, ops[i].op, json_integer(ops[i].nodes));
    }
    json_t *root = json_pack(
        "{s:i, s:o, s:s, s:s, s:I, s:I, s:i, s:o, s:o, s:o, s:i, s:I, s:b, s:o, s:o}", "version", 1,
        "file", rp_json_path(model->file), "producer", model->producer, "producer_version",
        model->producer_version, "ir_version", (json_int_t)model->ir_version, "opset",
        (json_int_t)model->opset, "nodes", (int)model->node_count, "inputs",
        values_json(model, model->input, model->input_count), "outputs",
        values_json(model, model->output, model->output_count), "operators", operators, "tensors",
        (int)tensors, "values", (json_int_t)elements, "imports", import->text != NULL, "findings",
        findings_json(&import->refusals), "assumed", texts_json(&import->notes));
    return rp_json_print(root, 0, stdout);
}

rp_err rp_cli_print_onnx(rp_arena *arena, const rp_cli_args *args, const rp_onnx_import *import) {
    return rp_cli_is_json(args) ? print_json(arena, import) : print_text(arena, import);
}

/* ---- import ---------------------------------------------------------------------------------- */

static void add_one(json_t *counts, const char *key) {
    const json_int_t before = json_integer_value(json_object_get(counts, key));
    (void)json_object_set_new(counts, key, json_integer(before + 1));
}

/* Layers by kind, or elementary ones by the operator that they are. */
static json_t *counts_json(const rp_onnx_graph *graph, bool elementary) {
    json_t *counts = json_object();
    for (uint32_t i = 0; i < graph->layer_count; i++) {
        const rp_onnx_layer *layer = &graph->layer[i];
        if (layer->live && layer->kind && layer->elementary == elementary) {
            add_one(counts, elementary && layer->node < graph->model->node_count
                                ? graph->model->node[layer->node].op
                                : layer->kind);
        }
    }
    return counts;
}

/* Adds LAYER.SUFFIX to the list of its tensor. */
static void add_use(json_t *uses, const rp_onnx_layer *layer, const rp_onnx_param *param) {
    json_t *list = json_object_get(uses, param->name);
    if (!list) {
        list = json_array();
        (void)json_object_set_new(uses, param->name, list);
    }
    (void)json_array_append_new(list, json_sprintf("%s.%s", layer->name, param->suffix));
}

/* Lists of the parameters that are one tensor. */
static json_t *tied_json(const rp_onnx_graph *graph) {
    json_t *uses = json_object();
    json_t *tied = json_array();
    const char *name;
    json_t *list;
    for (uint32_t i = 0; i < graph->layer_count; i++) {
        const rp_onnx_layer *layer = &graph->layer[i];
        for (uint32_t p = 0; layer->live && p < layer->param_count; p++) {
            add_use(uses, layer, &layer->param[p]);
        }
    }
    json_object_foreach(uses, name, list) {
        if (json_array_size(list) > 1) {
            (void)json_array_append(tied, list);
        }
    }
    json_decref(uses);
    return tied;
}

static json_t *imported_json(const rp_cli_args *args, const rp_onnx_import *import) {
    const rp_onnx_model *model = import->model;
    return json_pack(
        "{s:i, s:o, s:o, s:i, s:I, s:i, s:o, s:o, s:o, s:o, s:o, s:o}", "version", 1, "model",
        rp_json_path(args->out), "weights", rp_json_path(args->onnx.weights), "layers",
        (int)import->layers, "parameters", (json_int_t)import->parameters, "tensors",
        (int)import->tensors, "inputs", values_json(model, model->input, model->input_count),
        "outputs", values_json(model, model->output, model->output_count), "fused",
        counts_json(import->graph, false), "elementary", counts_json(import->graph, true),
        "assumed", texts_json(&import->notes), "tied", tied_json(import->graph));
}

/* A number that is not finite is null. */
static json_t *compared_json(const rp_comparison *compared) {
    return json_pack("{s:i, s:o, s:b}", "samples", (int)compared->samples, "error",
                     isfinite(compared->error) ? json_real(compared->error) : json_null(),
                     "same_outputs", compared->same);
}

rp_err rp_cli_print_imported(const rp_cli_args *args, const rp_onnx_import *import,
                             const rp_comparison *compared) {
    if (rp_cli_is_json(args)) {
        json_t *root = imported_json(args, import);
        if (root && compared) {
            (void)json_object_set_new(root, "check", compared_json(compared));
        }
        return rp_json_print(root, 0, stdout);
    }
    rp_print(stdout, "%s: %u layers\n%s: %u tensors, %" PRIu64 " trained parameters\n", args->out,
             import->layers, args->onnx.weights, import->tensors, import->parameters);
    print_findings(stdout, "assumed: ", &import->notes);
    if (compared) {
        rp_print(stdout, "%s: %u samples, largest relative error %.2g\n", args->onnx.check,
                 compared->samples, compared->error);
    }
    if (compared && compared->same) {
        rp_print(stdout,
                 "note: the outputs in %s are the same for all samples, so this shows "
                 "little; check a net with trained weights\n",
                 args->onnx.check);
    }
    return RP_OK;
}
