/* Making batches: samples are read, augmented and normalised. */
#include <string.h>

#include "data/data.h"
#include "data/mixup.h"

/* One-hot row of a class. */
static void fill_row(const rp_data *data, int32_t label, float *row) {
    memset(row, 0, data->classes * sizeof *row);
    if (label >= 0 && (uint32_t)label < data->classes) {
        row[label] = 1.0f;
    }
}

typedef struct {
    rp_split split;
    uint32_t epoch;
    bool training;
    double *value;    /* buffers: a sample of a kind with `read_real`, */
    float *scratch;   /* of the augmentation, */
    float *other;     /* and the partner for mixup */
    float *other_row; /* with its target */
} making;

/* Are values normalised as doubles before they are rounded to floats? Not if an augmentation comes
 * first, which works on floats. */
static bool rounds_last(const rp_data *data, const making *m) {
    return !data->bytes && !data->raw && !(m->training && rp_augment_changes_image(&data->augment));
}

static rp_err read_ids(const rp_data *data, rp_split from, uint32_t stored, int32_t *id,
                       int32_t *label, float *row) {
    const size_t count = rp_shape_count(&data->sample);
    rp_err err;
    RP_TRY(data->kind->read_ids(data, from, stored, id, row, label));
    for (size_t i = 0; data->id_limit && i < count; i++) {
        const uint32_t limit = data->id_limit[i];
        if (limit > 0 && (id[i] < 0 || (uint32_t)id[i] >= limit)) {
            return rp_fail(RP_ERR_FORMAT,
                           "data set %s: %s sample %u has the token %d at position %zu, but the "
                           "model has only tokens 0 to %u",
                           data->kind->name, rp_split_name(from), stored, id[i], i, limit - 1);
        }
    }
fail:
    return err;
}

/* *normalised: the values read are normalised already. */
static rp_err read_sample(const rp_data *data, const making *m, rp_split from, uint32_t stored,
                          void *x, int32_t *label, float *row, bool *normalised) {
    static const rp_norm none = {0};
    *normalised = false;
    if (data->type == RP_I32) {
        return read_ids(data, from, stored, x, label, row);
    }
    if (data->kind->read) {
        return data->kind->read(data, from, stored, x, row, label);
    }
    *normalised = rounds_last(data, m);
    rp_err err = data->kind->read_real(data, from, stored, m->value, row, label);
    if (err == RP_OK) {
        rp_norm_round(*normalised ? &data->norm : &none, m->value, x,
                      rp_shape_count(&data->sample));
    }
    return err;
}

void rp_data_texts(const rp_data *data, rp_split split, uint32_t index, const char **source,
                   const char **target) {
    uint32_t stored;
    const rp_split from = rp_data_find_stored(data, split, index, &stored);
    data->kind->read_texts(data, from, stored, source, target);
}

/* Makes sample `index` of the split, without mixup. */
static rp_err make_sample(const rp_data *data, const making *m, uint32_t index, void *x,
                          int32_t *label, float *row) {
    uint32_t stored;
    const rp_split from = rp_data_find_stored(data, m->split, index, &stored);
    int32_t own = 0;
    bool normalised;
    rp_err err = read_sample(data, m, from, stored, x, data->soft ? &own : label,
                             data->soft ? NULL : row, &normalised);
    if (err != RP_OK) {
        return err;
    }
    if (data->soft && label) {
        *label = own;
    }
    if (data->soft && row) {
        fill_row(data, own, row);
    }
    if (data->type == RP_I32) {
        return RP_OK; /* ids are neither augmented nor normalised */
    }
    if (m->training) {
        rp_augment_image(&data->augment, data->seed, m->epoch, stored, &data->sample, x,
                         m->scratch);
    }
    if (!data->raw && !normalised) {
        rp_norm_apply(&data->norm, x, rp_shape_count(&data->sample));
    }
    if (m->training) {
        rp_augment_normalised(&data->augment, data->seed, m->epoch, stored, &data->sample, x);
    }
    return RP_OK;
}

static rp_err mix_sample(const rp_data *data, const making *m, uint32_t index, float *x,
                         float *row) {
    const uint32_t stored = data->part[m->split] ? data->part[m->split][index] : index;
    uint32_t partner;
    double share;
    rp_augment_partner(&data->augment, data->seed, m->epoch, stored, rp_data_drawn(data, m->split),
                       &partner, &share);
    rp_err err = make_sample(data, m, partner, m->other, NULL, row ? m->other_row : NULL);
    if (err == RP_OK) {
        rp_mixup_blend(x, m->other, rp_shape_count(&data->sample), share);
        if (row) {
            rp_mixup_blend(row, m->other_row, rp_data_row_width(data), share);
        }
    }
    return err;
}

/* After the labels of each sample follows how many labels of the batch count. */
static void put_counted(const rp_data *data, uint32_t n, int32_t *labels) {
    const uint32_t width = rp_data_label_width(data);
    int32_t counted = 0;
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t k = 0; k + 1 < width; k++) {
            counted += labels[(size_t)i * width + k] != data->ignore;
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        labels[(size_t)i * width + width - 1] = counted;
    }
}

static rp_err make_batch(const rp_data *data, const making *m, const uint32_t *index, uint32_t n,
                         char *x, int32_t *labels, float *rows) {
    const size_t bytes = rp_shape_count(&data->sample) * rp_dtype_bytes(data->type);
    rp_err err = RP_OK;
    for (uint32_t i = 0; i < n && err == RP_OK; i++, x += bytes) {
        float *row = rows ? rows + (size_t)i * rp_data_row_width(data) : NULL;
        int32_t *label = labels ? labels + (size_t)i * rp_data_label_width(data) : NULL;
        if (index[i] >= rp_data_drawn(data, m->split)) {
            return rp_fail(RP_ERR_USAGE, "data set %s: there is no %s sample %u, only %u samples",
                           data->kind->name, rp_split_name(m->split), index[i],
                           rp_data_drawn(data, m->split));
        }
        err = make_sample(data, m, index[i], x, label, row);
        if (err == RP_OK && m->other) {
            err = mix_sample(data, m, index[i], (float *)(void *)x, row);
        }
    }
    if (err == RP_OK && labels && data->ignores) {
        put_counted(data, n, labels);
    }
    return err;
}

rp_err rp_data_batch(const rp_data *data, rp_split split, uint32_t epoch, const uint32_t *index,
                     uint32_t n, bool training, void *x, int32_t *labels, float *rows) {
    const bool mixes = training && data->augment.mixup > 0;
    const size_t turned = training ? rp_augment_scratch(&data->augment, &data->sample) : 0;
    making m = {.split = split, .epoch = epoch, .training = training};
    rp_arena scratch; /* not shared, because threads make batches concurrently */
    rp_err err = RP_OK;
    rp_arena_init(&scratch, "batch", 0);
    if (data->kind->read_real) {
        RP_TRY(RP_ARENA_NEW(&scratch, rp_shape_count(&data->sample), &m.value));
    }
    if (turned > 0) {
        RP_TRY(RP_ARENA_NEW(&scratch, turned, &m.scratch));
    }
    if (mixes) {
        RP_TRY(RP_ARENA_NEW(&scratch, rp_shape_count(&data->sample), &m.other));
        RP_TRY(RP_ARENA_NEW(&scratch, rp_data_row_width(data), &m.other_row));
    }
    RP_TRY(make_batch(data, &m, index, n, x, labels, rows));
fail:
    rp_arena_finish(&scratch);
    return err;
}
