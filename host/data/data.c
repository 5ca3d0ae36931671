#include "data/data.h"

#include <stdio.h>
#include <string.h>

#include "base/rng.h"
#include "data/validation.h"

enum { KINDS_MAX = 32, PAD = 4, WORKERS_MAX = 64 };

static const char *const augment_words[] = {"none", "crop", "flip", "crop-flip", NULL};

const char *rp_split_name(rp_split split) {
    static const char *const names[RP_SPLITS] = {"train", "test", "validation"};
    return names[split];
}

static rp_err read_kind(rp_data *data, rp_node *node) {
    const char *names[KINDS_MAX + 1] = {NULL};
    uint32_t index = 0;
    rp_err err = RP_OK;
    for (uint32_t i = 0; rp_data_kinds[i] && i < KINDS_MAX; i++) {
        names[i] = rp_data_kinds[i]->name;
    }
    RP_TRY(rp_node_need(node, "set"));
    RP_TRY(rp_node_word(node, "set", names, &index));
    data->kind = rp_data_kinds[index];
fail:
    return err;
}

/* `mean: [..]` or `std: [..]`: one number a group. */
static rp_err read_groups(const rp_data *data, rp_node *node, const char *key, double min,
                          float *out) {
    rp_node *list = rp_node_find(node, key);
    if (!list) {
        return RP_OK;
    }
    if (!rp_node_is_list(list) || rp_node_count(list) != data->norm.groups) {
        return rp_node_fail(list, "expected a list of %u numbers, one for each %s",
                            data->norm.groups, data->channels > 0 ? "channel" : "column");
    }
    for (uint32_t i = 0; i < data->norm.groups; i++) {
        double value;
        rp_err err = rp_node_item_f64(list, i, min, 1e6, &value);
        if (err != RP_OK) {
            return err;
        }
        out[i] = (float)value;
    }
    return RP_OK;
}

/* Over the training part, without the samples that are held out. */
static rp_err measure_norm(rp_data *data) {
    const size_t count = rp_shape_count(&data->sample);
    rp_norm_sums sums;
    rp_arena scratch;
    float *x;
    rp_err err;
    rp_arena_init(&scratch, "norm", 0);
    data->norm.known = false;
    RP_TRY(rp_norm_open_sums(&scratch, &data->norm, &sums));
    RP_TRY(RP_ARENA_NEW(&scratch, count, &x));
    for (uint32_t i = 0; i < data->count[RP_SPLIT_TRAIN]; i++) {
        RP_TRY(rp_data_batch(data, RP_SPLIT_TRAIN, 0, &i, 1, false, x, NULL, NULL));
        rp_norm_add(&data->norm, &sums, x, count);
    }
    rp_norm_finish(&data->norm, &sums, count);
fail:
    rp_arena_finish(&scratch);
    return err;
}

static rp_err read_norm(rp_data *data, rp_node *node) {
    static const char *const words[] = {"usual", "none", "measured", NULL};
    const bool stated = rp_node_find(node, "mean") || rp_node_find(node, "std");
    uint32_t word = 0;
    rp_err err;
    RP_TRY(rp_node_word(node, "normalise", words, &word));
    if (stated && word > 0) {
        return rp_node_fail(rp_node_find(node, "normalise"), "excludes `mean` and `std`");
    }
    RP_TRY(read_groups(data, node, "mean", -1e6, data->norm.mean));
    RP_TRY(read_groups(data, node, "std", 1e-6, data->norm.deviation));
    data->norm.known = (data->norm.known || stated) && word != 1;
    if (word == 2) {
        RP_TRY(measure_norm(data));
    }
fail:
    return err;
}

static rp_err read_augment(rp_data *data, rp_node *node) {
    uint32_t augment = 0;
    rp_err err = rp_node_word(node, "augment", augment_words, &augment);
    if (err == RP_OK && augment > 0 && data->channels == 0) {
        err = rp_node_fail(rp_node_find(node, "augment"), "is for images; data set '%s' has none",
                           data->kind->name);
    }
    data->crop = augment & 1;
    data->flip = augment & 2;
    return err;
}

static rp_err hold_out(rp_arena *arena, rp_data *data, rp_node *node) {
    rp_validation parts;
    rp_err err = rp_validation_choose(arena, node, data->count[RP_SPLIT_TRAIN], data->seed, &parts);
    if (err == RP_OK) {
        data->part[RP_SPLIT_TRAIN] = parts.train;
        data->part[RP_SPLIT_VALIDATION] = parts.validation;
        data->count[RP_SPLIT_TRAIN] = parts.train_count;
        data->count[RP_SPLIT_VALIDATION] = parts.validation_count;
    }
    return err;
}

rp_err rp_data_open(rp_arena *arena, rp_data *data, rp_node *node, const rp_shape *input,
                    bool class_target, uint64_t seed) {
    rp_err err = RP_OK;
    *data = (rp_data){.shuffle = true, .seed = seed, .target_width = 1};
    RP_TRY(read_kind(data, node));
    RP_TRY(rp_node_bool(node, "shuffle", &data->shuffle));
    RP_TRY(data->kind->open(arena, data, node, input, class_target));
    RP_TRY(rp_node_u32(node, "workers", 1, WORKERS_MAX, &data->workers));
    RP_TRY(read_augment(data, node));
    RP_TRY(hold_out(arena, data, node));
    RP_TRY(read_norm(data, node));
    RP_TRY(rp_node_done(node));
    if (data->classes > 0 && !class_target) {
        err = rp_node_fail(rp_node_find(node, "set"),
                           "'%s' has classes: it needs `loss: cross-entropy`", data->kind->name);
    }
fail:
    if (err != RP_OK) {
        rp_data_close(data);
    }
    return err;
}

void rp_data_close(rp_data *data) {
    if (data->kind && data->kind->close) {
        data->kind->close(data);
    }
    *data = (rp_data){0};
}

rp_split rp_data_scored(const rp_data *data) {
    return data->count[RP_SPLIT_VALIDATION] > 0 ? RP_SPLIT_VALIDATION : RP_SPLIT_TEST;
}

void rp_data_order(const rp_data *data, rp_split split, uint32_t epoch, uint32_t *order) {
    for (uint32_t i = 0; i < data->count[split]; i++) {
        order[i] = i;
    }
    if (data->shuffle) {
        char name[32];
        (void)snprintf(name, sizeof name, "order/%u", epoch);
        rp_rng rng = rp_rng_named(data->seed, name);
        rp_rng_shuffle(&rng, order, data->count[split]);
    }
}

/* Moves the picture by (dy, dx); zeros come in. */
static void shift_plane(float *plane, uint32_t height, uint32_t width, int dy, int dx) {
    const size_t left = (size_t)(dx > 0 ? dx : 0);
    const size_t right = (size_t)(dx < 0 ? -dx : 0);
    const size_t kept = left + right < width ? width - left - right : 0;
    for (uint32_t i = 0; i < height; i++) {
        /* From the side that nobody reads any more. */
        const int64_t y = dy > 0 ? (int64_t)height - 1 - i : (int64_t)i;
        const int64_t from = y - dy;
        float *row = plane + y * width;
        if (from < 0 || from >= height || kept == 0) {
            memset(row, 0, width * sizeof *row);
            continue;
        }
        memmove(row + left, plane + from * width + right, kept * sizeof *row);
        memset(row, 0, left * sizeof *row);
        memset(row + left + kept, 0, right * sizeof *row);
    }
}

static void mirror_plane(float *plane, uint32_t height, uint32_t width) {
    for (uint32_t y = 0; y < height; y++, plane += width) {
        for (uint32_t x = 0; x < width / 2; x++) {
            float swap = plane[x];
            plane[x] = plane[width - 1 - x];
            plane[width - 1 - x] = swap;
        }
    }
}

/* source  torchvision's RandomCrop(size, padding=4), then RandomHorizontalFlip */
static void augment_sample(const rp_data *data, uint32_t epoch, uint32_t index, float *x) {
    char name[48];
    const uint32_t height = data->sample.dim[1];
    const uint32_t width = data->sample.dim[2];
    (void)snprintf(name, sizeof name, "augment/%u/%u", epoch, index);
    rp_rng rng = rp_rng_named(data->seed, name);
    const int dy = PAD - (int)rp_rng_below(&rng, 2 * PAD + 1);
    const int dx = PAD - (int)rp_rng_below(&rng, 2 * PAD + 1);
    const bool flip = rp_rng_below(&rng, 2) == 1;
    for (uint32_t c = 0; c < data->channels; c++) {
        float *plane = x + (size_t)c * height * width;
        if (data->crop) {
            shift_plane(plane, height, width, dy, dx);
        }
        if (data->flip && flip) {
            mirror_plane(plane, height, width);
        }
    }
}

rp_err rp_data_batch(const rp_data *data, rp_split split, uint32_t epoch, const uint32_t *index,
                     uint32_t n, bool training, float *x, int32_t *labels, float *rows) {
    const size_t count = rp_shape_count(&data->sample);
    const bool augmented = training && (data->crop || data->flip);
    const rp_split from = split == RP_SPLIT_TEST ? RP_SPLIT_TEST : RP_SPLIT_TRAIN;
    for (uint32_t i = 0; i < n; i++, x += count) {
        if (index[i] >= data->count[split]) {
            return rp_fail(RP_ERR_USAGE, "%s: %s sample %u does not exist, there are %u",
                           data->kind->name, rp_split_name(split), index[i], data->count[split]);
        }
        const uint32_t stored = data->part[split] ? data->part[split][index[i]] : index[i];
        float *row = rows ? rows + (size_t)i * data->target_width : NULL;
        rp_err err = data->kind->read(data, from, stored, x, row, labels ? &labels[i] : NULL);
        if (err != RP_OK) {
            return err;
        }
        if (augmented) {
            augment_sample(data, epoch, stored, x);
        }
        rp_norm_apply(&data->norm, x, count);
    }
    return RP_OK;
}
