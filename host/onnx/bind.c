#include "onnx/bind.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/shape.h"
#include "onnx/tensor.h"

rp_err rp_onnx_parse_shape(rp_arena *arena, const char *text, rp_onnx_given_shape *out) {
    const char *equals = strrchr(text, '=');
    const char *at = equals ? equals + 1 : "";
    char *name = NULL;
    bool good = equals && equals > text;
    *out = (rp_onnx_given_shape){0};
    while (good && out->rank < RP_ONNX_RANK_MAX) {
        char *end = NULL;
        const bool batch = *at == 'N';
        const long long size = batch ? -1 : strtoll(at, &end, 10);
        end = batch ? (char *)(uintptr_t)(at + 1) : end;
        good = (batch || (*at >= '1' && *at <= '9' && size <= INT32_MAX)) &&
               (*end == ',' || *end == '\0');
        out->dim[out->rank++] = size;
        if (!good || *end == '\0') {
            break;
        }
        at = end + 1;
        good = out->rank < RP_ONNX_RANK_MAX;
    }
    if (!good) {
        return rp_fail(RP_ERR_USAGE,
                       "--shape: expected an input and its sizes, the batch as N, as in "
                       "tokens=N,64; found '%s'",
                       text);
    }
    const rp_err err = rp_arena_text(arena, text, (size_t)(equals - text), &name);
    out->input = name;
    return err;
}

static const rp_onnx_given_shape *find_given(const rp_onnx_given_shape *given, uint32_t count,
                                             const char *input) {
    const rp_onnx_given_shape *found = NULL;
    for (uint32_t i = 0; i < count; i++) {
        found = strcmp(given[i].input, input) == 0 ? &given[i] : found;
    }
    return found;
}

static rp_err check_names(const rp_onnx_model *model, const rp_onnx_given_shape *given,
                          uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        bool known = false;
        for (uint32_t k = 0; k < model->input_count; k++) {
            known |= strcmp(model->value[model->input[k]], given[i].input) == 0;
        }
        if (!known) {
            return rp_fail(RP_ERR_USAGE, "%s: --shape: no input is called '%s'", model->file,
                           given[i].input);
        }
    }
    return RP_OK;
}

/* Puts a given shape over that of the file; a size that both fix must agree. */
static rp_err merge_shape(const rp_onnx_model *model, const char *name,
                          const rp_onnx_given_shape *given, rp_onnx_info *info) {
    if (info->shaped && info->rank != given->rank) {
        return rp_fail(RP_ERR_USAGE, "%s: --shape: input %s has %u sizes, found %u", model->file,
                       name, info->rank, given->rank);
    }
    for (uint32_t i = 0; i < given->rank; i++) {
        const bool fixed = info->shaped && info->dim[i] > 0;
        if (fixed && given->dim[i] > 0 && given->dim[i] != info->dim[i]) {
            return rp_fail(RP_ERR_USAGE,
                           "%s: --shape: size %u of input %s is %" PRId64
                           " in the file, found %" PRId64,
                           model->file, i, name, info->dim[i], given->dim[i]);
        }
        info->dim[i] = fixed ? info->dim[i] : given->dim[i];
        info->symbol[i] = info->shaped ? info->symbol[i] : "";
    }
    info->shaped = true;
    info->rank = given->rank;
    return RP_OK;
}

static rp_err check_sizes(const char *name, const rp_onnx_info *info, rp_onnx_findings *findings,
                          rp_onnx_dims *out) {
    rp_err err = RP_OK;
    uint64_t count = 1;
    *out = (rp_onnx_dims){.rank = info->rank};
    for (uint32_t i = 0; i < info->rank; i++) {
        out->dim[i] = info->dim[i];
        count = i == 0               ? count
                : info->dim[i] < 0   ? 0
                : count > (1u << 31) ? count
                                     : count * (uint64_t)info->dim[i];
        if (i > 0 && info->dim[i] < 0) {
            RP_TRY(rp_onnx_add_finding(
                findings, "input", "input %s has a free dimension `%s`: give it, --shape %s=N,...",
                name, info->symbol[i] ? info->symbol[i] : "", name));
        }
    }
    if (count > INT32_MAX || info->rank >= RP_DIMS_MAX) {
        RP_TRY(rp_onnx_add_finding(findings, "input",
                                   "input %s is too large: a sample has at most %d dimensions and "
                                   "2^31 - 1 elements",
                                   name, RP_DIMS_MAX - 1));
        *out = (rp_onnx_dims){0};
    }
fail:
    return err;
}

static rp_err bind_input(const rp_onnx_model *model, uint32_t index,
                         const rp_onnx_given_shape *given, rp_onnx_findings *findings,
                         rp_onnx_dims *out) {
    const uint32_t value = model->input[index];
    const char *name = model->value[value];
    rp_onnx_info info = model->info[value];
    rp_err err = RP_OK;
    *out = (rp_onnx_dims){0};
    if (given) {
        RP_TRY(merge_shape(model, name, given, &info));
    }
    if (!info.known || (!rp_onnx_type_is_float(info.type) && !rp_onnx_type_is_whole(info.type))) {
        return rp_onnx_add_finding(findings, "input", "input %s is not a tensor of numbers", name);
    }
    if (info.type == RP_ONNX_FLOAT16 || info.type == RP_ONNX_BFLOAT16) {
        return rp_onnx_add_finding(
            findings, "input",
            "input %s is %s: arithmetic in it cannot be trained here; export "
            "the net in float32",
            name, rp_onnx_type_name(info.type));
    }
    if (!info.shaped) {
        return rp_onnx_add_finding(findings, "input",
                                   "input %s has no shape: give it, --shape %s=N,...", name, name);
    }
    if (info.rank < 2) {
        return rp_onnx_add_finding(findings, "input",
                                   "input %s has %u dimensions; expected the batch and at least "
                                   "one more",
                                   name, info.rank);
    }
    RP_TRY(check_sizes(name, &info, findings, out));
fail:
    return err;
}

rp_err rp_onnx_bind(const rp_onnx_model *model, const rp_onnx_given_shape *given, uint32_t count,
                    rp_onnx_findings *findings, rp_onnx_dims *out, int64_t *batch) {
    rp_err err;
    *batch = 0;
    RP_TRY(check_names(model, given, count));
    for (uint32_t i = 0; i < model->input_count; i++) {
        const char *name = model->value[model->input[i]];
        RP_TRY(bind_input(model, i, find_given(given, count, name), findings, &out[i]));
        const int64_t size = out[i].rank > 0 ? out[i].dim[0] : -1;
        if (size > 0 && *batch > 0 && size != *batch) {
            RP_TRY(rp_onnx_add_finding(findings, "input",
                                       "input %s has the batch %" PRId64
                                       ", an input before it %" PRId64,
                                       name, size, *batch));
        }
        *batch = size > 0 ? size : *batch;
    }
fail:
    return err;
}
