#include "data/data.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/rng.h"
#include "data/classes.h"
#include "data/scan.h"
#include "data/validation.h"

enum { KINDS_MAX = 32, WORKERS_MAX = 64, LOOKED_AT = 1 << 20, EXACT_MAX = 1 << 24 };
#define STATED_MAX 1e30 /* limit of `mean` and `std`: 1 / STATED_MAX is not 0 as a float */

const char *rp_split_name(rp_split split) {
    static const char *const names[RP_SPLITS] = {"train", "test", "validation"};
    return names[split];
}

rp_err rp_split_refuse_uncounted(rp_split split) {
    return rp_fail(RP_ERR_USAGE,
                   "the %s part has no target that counts: all are the class that `loss.ignore` "
                   "names",
                   rp_split_name(split));
}

rp_err rp_data_find_path(rp_node *keys, const char **out) {
    rp_err err;
    RP_TRY(rp_node_need(keys, "path"));
    RP_TRY(rp_node_string(keys, "path", out));
    if (access(*out, F_OK) != 0) {
        return rp_node_fail(rp_node_find(keys, "path"), "'%s': %s", *out, strerror(errno));
    }
fail:
    return err;
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

/* Reads `mean: [..]` or `std: [..]`, one number for each group. */
static rp_err read_groups(const rp_data *data, rp_node *node, const char *key, double min,
                          double *out) {
    rp_node *list = rp_node_find(node, key);
    if (!list) {
        return RP_OK;
    }
    if (!rp_node_is_list(list) || rp_node_count(list) != data->norm.groups) {
        return rp_node_fail(list, "expected a list of %u numbers, one for each %s",
                            data->norm.groups, data->channels > 0 ? "channel" : "column");
    }
    for (uint32_t i = 0; i < data->norm.groups; i++) {
        rp_err err = rp_node_item_f64(list, i, min, STATED_MAX, &out[i]);
        if (err != RP_OK) {
            return err;
        }
    }
    return RP_OK;
}

/* Reads the training sample with index `stored`, without normalisation or rounding. */
static rp_err read_values(const rp_data *data, uint32_t stored, double *value) {
    const size_t count = rp_shape_count(&data->sample);
    float *x;
    rp_arena scratch;
    rp_err err;
    if (data->kind->read_real) {
        return data->kind->read_real(data, RP_SPLIT_TRAIN, stored, value, NULL, NULL);
    }
    rp_arena_init(&scratch, "values", 0);
    RP_TRY(RP_ARENA_NEW(&scratch, count, &x));
    RP_TRY(data->kind->read(data, RP_SPLIT_TRAIN, stored, x, NULL, NULL));
    for (size_t i = 0; i < count; i++) {
        value[i] = (double)x[i];
    }
fail:
    rp_arena_finish(&scratch);
    return err;
}

static rp_err look_at_values(void *context, uint32_t index) {
    const rp_data *data = context;
    const uint32_t *part = data->part[RP_SPLIT_TRAIN];
    rp_arena scratch;
    double *value;
    rp_err err;
    rp_arena_init(&scratch, "values", 0);
    RP_TRY(RP_ARENA_NEW(&scratch, rp_shape_count(&data->sample), &value));
    RP_TRY(read_values(data, part ? part[index] : index, value));
fail:
    rp_arena_finish(&scratch);
    return err;
}

/* Logs all damaged samples after one was found. */
static rp_err report_bad(rp_data *data) {
    rp_scan_result result = {0};
    const rp_err err =
        rp_scan(data->count[RP_SPLIT_TRAIN], data->workers, look_at_values, data, &result);
    return err == RP_OK ? rp_scan_end(&result) : err;
}

/* Excludes inputs of 0 or 1 for a text from normalisation. */
static void keep_texts(const rp_fields *fields, rp_norm *norm) {
    uint32_t g = 0;
    for (uint32_t i = 0; fields && i < fields->count; i++) {
        const uint32_t end = g + rp_field_width(&fields->field[i]);
        for (; g < end; g++) {
            const bool text = fields->field[i].texts.count > 0;
            norm->mean[g] = text ? 0 : norm->mean[g];
            norm->deviation[g] = text ? 1 : norm->deviation[g];
        }
    }
}

/* Measures mean and deviation over the training part, without samples that are held out. */
static rp_err measure_norm(rp_data *data) {
    const size_t count = rp_shape_count(&data->sample);
    const uint32_t *part = data->part[RP_SPLIT_TRAIN];
    rp_norm_sums sums;
    rp_arena scratch;
    double *value;
    rp_err err;
    rp_arena_init(&scratch, "norm", 0);
    RP_TRY(rp_norm_open_sums(&scratch, &data->norm, &sums));
    RP_TRY(RP_ARENA_NEW(&scratch, count, &value));
    for (uint32_t i = 0; i < data->count[RP_SPLIT_TRAIN]; i++) {
        RP_TRY(read_values(data, part ? part[i] : i, value));
        rp_norm_add(&data->norm, &sums, value, count);
    }
    rp_norm_finish(&data->norm, &sums, count);
    keep_texts(data->fields, &data->norm);
fail:
    rp_arena_finish(&scratch);
    return err;
}

static rp_err read_norm(rp_data *data, rp_node *node) {
    static const char *const words[] = {"usual", "none", "measured", NULL};
    const bool stated = rp_node_find(node, "mean") || rp_node_find(node, "std");
    uint32_t word = 0;
    rp_err err;
    if (!stated || rp_node_find(node, "normalise")) {
        RP_TRY(rp_node_word(node, "normalise", words, &word));
    }
    if (stated && word > 0) {
        return rp_node_fail(rp_node_find(node, "normalise"),
                            "excludes `mean` and `std`: remove it, or them");
    }
    RP_TRY(read_groups(data, node, "mean", -STATED_MAX, data->norm.mean));
    RP_TRY(read_groups(data, node, "std", 1 / STATED_MAX, data->norm.deviation));
    data->norm.known = (data->norm.known || stated) && word != 1;
    if (word == 2 && data->sited) {
        return rp_node_fail(rp_node_find(node, "normalise"),
                            "each site would measure its own samples, so that one model would get "
                            "inputs of different scales: give `mean` and `std` instead");
    }
    if (word == 2) {
        err = measure_norm(data);
        err = err == RP_ERR_FORMAT ? report_bad(data) : err;
    }
fail:
    return err;
}

/* With mixup a target is no single class but a row of shares. */
static rp_err read_augment(rp_data *data, rp_node *node) {
    rp_err err = rp_augment_read(node, data->kind->name, data->channels, &data->augment);
    data->soft = data->augment.mixup > 0 && data->classes > 0;
    if (err == RP_OK && data->masks && rp_augment_moves_pixels(&data->augment)) {
        return rp_node_fail(rp_node_find(node, "augment"),
                            "crop, flip, rotation and mixup do not apply to a class for each "
                            "pixel, because they would not move it with its pixel: remove them");
    }
    return err;
}

/* Token ids are neither augmented nor normalised. */
static rp_err refuse_changes(rp_node *node) {
    static const char *const keys[] = {"augment", "normalise", "mean", "std"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const rp_node *found = rp_node_find(node, keys[i]);
        if (found) {
            return rp_node_fail(found, "does not apply to token ids, which are neither augmented "
                                       "nor normalised: remove it");
        }
    }
    return RP_OK;
}

/* *out: the stored indices of the samples index[0..count) of a site. */
static rp_err list_stored(rp_arena *arena, const uint32_t *site, const uint32_t *index,
                          uint32_t count, const uint32_t **out) {
    uint32_t *stored;
    const rp_err err = RP_ARENA_NEW(arena, count + 1, &stored);
    for (uint32_t i = 0; i < count && err == RP_OK; i++) {
        stored[i] = site[index[i]];
    }
    *out = err == RP_OK ? stored : NULL;
    return err;
}

/* Holds samples out of the training part: of the set, or of a site. */
static rp_err hold_out(rp_arena *arena, rp_data *data, rp_node *node) {
    const uint32_t *site = data->part[RP_SPLIT_TRAIN];
    rp_validation parts;
    rp_err err;
    RP_TRY(rp_validation_choose(arena, node, data->count[RP_SPLIT_TRAIN], data->seed, &parts));
    if (parts.validation_count == 0) {
        return RP_OK;
    }
    if (site) {
        RP_TRY(list_stored(arena, site, parts.train, parts.train_count, &parts.train));
        RP_TRY(
            list_stored(arena, site, parts.validation, parts.validation_count, &parts.validation));
    }
    data->part[RP_SPLIT_TRAIN] = parts.train;
    data->part[RP_SPLIT_VALIDATION] = parts.validation;
    data->count[RP_SPLIT_TRAIN] = parts.train_count;
    data->count[RP_SPLIT_VALIDATION] = parts.validation_count;
fail:
    return err;
}

/* Adds notes on classes without samples in the training part, without samples held out. The pixels
 * of masks were counted when the set was opened. */
static rp_err note_classes(rp_arena *arena, rp_data *data) {
    const uint32_t *part = data->part[RP_SPLIT_TRAIN];
    rp_arena scratch;
    uint32_t *samples;
    rp_err err;
    if (!data->kind->read_label || data->classes == 0 || data->target_width > 1 || data->masks) {
        return RP_OK;
    }
    rp_arena_init(&scratch, "classes", 0);
    RP_TRY(RP_ARENA_NEW(&scratch, data->classes, &samples));
    for (uint32_t i = 0; i < data->count[RP_SPLIT_TRAIN]; i++) {
        int32_t label;
        RP_TRY(data->kind->read_label(data, part ? part[i] : i, &label));
        samples[label]++;
    }
    RP_TRY(rp_classes_note(arena, samples, data->classes, data->class_name, &data->notes));
fail:
    rp_arena_finish(&scratch);
    return err;
}

/* Name of the column of value `index` of a sample; NULL: it has no name. */
static const char *name_of_input(const rp_data *data, size_t index) {
    for (uint32_t i = 0; data->fields && i < data->fields->count; i++) {
        const uint32_t width = rp_field_width(&data->fields->field[i]);
        if (index < width) {
            return data->fields->field[i].name;
        }
        index -= width;
    }
    return NULL;
}

static rp_err add_rounding(rp_arena *arena, rp_data *data, size_t index, double value) {
    const char *name = name_of_input(data, index);
    return rp_notes_add(arena, &data->notes,
                        "input %zu%s%s%s has a value of %.15g, which is rounded to %.15g; "
                        "`normalise: measured` avoids this, because it subtracts the mean first",
                        index + 1, name ? " '" : "", name ? name : "", name ? "'" : "", value,
                        (double)(float)value);
}

/* Adds a note if a value loses digits as a float (whole numbers up to 2^24 are exact). Looks only
 * at the first samples, because large values usually fill a whole column, and reading a whole file
 * would take too long. */
static rp_err note_rounding(rp_arena *arena, rp_data *data) {
    const size_t width = rp_shape_count(&data->sample);
    const uint32_t *part = data->part[RP_SPLIT_TRAIN];
    const uint32_t all = data->count[RP_SPLIT_TRAIN];
    rp_arena scratch;
    double *value;
    rp_err err;
    if (!data->kind->read_real || data->bytes || data->norm.known) {
        return RP_OK;
    }
    rp_arena_init(&scratch, "rounding", 0);
    RP_TRY(RP_ARENA_NEW(&scratch, width, &value));
    for (uint32_t i = 0; i < all && (i + 1) * width <= LOOKED_AT; i++) {
        RP_TRY(read_values(data, part ? part[i] : i, value));
        for (size_t k = 0; k < width; k++) {
            if (fabs(value[k]) > EXACT_MAX && (double)(float)value[k] != value[k]) {
                err = add_rounding(arena, data, k, value[k]);
                goto fail;
            }
        }
    }
fail:
    rp_arena_finish(&scratch);
    return err;
}

/* Keeps the names of the model's inputs, for data.json and messages. */
static rp_err keep_inputs(rp_arena *arena, const rp_data_input *input, rp_data *data) {
    rp_data_part *part;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(arena, input->parts + 1, &part));
    memcpy(part, input->part, input->parts * sizeof *part);
    data->inputs = input->parts;
    data->input = part;
fail:
    return err;
}

rp_err rp_data_open(rp_arena *arena, rp_data *data, rp_node *node, const rp_data_input *input,
                    bool class_target, uint64_t seed) {
    static const rp_data_input follows = {0};
    rp_err err = RP_OK;
    *data = (rp_data){.shuffle = true, .seed = seed, .target_width = 1};
    RP_TRY(keep_inputs(arena, input ? input : &follows, data));
    RP_TRY(read_kind(data, node));
    RP_TRY(rp_node_bool(node, "shuffle", &data->shuffle));
    RP_TRY(data->kind->open(arena, data, node, input ? input : &follows, class_target));
    RP_TRY(rp_node_u32(node, "workers", 1, WORKERS_MAX, &data->workers));
    RP_TRY(data->type == RP_I32 ? refuse_changes(node) : read_augment(data, node));
    RP_TRY(rp_data_take_site(arena, data, node));
    RP_TRY(hold_out(arena, data, node));
    RP_TRY(rp_data_read_buckets(arena, data, node));
    RP_TRY(note_classes(arena, data));
    if (data->type == RP_F32) {
        RP_TRY(read_norm(data, node));
        RP_TRY(note_rounding(arena, data));
    }
    RP_TRY(rp_node_done(node));
    if (data->classes > 0 && !class_target) {
        err = rp_node_fail(rp_node_find(node, "set"),
                           "data set '%s' has classes, so it needs `loss: cross-entropy`",
                           data->kind->name);
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

bool rp_data_has_bytes(const rp_data *data, const char **why) {
    *why = !data->bytes                              ? "the data set's values are not bytes"
           : !rp_augment_keeps_bytes(&data->augment) ? "data.augment computes values between bytes"
                                                     : NULL;
    return !*why;
}

rp_split rp_data_scored(const rp_data *data) {
    return data->count[RP_SPLIT_VALIDATION] > 0 ? RP_SPLIT_VALIDATION : RP_SPLIT_TEST;
}

rp_err rp_data_take_share(rp_data *data, uint32_t share, uint32_t shares, uint32_t batch) {
    const uint32_t all = data->count[RP_SPLIT_TRAIN];
    const uint32_t odd = all % shares;
    if (all < shares) {
        return rp_fail(RP_ERR_USAGE, "data set %s: %u training samples are too few for %u lanes",
                       data->kind->name, all, shares);
    }
    data->share = share;
    data->shares = shares;
    data->shared = all;
    data->count[RP_SPLIT_TRAIN] = all / shares;
    if (data->count[RP_SPLIT_TRAIN] % batch > 0) {
        data->count[RP_SPLIT_TRAIN] += share < odd;
    } else {
        data->left_out = odd;
    }
    return RP_OK;
}

/* Moves the share to the front of the order, in place. */
static void keep_share(const rp_data *data, uint32_t *order) {
    for (uint32_t i = 0; i < data->count[RP_SPLIT_TRAIN]; i++) {
        order[i] = order[(size_t)i * data->shares + data->share];
    }
}

void rp_data_order(const rp_data *data, rp_split split, uint32_t epoch, uint32_t *order) {
    const uint32_t drawn = rp_data_drawn(data, split);
    const uint64_t first = split == RP_SPLIT_TRAIN ? (uint64_t)epoch * data->left_out : 0;
    for (uint32_t i = 0; i < drawn; i++) {
        order[i] = (uint32_t)((first + i) % drawn);
    }
    if (data->shuffle) {
        rp_rng_epoch_order(data->seed, epoch, order, drawn);
    }
    if (split == RP_SPLIT_TRAIN && data->shares > 0) {
        keep_share(data, order);
    }
}
