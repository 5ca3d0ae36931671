/* The files of an ONNX model. */
#include <string.h>
#include <unistd.h>

#include "base/replace.h"
#include "export/encode.h"

enum { PAGE = 4096 /* elements of a tensor begin at one, so that the file can be mapped */ };

static const rp_export_external inside = {NULL, NULL};

bool rp_export_is_split(const rp_export_graph *graph) {
    return rp_export_encoded_bytes(graph, &inside) > graph->form.inline_bytes;
}

/* ---- weights in a file of their own ---------------------------------------------------------- */

static uint64_t bytes_of(const rp_onnx_tensor *tensor) {
    return tensor->count * sizeof(float);
}

/* Offsets of the initialisers; *end is the size of the file. errors MEMORY */
static rp_err place_tensors(const rp_export_graph *graph, const uint64_t **out, uint64_t *end) {
    uint64_t *offset;
    const rp_err err = RP_ARENA_NEW(graph->net->arena, graph->tensor_count + 1, &offset);
    *end = 0;
    for (uint32_t i = 0; err == RP_OK && i < graph->tensor_count; i++) {
        offset[i] = (*end + PAGE - 1) / PAGE * PAGE;
        *end = offset[i] + bytes_of(&graph->tensor[i]);
    }
    *out = offset;
    return err;
}

static bool write_tensors(const rp_export_graph *graph, const uint64_t *offset, FILE *file) {
    static const uint8_t zeros[PAGE];
    uint64_t at = 0;
    bool good = true;
    for (uint32_t i = 0; good && i < graph->tensor_count; i++) {
        const size_t gap = (size_t)(offset[i] - at);
        const size_t bytes = (size_t)bytes_of(&graph->tensor[i]);
        good = fwrite(zeros, 1, gap, file) == gap &&
               fwrite(graph->tensor[i].data, 1, bytes, file) == bytes;
        at = offset[i] + bytes;
    }
    return good;
}

/* Opens both files and writes their content. On failure nothing is left, and files of these names
 * stay as they were. errors IO */
static rp_err begin_split(const rp_export_graph *graph, const rp_export_external *external,
                          const char *path, const char *data_path, FILE **model, FILE **data) {
    *data = rp_replace_begin(data_path);
    if (!*data || !write_tensors(graph, external->offset, *data) || fflush(*data) != 0) {
        return rp_replace_end(*data, data_path, false);
    }
    *model = rp_replace_begin(path);
    if (!*model || !rp_export_encode(graph, external, *model) || fflush(*model) != 0) {
        rp_replace_abandon(*data, data_path);
        return rp_replace_end(*model, path, false);
    }
    return RP_OK;
}

/* The weights become visible first, so the model never lacks them; they are removed if the model
 * cannot be renamed. */
static rp_err write_split(const rp_export_graph *graph, const char *path,
                          rp_export_report *report) {
    const char *slash = strrchr(path, '/');
    rp_export_external external;
    FILE *model = NULL;
    FILE *data = NULL;
    char *data_path;
    rp_err err;
    RP_TRY(rp_arena_printf(graph->net->arena, &data_path, "%s.data", path));
    external.location = slash ? data_path + (slash + 1 - path) : data_path;
    RP_TRY(place_tensors(graph, &external.offset, &report->external_bytes));
    report->bytes = rp_export_encoded_bytes(graph, &external);
    const bool is_new = access(data_path, F_OK) != 0;
    RP_TRY(begin_split(graph, &external, path, data_path, &model, &data));
    err = rp_replace_end(data, data_path, true);
    if (err != RP_OK) {
        rp_replace_abandon(model, path);
        return err;
    }
    err = rp_replace_end(model, path, true);
    if (err != RP_OK && is_new) {
        (void)unlink(data_path);
    }
fail:
    return err;
}

/* ---- one file -------------------------------------------------------------------------------- */

static rp_err write_whole(const rp_export_graph *graph, const char *path,
                          rp_export_report *report) {
    report->bytes = rp_export_encoded_bytes(graph, &inside);
    FILE *file = rp_replace_begin(path);
    const bool good = file && rp_export_encode(graph, &inside, file);
    return rp_replace_end(file, path, good);
}

rp_err rp_export_onnx(const rp_export_graph *graph, const char *path, rp_export_report *out) {
    *out = (rp_export_report){.nodes = graph->node_count, .tensors = graph->tensor_count};
    for (uint32_t i = 0; i < graph->tensor_count; i++) {
        out->elements += graph->tensor[i].count;
    }
    return rp_export_is_split(graph) ? write_split(graph, path, out)
                                     : write_whole(graph, path, out);
}
