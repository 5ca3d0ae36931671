/* net_outputs weights MODEL FILE: writes initial weights, whose running statistics are drawn too.
 * net_outputs run MODEL FILE X Y: the outputs that `ringpipe predict` computes for the samples in
 * X; both files are numbers without a header, X of int32 ids if the model reads ids.
 *
 * SAMPLE, CLASSES and TOKENS in the environment are what the model file leaves to the data. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/safetensors.h"
#include "device/device.h"
#include "predict/network.h"

static uint32_t number_in(const char *name) {
    const char *text = getenv(name);
    return text ? (uint32_t)strtoul(text, NULL, 10) : 0;
}

static rp_model_data read_data(void) {
    rp_model_data data = {.classes = number_in("CLASSES"), .tokens = number_in("TOKENS")};
    const char *at = getenv("SAMPLE");
    char *end;
    while (at && *at && data.sample.dims < RP_DIMS_MAX) {
        data.sample.dim[data.sample.dims++] = (uint32_t)strtoul(at, &end, 10);
        at = *end == ',' ? end + 1 : end;
    }
    data.type = data.tokens > 0 ? RP_I32 : RP_F32;
    return data;
}

/* ---- weights --------------------------------------------------------------------------------- */

static void fill(const rp_model *model, uint32_t param, float *values) {
    const rp_model_param *p = &model->param[param];
    const char *suffix = model->plan[p->layer].param[p->index].suffix;
    rp_model_init_param(model, param, 7, values);
    for (size_t i = 0; i < p->count; i++) {
        const float part = (float)((i * 37 + param * 11) % 101) / 101.0f;
        if (p->role == RP_PARAM_STATE) {
            values[i] = strcmp(suffix, "running_var") == 0 ? 0.5f + part : part - 0.5f;
        } else {
            values[i] += 0.02f * (part - 0.5f); /* biases and corrections that begin with 0 */
        }
    }
}

static rp_err write_weights(rp_arena *arena, const char *model_path, const char *path) {
    const rp_model_data data = read_data();
    rp_node *root;
    rp_model *model;
    rp_st_entry *entry;
    rp_st_writer *writer = NULL;
    uint32_t count = 0;
    rp_err err;
    RP_TRY(rp_config_read_file(arena, model_path, &root));
    RP_TRY(rp_model_parse(arena, root, &data, &model));
    RP_TRY(RP_ARENA_NEW(arena, model->param_count + 1, &entry));
    for (uint32_t i = 0; i < model->param_count; i++) {
        const rp_model_param *p = &model->param[i];
        if (p->owner == i && p->role != RP_PARAM_SCRATCH) {
            rp_st_entry *e = &entry[count++];
            *e = (rp_st_entry){.name = p->name, .type = RP_ST_F32, .dims = p->shape.dims};
            for (uint32_t d = 0; d < e->dims; d++) {
                e->dim[d] = p->shape.dim[d];
            }
        }
    }
    RP_TRY(rp_st_create(arena, path, entry, count, NULL, false, &writer));
    count = 0;
    for (uint32_t i = 0; i < model->param_count; i++) {
        const rp_model_param *p = &model->param[i];
        float *values;
        if (p->owner == i && p->role != RP_PARAM_SCRATCH) {
            RP_TRY(RP_ARENA_NEW(arena, p->count, &values));
            fill(model, i, values);
            RP_TRY(rp_st_write(writer, count++, 0, values, p->count * sizeof *values));
        }
    }
    RP_TRY(rp_st_commit(&writer));
fail:
    rp_st_abandon(&writer);
    return err;
}

/* ---- outputs --------------------------------------------------------------------------------- */

static rp_err read_samples(rp_arena *arena, const char *path, void **out, size_t *bytes) {
    struct stat facts;
    FILE *file = stat(path, &facts) == 0 ? fopen(path, "rb") : NULL;
    rp_err err = file ? rp_arena_alloc(arena, (size_t)facts.st_size + 1, 1, out) : RP_ERR_IO;
    *bytes = file ? (size_t)facts.st_size : 0;
    if (err == RP_OK && fread(*out, 1, *bytes, file) != *bytes) {
        err = RP_ERR_IO;
    }
    if (file) {
        (void)fclose(file);
    }
    return err;
}

static rp_err run_all(rp_arena *arena, rp_network *network, size_t sample_bytes, const char *x_path,
                      FILE *to) {
    const uint32_t outputs = rp_network_outputs(network);
    const uint32_t micro = rp_network_micro(network);
    void *x;
    float *y;
    size_t bytes;
    rp_err err;
    RP_TRY(read_samples(arena, x_path, &x, &bytes));
    RP_TRY(RP_ARENA_NEW(arena, (size_t)micro * outputs, &y));
    for (size_t first = 0; first < bytes / sample_bytes; first += micro) {
        const size_t left = bytes / sample_bytes - first;
        const uint32_t n = left < micro ? (uint32_t)left : micro;
        RP_TRY(rp_network_run(network, 0, (const char *)x + first * sample_bytes, n, y));
        if (fwrite(y, sizeof *y, (size_t)n * outputs, to) != (size_t)n * outputs) {
            return rp_fail(RP_ERR_IO, "cannot write the outputs");
        }
    }
fail:
    return err;
}

static rp_err write_outputs(rp_arena *arena, char **word) {
    rp_network_options options = {.data = read_data(), .weights = word[1]};
    rp_network *network = NULL;
    rp_device *device = NULL;
    rp_model *model;
    rp_node *root;
    FILE *to = NULL;
    rp_err err;
    RP_TRY(rp_config_read_file(arena, word[0], &root));
    RP_TRY(rp_model_parse(arena, root, &options.data, &model));
    options.data.sample = model->input;
    options.data.type = model->input_type;
    RP_TRY(rp_config_read_file(arena, word[0], &options.model));
    RP_TRY(rp_network_read(arena, &options, &network));
    RP_TRY(rp_device_open(arena, &(rp_device_options){0}, &device));
    RP_TRY(rp_network_start(network, device));
    to = fopen(word[3], "wb");
    err = to ? run_all(arena, network, rp_shape_count(&model->input) * sizeof(float), word[2], to)
             : RP_ERR_IO;
    if (to && fclose(to) != 0) {
        err = RP_ERR_IO;
    }
fail:
    rp_network_close(&network);
    rp_device_close(&device);
    return err;
}

int main(int argc, char **argv) {
    rp_arena arena;
    rp_err err = RP_ERR_USAGE;
    rp_arena_init(&arena, "test", 0);
    if (argc == 4 && strcmp(argv[1], "weights") == 0) {
        err = write_weights(&arena, argv[2], argv[3]);
    } else if (argc == 6 && strcmp(argv[1], "run") == 0) {
        err = write_outputs(&arena, argv + 2);
    }
    rp_arena_finish(&arena);
    return err == RP_OK ? 0 : 1;
}
