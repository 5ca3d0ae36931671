#include "data/arrays.h"

#include <string.h>
#include <unistd.h>

#include "data/array.h"
#include "data/classes.h"
#include "data/id_arrays.h"
#include "data/labels.h"
#include "data/layout.h"

enum { CHANNELS_USUAL = 4 };

typedef struct {
    uint32_t files; /* with inputs of a part: 1, or one for each input of the model */
    rp_array x[2][RP_DATA_PARTS_MAX], y[2];
    bool ids;              /* samples are token ids, because the model's input is i32 */
    bool masks;            /* targets are a class for each pixel */
    const int32_t *ignore; /* this label is no class of a mask; NULL: every label is */
    bool channels_last;    /* in the files */
} own;

/* ---- files ----------------------------------------------------------------------------------- */

/* Finds the path of one file. *here: it exists, or the run file names it, so it has to exist. */
static rp_err find_file(rp_arena *arena, rp_node *keys, const char *folder, const char *key,
                        const char *usual, bool packed, char **path, bool *here) {
    const char *name = NULL;
    rp_err err;
    RP_TRY(rp_node_string(keys, key, &name));
    RP_TRY(rp_arena_printf(arena, path, "%s/%s", folder, name ? name : usual));
    *here = name || access(*path, F_OK) == 0;
    if (!*here && packed) {
        char *with_end;
        RP_TRY(rp_arena_printf(arena, &with_end, "%s.gz", *path));
        *here = access(with_end, F_OK) == 0;
        *path = *here ? with_end : *path;
    }
fail:
    return err;
}

/* The files of `key: {INPUT: FILE}`, one for each input of the model. */
static rp_err find_input_files(rp_arena *arena, rp_node *files, const char *folder,
                               const rp_data_input *input, char **path) {
    rp_err err = RP_OK;
    if (input->parts == 0) {
        return rp_node_fail(files, "expected a file name; a file for each input needs a model with "
                                   "several inputs, like `input: {source: {shape: [40], type: "
                                   "i32}, target: {shape: [40], type: i32}}`");
    }
    for (uint32_t i = 0; i < input->parts; i++) {
        const char *name = NULL;
        RP_TRY(rp_node_need(files, input->part[i].name));
        RP_TRY(rp_node_string(files, input->part[i].name, &name));
        RP_TRY(rp_arena_printf(arena, &path[i], "%s/%s", folder, name));
    }
    RP_TRY(rp_node_done(files));
fail:
    return err;
}

/* Finds the inputs of a part: one file, or several. path: [RP_DATA_PARTS_MAX] */
static rp_err find_inputs(rp_arena *arena, rp_node *keys, const char *folder, const char *key,
                          const char *usual, bool packed, const rp_data_input *input, char **path,
                          bool *here) {
    rp_node *node = rp_node_find(keys, key);
    if (node && rp_node_is_map(node)) {
        *here = true;
        return find_input_files(arena, node, folder, input, path);
    }
    return find_file(arena, keys, folder, key, usual, packed, path, here);
}

/* Both parts have one file with inputs, or both have several. With several there is no usual name,
 * so without `test_x` there is no test part. */
static rp_err check_test_files(rp_node *keys, const char *y_path, bool y_here, own *o, bool *here) {
    const rp_node *train = rp_node_find(keys, "train_x");
    const rp_node *test = rp_node_find(keys, "test_x");
    const bool several = o->files > 1;
    if (test && rp_node_is_map(test) != several) {
        return rp_node_fail(test, "expected %s as in train_x",
                            several ? "a file for each input" : "one file");
    }
    if (several && !test && y_here) {
        return rp_node_fail(train, "%s exists, so `test_x` with a file for each input is needed",
                            y_path);
    }
    *here = several ? test != NULL : *here;
    return RP_OK;
}

static rp_err open_part(rp_arena *arena, char *const *x_path, const char *y_path, own *o,
                        rp_split split) {
    rp_err err;
    for (uint32_t i = 0; i < o->files; i++) {
        const rp_array *first = &o->x[split][0];
        RP_TRY(rp_array_open(arena, x_path[i], &o->x[split][i]));
        if (o->x[split][i].count != first->count) {
            return rp_fail(RP_ERR_FORMAT, "%s: has %u samples, expected %u as in %s", x_path[i],
                           o->x[split][i].count, first->count, first->path);
        }
    }
    RP_TRY(rp_array_open(arena, y_path, &o->y[split]));
    if (o->x[split][0].count != o->y[split].count) {
        return rp_fail(RP_ERR_FORMAT, "%s: has %u samples, but %s has %u targets", x_path[0],
                       o->x[split][0].count, y_path, o->y[split].count);
    }
fail:
    return err;
}

static rp_err open_files(rp_arena *arena, rp_node *keys, const rp_data_input *input,
                         const rp_arrays_names *names, rp_data *data, own *o) {
    const rp_node *train = rp_node_find(keys, "train_x");
    const bool packed = names->packed;
    const char *folder = NULL;
    char *x[2][RP_DATA_PARTS_MAX];
    char *y[2];
    bool here[4];
    rp_err err;
    RP_TRY(rp_data_find_path(keys, &folder));
    RP_TRY(
        find_inputs(arena, keys, folder, "train_x", names->train_x, packed, input, x[0], &here[0]));
    o->files = train && rp_node_is_map(train) ? input->parts : 1;
    RP_TRY(find_file(arena, keys, folder, "train_y", names->train_y, packed, &y[0], &here[1]));
    RP_TRY(
        find_inputs(arena, keys, folder, "test_x", names->test_x, packed, input, x[1], &here[2]));
    RP_TRY(find_file(arena, keys, folder, "test_y", names->test_y, packed, &y[1], &here[3]));
    RP_TRY(check_test_files(keys, y[1], here[3], o, &here[2]));
    RP_TRY(open_part(arena, x[0], y[0], o, RP_SPLIT_TRAIN));
    if (here[2] || here[3]) {
        RP_TRY(open_part(arena, x[1], y[1], o, RP_SPLIT_TEST));
    } else {
        data->test_path = o->files > 1 ? "data.test_x" : x[1][0];
    }
fail:
    return err;
}

/* ---- shapes ---------------------------------------------------------------------------------- */

/* Checks the samples of a file against the input of the model file: equal shapes, or equal counts
 * if either is a row. `name`: of the input, for the message, or "". */
static rp_err check_shape(const rp_shape *input, const char *name, const own *o, const rp_array *a,
                          const rp_shape *sample) {
    const rp_shape *s = &a->sample;
    const bool row = !o->ids && (s->dims == 1 || input->dims == 1);
    char text[2][RP_LAYOUT_TEXT_BYTES];
    if (row ? rp_shape_count(input) == rp_shape_count(s) : rp_layout_fits(input, sample)) {
        return RP_OK;
    }
    const rp_shape turned = s->dims == 3 ? rp_layout_channels_first(s) : *s;
    const char *advice = o->channels_last && rp_layout_fits(input, s)
                             ? "; they fit without `channels: last`"
                         : !o->channels_last && !o->ids && rp_layout_fits(input, &turned)
                             ? "; they fit with `channels: last`, as height, width, channels"
                             : "";
    return rp_fail(RP_ERR_FORMAT,
                   "%s: samples have shape %s, expected %s (the model's input%s%s)%s", a->path,
                   rp_layout_text(s, text[0]), rp_layout_text(input, text[1]), name[0] ? " " : "",
                   name, advice);
}

/* A sample of one file as the net sees it: of floats, [] becomes [1], [height, width] an image of
 * one channel. */
static rp_shape shape_of_file(const own *o, const rp_array *a) {
    const rp_shape *s = &a->sample;
    return s->dims == 0              ? rp_shape_1(1)
           : o->channels_last        ? rp_layout_channels_first(s)
           : !o->ids && s->dims == 2 ? rp_shape_3(1, s->dim[0], s->dim[1])
                                     : *s;
}

static rp_err check_channels(const own *o) {
    rp_err err = RP_OK;
    for (uint32_t i = 0; i < o->files && err == RP_OK && o->channels_last; i++) {
        const rp_array *a = &o->x[RP_SPLIT_TRAIN][i];
        err = a->sample.dims == 3
                  ? RP_OK
                  : rp_fail(RP_ERR_FORMAT,
                            "%s: `channels: last` needs samples of [height, width, channels]",
                            a->path);
    }
    return err;
}

/* Each file has the samples of one input. */
static rp_err check_inputs(const rp_data_input *input, const own *o) {
    rp_err err = RP_OK;
    for (uint32_t i = 0; i < o->files && err == RP_OK; i++) {
        const rp_array *a = &o->x[RP_SPLIT_TRAIN][i];
        const rp_shape sample = shape_of_file(o, a);
        rp_shape wanted = input->shape;
        wanted.dim[0] = input->part[i].size;
        err = check_shape(&wanted, input->part[i].name, o, a, &sample);
    }
    return err;
}

/* Adds a note if the last size of an image looks like its channels. */
static rp_err note_channels(rp_arena *arena, const own *o, rp_data *data) {
    const rp_array *a = &o->x[RP_SPLIT_TRAIN][0];
    const rp_shape *s = &a->sample;
    char text[RP_LAYOUT_TEXT_BYTES];
    return s->dims == 3 && !o->channels_last && s->dim[2] <= CHANNELS_USUAL &&
                   s->dim[0] > CHANNELS_USUAL
               ? rp_notes_add(arena, &data->notes,
                              "%s: samples of shape %s are taken as %u channels of %u x %u; if the "
                              "last number counts channels, set `channels: last`",
                              a->path, rp_layout_text(s, text), s->dim[0], s->dim[1], s->dim[2])
               : RP_OK;
}

/* Sets the shape of a sample, and its type. */
static rp_err choose_sample(rp_arena *arena, const rp_data_input *input, const own *o,
                            rp_data *data) {
    const bool stated = input->shape.dims > 0 && rp_shape_check(&input->shape);
    const rp_array *a = &o->x[RP_SPLIT_TRAIN][0];
    rp_err err;
    RP_TRY(check_channels(o));
    data->type = o->ids ? RP_I32 : RP_F32;
    data->sample = shape_of_file(o, a);
    if (o->files > 1) {
        RP_TRY(check_inputs(input, o));
        data->sample = input->shape;
    } else if (stated) {
        RP_TRY(check_shape(&input->shape, "", o, a, &data->sample));
        data->sample = o->channels_last ? data->sample : input->shape;
    } else if (!o->ids) {
        RP_TRY(note_channels(arena, o, data));
    }
    data->channels = !o->ids && data->sample.dims == 3 ? data->sample.dim[0] : 0;
    data->channels_last = o->channels_last;
fail:
    return err;
}

static const char *scaling_of(const rp_array *x) {
    return rp_array_has_bytes(x) ? "bytes, which are divided by 255"
                                 : "numbers, which are not scaled";
}

/* Compares the samples, or the targets, of both parts. */
static rp_err check_same_shape(const rp_array *train, const rp_array *test, const char *what) {
    char text[2][RP_LAYOUT_TEXT_BYTES];
    return !test->path || rp_shape_equal(&train->sample, &test->sample)
               ? RP_OK
               : rp_fail(RP_ERR_FORMAT, "%s: %s have shape %s, expected %s as in %s", test->path,
                         what, rp_layout_text(&test->sample, text[0]),
                         rp_layout_text(&train->sample, text[1]), train->path);
}

static rp_err check_same_targets(const own *o) {
    return check_same_shape(&o->y[RP_SPLIT_TRAIN], &o->y[RP_SPLIT_TEST], "targets");
}

static rp_err check_test(const own *o) {
    char type[2][RP_ARRAY_TYPE_BYTES];
    rp_err err = RP_OK;
    for (uint32_t i = 0; i < o->files; i++) {
        const rp_array *train = &o->x[RP_SPLIT_TRAIN][i];
        const rp_array *test = &o->x[RP_SPLIT_TEST][i];
        if (test->path && !o->ids && rp_array_has_bytes(train) != rp_array_has_bytes(test)) {
            return rp_fail(RP_ERR_FORMAT,
                           "%s has %s (%s), but %s has %s (%s): expected the same type in both",
                           train->path, scaling_of(train), rp_array_type(train, type[0]),
                           test->path, scaling_of(test), rp_array_type(test, type[1]));
        }
        RP_TRY(check_same_shape(train, test, "samples"));
    }
fail:
    return err;
}

/* ---- targets --------------------------------------------------------------------------------- */

static rp_err check_targets(const rp_array *y) {
    const char *advice =
        y->sample.dims == 2 ? "; a class for each pixel needs `loss: {classes_at: first}`" : "";
    return y->number == RP_NUMBER_FLOAT || rp_shape_count(&y->sample) != 1
               ? rp_fail(RP_ERR_FORMAT,
                         "%s: expected one whole number for each sample, its class%s", y->path,
                         advice)
               : RP_OK;
}

/* A mask has the height and width of its image. */
static rp_err check_masks(const own *o, const rp_data *data) {
    const rp_array *y = &o->y[RP_SPLIT_TRAIN];
    const rp_shape *image = &data->sample;
    char text[2][RP_LAYOUT_TEXT_BYTES];
    if (image->dims != 3) {
        return rp_fail(RP_ERR_FORMAT,
                       "%s: samples have shape %s, but loss.classes_at: first needs images "
                       "[channels, height, width]",
                       o->x[RP_SPLIT_TRAIN][0].path, rp_layout_text(image, text[0]));
    }
    const rp_shape mask = rp_shape_2(image->dim[1], image->dim[2]);
    return rp_shape_equal(&y->sample, &mask)
               ? RP_OK
               : rp_fail(RP_ERR_FORMAT,
                         "%s: targets have shape %s, expected %s, a class for each pixel "
                         "(loss.classes_at: first)",
                         y->path, rp_layout_text(&y->sample, text[0]),
                         rp_layout_text(&mask, text[1]));
}

static rp_err count_classes(const rp_array *y, rp_data *data) {
    int32_t label;
    rp_err err = RP_OK;
    for (uint32_t i = 0; i < y->count; i++) {
        RP_TRY(rp_array_read_class(y, i, &label));
        data->classes = (uint32_t)label < data->classes ? data->classes : (uint32_t)label + 1;
    }
fail:
    return err;
}

/* Refuses a class that only the test part has, because its output would never be trained. */
static rp_err check_classes(const own *o, const rp_data *data) {
    const rp_array *y = &o->y[RP_SPLIT_TEST];
    int32_t label;
    rp_err err;
    RP_TRY(check_targets(y));
    for (uint32_t i = 0; i < y->count; i++) {
        RP_TRY(rp_array_read_class(y, i, &label));
        if ((uint32_t)label >= data->classes) {
            return rp_fail(RP_ERR_FORMAT,
                           "%s: class %d of sample %u does not occur in training; expected at most "
                           "%u as in %s",
                           y->path, label, i, data->classes - 1,
                           data->class_name ? "`classes`" : o->y[RP_SPLIT_TRAIN].path);
        }
    }
fail:
    return err;
}

/* Counts the labels of tokens or pixels in both parts, because a rare one may be in the test part
 * only. */
static rp_err count_labels(const own *o, uint32_t *pixels, rp_data *data) {
    rp_err err = RP_OK;
    data->target_width = (uint32_t)rp_shape_count(&o->y[RP_SPLIT_TRAIN].sample);
    for (int split = 0; split < 2; split++) {
        RP_TRY(o->y[split].path ? rp_label_array_measure(&o->y[split], o->ignore, &data->classes,
                                                         split == RP_SPLIT_TRAIN ? pixels : NULL)
                                : RP_OK);
    }
    if (data->classes == 0) {
        return rp_fail(RP_ERR_FORMAT, "%s: all labels are negative%s, expected some from 0",
                       o->y[RP_SPLIT_TRAIN].path, o->ignore ? ", or ignored" : "");
    }
fail:
    return err;
}

/* Has each token or pixel a label? Otherwise a sample has a class. */
static bool has_labels(const own *o) {
    return o->masks || (o->ids && rp_shape_count(&o->y[RP_SPLIT_TRAIN].sample) > 1);
}

static rp_err find_classes(rp_arena *arena, rp_node *keys, const own *o, rp_data *data) {
    const bool many = has_labels(o);
    uint32_t *pixels = NULL; /* [RP_TOKENS_MAX] of a training mask, by class; NULL: no masks */
    rp_labels labels;
    rp_arena scratch;
    rp_err err;
    rp_arena_init(&scratch, "classes", 0);
    RP_TRY(o->masks ? check_masks(o, data) : many ? RP_OK : check_targets(&o->y[RP_SPLIT_TRAIN]));
    RP_TRY(check_same_targets(o)); /* after those of training, which may be the wrong ones */
    RP_TRY(rp_labels_read(arena, keys, "classes", &labels));
    RP_TRY(o->masks ? RP_ARENA_NEW(&scratch, RP_TOKENS_MAX, &pixels) : RP_OK);
    RP_TRY(many ? count_labels(o, pixels, data) : count_classes(&o->y[RP_SPLIT_TRAIN], data));
    if (labels.given && labels.count < data->classes) {
        err = rp_node_fail(rp_node_find(keys, "classes"),
                           "the list has %u names, but the data have %u classes", labels.count,
                           data->classes);
        goto fail;
    }
    if (labels.given) {
        data->classes = labels.count;
        data->class_name = labels.name;
    }
    RP_TRY(o->y[RP_SPLIT_TEST].path && !many ? check_classes(o, data) : RP_OK);
    RP_TRY(pixels ? rp_classes_note_pixels(arena, pixels, data->classes, data->class_name,
                                           &data->notes)
                  : RP_OK);
fail:
    rp_arena_finish(&scratch);
    return err;
}

/* ---- token ids ------------------------------------------------------------------------------- */

static rp_err count_tokens(const own *o, rp_data *data) {
    rp_err err = RP_OK;
    for (int split = 0; split < 2; split++) {
        for (uint32_t i = 0; i < o->files && o->x[split][i].path; i++) {
            RP_TRY(rp_id_array_measure(&o->x[split][i], &data->tokens));
        }
    }
fail:
    return err;
}

/* The class of a sample, or one for each token or pixel. */
static rp_err read_labels(const rp_data *data, const rp_array *y, uint32_t index, int32_t *label) {
    return has_labels(data->own) ? rp_label_array_read(y, index, data->classes,
                                                       data->ignores ? &data->ignore : NULL, label)
                                 : rp_array_read_class(y, index, label);
}

rp_err rp_arrays_read_ids(const rp_data *data, rp_split split, uint32_t index, int32_t *id,
                          float *row, int32_t *label) {
    const own *o = data->own;
    const rp_array *y = &o->y[split];
    rp_err err;
    for (uint32_t i = 0; i < o->files; i++) {
        const rp_array *x = &o->x[split][i];
        RP_TRY(rp_id_array_read(x, index, id));
        id += rp_shape_count(&x->sample);
    }
    if (label && data->classes > 0) {
        RP_TRY(read_labels(data, y, index, label));
    }
    if (row && data->classes == 0) {
        RP_TRY(rp_array_read_row(y, index, row));
    }
fail:
    return err;
}

/* ---- the set --------------------------------------------------------------------------------- */

/* Are all values pixels? Files of the test part have the same types. */
static bool have_bytes(const own *o) {
    bool have = true;
    for (uint32_t i = 0; i < o->files; i++) {
        have = have && rp_array_has_bytes(&o->x[RP_SPLIT_TRAIN][i]);
    }
    return have;
}

rp_err rp_arrays_open(rp_arena *arena, rp_data *data, rp_node *keys, const rp_data_input *input,
                      bool class_target, const rp_arrays_names *names) {
    static const char *const words[] = {"first", "last", NULL};
    uint32_t channels = 0;
    rp_err err;
    own *o;
    RP_TRY(RP_ARENA_NEW(arena, 1, &o));
    for (int split = 0; split < 2; split++) {
        o->y[split].fd = -1;
        for (uint32_t i = 0; i < RP_DATA_PARTS_MAX; i++) {
            o->x[split][i].fd = -1;
        }
    }
    data->own = o;
    RP_TRY(rp_node_word(keys, "channels", words, &channels));
    o->channels_last = channels == 1;
    o->ids = input->type == RP_I32;
    o->masks = input->masks && !o->ids;
    o->ignore = o->masks ? input->ignore : NULL;
    data->masks = o->masks;
    if (o->ids && o->channels_last) {
        return rp_node_fail(rp_node_find(keys, "channels"), "does not apply to token ids");
    }
    RP_TRY(open_files(arena, keys, input, names, data, o));
    RP_TRY(choose_sample(arena, input, o, data));
    RP_TRY(check_test(o));
    RP_TRY(o->ids ? count_tokens(o, data) : RP_OK);
    data->bytes = !o->ids && have_bytes(o);
    data->target_width = 1;
    if (class_target) {
        RP_TRY(find_classes(arena, keys, o, data));
    } else {
        RP_TRY(check_same_targets(o));
        data->target_width = (uint32_t)rp_shape_count(&o->y[RP_SPLIT_TRAIN].sample);
    }
    for (int split = RP_SPLIT_TRAIN; split <= RP_SPLIT_TEST; split++) {
        data->count[split] = o->x[split][0].count;
    }
    if (!o->ids) {
        RP_TRY(rp_norm_set(arena, &data->norm,
                           data->channels > 0       ? data->channels
                           : data->sample.dims == 1 ? data->sample.dim[0]
                                                    : 1,
                           NULL, NULL));
    }
fail:
    return err;
}

rp_err rp_arrays_read(const rp_data *data, rp_split split, uint32_t index, double *value,
                      float *row, int32_t *label) {
    const own *o = data->own;
    rp_err err;
    for (uint32_t i = 0; i < o->files; i++) {
        const rp_array *x = &o->x[split][i];
        RP_TRY(rp_array_read(x, index, true, value));
        if (o->channels_last) {
            const rp_shape turned = rp_layout_channels_first(&x->sample);
            RP_TRY(rp_layout_turn(&turned, value));
        }
        value += rp_shape_count(&x->sample);
    }
    if (label && data->classes > 0) {
        RP_TRY(read_labels(data, &o->y[split], index, label));
    }
    if (row && data->classes == 0) {
        RP_TRY(rp_array_read_row(&o->y[split], index, row));
    }
fail:
    return err;
}

rp_err rp_arrays_read_label(const rp_data *data, uint32_t index, int32_t *label) {
    const own *o = data->own;
    return rp_array_read_class(&o->y[RP_SPLIT_TRAIN], index, label);
}

void rp_arrays_close(rp_data *data) {
    own *o = data->own;
    for (int split = 0; o && split < 2; split++) {
        rp_array_close(&o->y[split]);
        for (uint32_t i = 0; i < RP_DATA_PARTS_MAX; i++) {
            rp_array_close(&o->x[split][i]);
        }
    }
}
