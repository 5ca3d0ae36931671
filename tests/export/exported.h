/* A model file with initial weights, exported and imported again. */
#ifndef RP_TESTS_EXPORT_EXPORTED_H
#define RP_TESTS_EXPORT_EXPORTED_H

#include "folder.h"

#include "base/safetensors.h"
#include "export/export.h"
#include "onnx/import.h"

/* Values as different as those of a trained net, so that no tensor can be taken for another. */
static inline void write_weights(const rp_model *model, const char *path) {
    static const char *const meta[] = {NULL};
    rp_st_entry *entry;
    rp_st_writer *writer;
    uint32_t count = 0;
    assert_int_equal(RP_ARENA_NEW(&arena, model->param_count + 1, &entry), RP_OK);
    for (uint32_t i = 0; i < model->param_count; i++) {
        const rp_model_param *param = &model->param[i];
        if (param->owner == i && param->role != RP_PARAM_SCRATCH) {
            rp_st_entry *e = &entry[count++];
            *e = (rp_st_entry){.name = param->name, .type = RP_ST_F32, .dims = param->shape.dims};
            for (uint32_t d = 0; d < e->dims; d++) {
                e->dim[d] = param->shape.dim[d];
            }
        }
    }
    assert_int_equal(rp_st_create(&arena, path, entry, count, meta, false, &writer), RP_OK);
    count = 0;
    for (uint32_t i = 0; i < model->param_count; i++) {
        const rp_model_param *param = &model->param[i];
        float *values;
        if (param->owner != i || param->role == RP_PARAM_SCRATCH) {
            continue;
        }
        assert_int_equal(RP_ARENA_NEW(&arena, param->count, &values), RP_OK);
        for (size_t k = 0; k < param->count; k++) {
            values[k] = 0.25f + (float)((k * 37 + i * 101) % 1009) / 1009.0f;
        }
        assert_int_equal(rp_st_write(writer, count++, 0, values, param->count * sizeof *values),
                         RP_OK);
    }
    assert_int_equal(rp_st_commit(&writer), RP_OK);
}

static inline rp_node *tree_of(const char *text) {
    rp_node *root;
    assert_int_equal(rp_config_read_text(&arena, text, strlen(text), "net.yaml", &root), RP_OK);
    return root;
}

static inline rp_model *model_of(const char *text, const rp_model_data *data) {
    rp_model *model;
    assert_int_equal(rp_model_parse(&arena, tree_of(text), data, &model), RP_OK);
    return model;
}

static inline rp_export_net *open_net(const char *text, const rp_model_data *data,
                                      const char *weights) {
    const rp_export_options options = {.model = tree_of(text), .data = *data, .weights = weights};
    rp_export_net *net;
    assert_int_equal(rp_export_open(&arena, &options, &net), RP_OK);
    return net;
}

/* Exports the model file to `path`; every reason to refuse fails the test. */
static inline void export_text(const char *text, const rp_model_data *data, const char *weights,
                               const rp_export_form *form, const char *path) {
    rp_export_net *net = open_net(text, data, weights);
    rp_onnx_findings refusals;
    rp_export_graph *graph;
    rp_export_report report;
    assert_int_equal(rp_export_build(net, form, &refusals, &graph), RP_OK);
    for (uint32_t i = 0; i < refusals.count; i++) {
        print_error("%s\n", refusals.item[i].text);
    }
    assert_int_equal(refusals.count, 0);
    assert_int_equal(rp_export_onnx(graph, path, &report), RP_OK);
    rp_export_close(&net);
}

/* Imports `path`, and writes the weights. Returns the text of the model file. */
static inline const char *import_file(const char *path, const char *weights) {
    const rp_onnx_options options = {.budget = RP_ONNX_BUDGET};
    rp_onnx_model *model;
    rp_onnx_import import;
    assert_int_equal(rp_onnx_open(&arena, path, &model), RP_OK);
    assert_int_equal(rp_onnx_analyse(&arena, model, &options, &import), RP_OK);
    for (uint32_t i = 0; i < import.refusals.count; i++) {
        print_error("%s: %s\n", path, import.refusals.item[i].text);
    }
    assert_non_null(import.text);
    assert_int_equal(rp_onnx_write(&arena, &import, in_folder("back.yaml"), weights), RP_OK);
    rp_onnx_close(&model);
    return import.text;
}

/* The text without its comments. */
static inline char *without_comments(const char *text) {
    char *out;
    size_t used = 0;
    assert_int_equal(RP_ARENA_NEW(&arena, strlen(text) + 1, &out), RP_OK);
    for (const char *at = text; *at;) {
        const size_t line = strcspn(at, "\n");
        size_t length = strcspn(at, "#\n");
        while (length > 0 && at[length - 1] == ' ') {
            length--;
        }
        if (length > 0) {
            memcpy(out + used, at, length);
            out[used + length] = '\n';
            used += length + 1;
        }
        at += line + (at[line] == '\n');
    }
    return out;
}

#endif
