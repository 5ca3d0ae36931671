/* inspect: lists a file of tensors, a model file, or an ONNX model. */
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json_print.h"
#include "base/json_values.h"
#include "base/tensor_range.h"
#include "cli/onnx_report.h"

typedef struct {
    uint64_t values, bytes, nan, infinite;
    uint32_t unread; /* tensors of floats in an unsupported type, like F8_E4M3 */
} totals;

static void add_total(totals *total, const rp_st_entry *entry, const rp_tensor_range *range) {
    total->values += range->count;
    total->bytes += entry->bytes;
    total->nan += range->nan;
    total->infinite += range->infinite;
    total->unread += !rp_st_has_values(entry->type) && entry->type != RP_ST_BOOL;
}

/* ---- text ------------------------------------------------------------------------------------ */

static void print_odd(uint64_t nan, uint64_t infinite) {
    if (nan + infinite > 0) {
        (void)printf("  NOT FINITE: %" PRIu64 " NaN, %" PRIu64 " infinite", nan, infinite);
    }
}

static void print_entry(const rp_st_entry *entry, const rp_tensor_range *range, int name_columns) {
    char shape[160] = "[";
    for (uint32_t d = 0; d < entry->dims; d++) {
        const size_t used = strlen(shape);
        (void)snprintf(shape + used, sizeof shape - used, "%s%" PRIu64, d ? ", " : "",
                       entry->dim[d]);
    }
    const size_t used = strlen(shape);
    (void)snprintf(shape + used, sizeof shape - used, "]");
    (void)printf("%-*s  %-4s  %-18s %12" PRIu64 " bytes", name_columns, entry->name,
                 rp_st_type_name(entry->type), shape, entry->bytes);
    if (!isnan(range->min)) {
        (void)printf("  from %11.4g to %11.4g  mean %11.4g", range->min, range->max, range->mean);
    }
    print_odd(range->nan, range->infinite);
    (void)printf("\n");
}

static void print_text(const rp_st_reader *reader) {
    totals total = {0};
    const char *key;
    const char *value;
    int columns = 4;
    for (uint32_t i = 0; i < rp_st_count(reader); i++) {
        const int own = (int)strlen(rp_st_entry_at(reader, i)->name);
        columns = own > columns ? own : columns;
    }
    for (uint32_t i = 0; i < rp_st_count(reader); i++) {
        const rp_st_entry *entry = rp_st_entry_at(reader, i);
        const rp_tensor_range range = rp_tensor_range_of(reader, entry);
        print_entry(entry, &range, columns);
        add_total(&total, entry, &range);
    }
    for (uint32_t i = 0; rp_st_meta_at(reader, i, &key, &value); i++) {
        (void)printf("%s: %s\n", key, value);
    }
    (void)printf("%u tensors, %" PRIu64 " values, %" PRIu64 " bytes", rp_st_count(reader),
                 total.values, total.bytes);
    print_odd(total.nan, total.infinite);
    (void)printf("%s\n", total.nan + total.infinite + total.unread ? "" : ", all finite");
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static json_t *entry_object(const rp_st_entry *entry, const rp_tensor_range *range) {
    json_t *shape = json_array();
    for (uint32_t d = 0; d < entry->dims; d++) {
        (void)json_array_append_new(shape, json_integer((json_int_t)entry->dim[d]));
    }
    return json_pack("{s:s, s:s, s:o, s:I, s:I, s:o, s:o, s:o, s:I, s:I}", "name", entry->name,
                     "dtype", rp_st_type_name(entry->type), "shape", shape, "values",
                     (json_int_t)range->count, "bytes", (json_int_t)entry->bytes, "min",
                     rp_json_of_real(range->min), "max", rp_json_of_real(range->max), "mean",
                     rp_json_of_real(range->mean), "nan", (json_int_t)range->nan, "infinite",
                     (json_int_t)range->infinite);
}

static rp_err print_json(const rp_st_reader *reader) {
    totals total = {0};
    json_t *tensors = json_array();
    json_t *metadata = json_object();
    const char *key;
    const char *value;
    for (uint32_t i = 0; i < rp_st_count(reader); i++) {
        const rp_st_entry *entry = rp_st_entry_at(reader, i);
        const rp_tensor_range range = rp_tensor_range_of(reader, entry);
        (void)json_array_append_new(tensors, entry_object(entry, &range));
        add_total(&total, entry, &range);
    }
    for (uint32_t i = 0; rp_st_meta_at(reader, i, &key, &value); i++) {
        (void)json_object_set_new(metadata, key, json_string(value));
    }
    json_t *root = json_pack("{s:i, s:o, s:o, s:I, s:I, s:I, s:I}", "version", 1, "tensors",
                             tensors, "metadata", metadata, "values", (json_int_t)total.values,
                             "bytes", (json_int_t)total.bytes, "nan", (json_int_t)total.nan,
                             "infinite", (json_int_t)total.infinite);
    return rp_json_print(root, 0, stdout);
}

static bool is_onnx(const char *word) {
    const size_t length = strlen(word);
    return length > 5 && strcmp(word + length - 5, ".onnx") == 0;
}

static rp_err inspect_onnx(rp_arena *arena, const rp_cli_args *args) {
    rp_onnx_model *model = NULL;
    rp_onnx_import import;
    rp_err err;
    RP_TRY(rp_cli_analyse_onnx(arena, args, &model, &import));
    RP_TRY(rp_cli_print_onnx(arena, args, &import));
fail:
    rp_onnx_close(&model);
    return err;
}

rp_err rp_verb_inspect(rp_arena *arena, const rp_cli_args *args) {
    if (is_onnx(args->words.item[0])) {
        return inspect_onnx(arena, args);
    }
    if (rp_cli_is_model(args->words.item[0])) {
        return rp_cli_inspect_model(arena, args);
    }
    rp_st_reader *reader = NULL;
    rp_err err;
    RP_TRY(rp_st_open(arena, args->words.item[0], &reader));
    if (rp_cli_is_json(args)) {
        RP_TRY(print_json(reader));
    } else {
        print_text(reader);
    }
fail:
    rp_st_close(&reader);
    return err;
}
