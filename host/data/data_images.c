#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "data/data.h"
#include "data/folders.h"
#include "data/image.h"
#include "data/pixels.h"
#include "data/resize.h"
#include "data/scan.h"

enum { SIDE_MAX = 4096, WORKERS_MAX = 4, PATH_BYTES = 4096, SKIPS_MAX = 1000000 };

/* Only paths of pictures are kept. */
typedef struct {
    rp_folders part[2];
} own;

/* Reads `size: 64` or `size: [48, 64]`; default: the model's input. */
static rp_err read_size(rp_node *keys, const rp_shape *input, rp_shape *sample) {
    rp_node *size = rp_node_find(keys, "size");
    rp_err err = RP_OK;
    if (size && rp_node_is_list(size)) {
        if (rp_node_count(size) != 2) {
            return rp_node_fail(size, "expected one side, or [height, width]");
        }
        RP_TRY(rp_node_item_u32(size, 0, 1, SIDE_MAX, &sample->dim[1]));
        RP_TRY(rp_node_item_u32(size, 1, 1, SIDE_MAX, &sample->dim[2]));
    } else if (size) {
        RP_TRY(rp_node_u32(keys, "size", 1, SIDE_MAX, &sample->dim[1]));
        sample->dim[2] = sample->dim[1];
    } else if (input->dims == 3) {
        *sample = *input;
    } else {
        return rp_node_need(keys, "size");
    }
fail:
    return err;
}

/* Reads `grey`; default: the channels of the model's input, or three. */
static rp_err read_colours(rp_node *keys, const rp_shape *input, rp_data *data) {
    bool grey = input->dims == 3 && input->dim[0] == 1;
    rp_err err = rp_node_bool(keys, "grey", &grey);
    data->channels = grey ? 1 : 3;
    data->sample.dims = 3;
    data->sample.dim[0] = data->channels;
    return err;
}

static bool is_folder(const char *path) {
    struct stat facts;
    return stat(path, &facts) == 0 && S_ISDIR(facts.st_mode);
}

static rp_err note_passed(rp_arena *arena, const char *path, const rp_folders *folders,
                          rp_data *data) {
    return folders->passed == 0
               ? RP_OK
               : rp_notes_add(arena, &data->notes,
                              "%s: %u entries are ignored, because they are not .jpg, .jpeg or "
                              ".png files in a folder of a class: %s%s",
                              path, folders->passed, folders->passed_first,
                              folders->passed > 1 ? ", ..." : "");
}

/* Lists PATH/train/CLASS and PATH/test/CLASS; or PATH/CLASS, all of it for training. */
static rp_err list_parts(rp_arena *arena, const char *path, rp_labels *labels, rp_data *data,
                         own *o) {
    char *train;
    char *test;
    rp_err err;
    RP_TRY(rp_arena_printf(arena, &train, "%s/train", path));
    RP_TRY(rp_arena_printf(arena, &test, "%s/test", path));
    data->test_path = test;
    if (!is_folder(train)) {
        RP_TRY(rp_folders_list(arena, path, labels->given, labels, &o->part[RP_SPLIT_TRAIN]));
        return note_passed(arena, path, &o->part[RP_SPLIT_TRAIN], data);
    }
    RP_TRY(rp_folders_list(arena, train, labels->given, labels, &o->part[RP_SPLIT_TRAIN]));
    RP_TRY(note_passed(arena, train, &o->part[RP_SPLIT_TRAIN], data));
    if (access(test, F_OK) == 0) {
        RP_TRY(rp_folders_list(arena, test, true, labels, &o->part[RP_SPLIT_TEST]));
        RP_TRY(note_passed(arena, test, &o->part[RP_SPLIT_TEST], data));
        data->test_path = NULL;
    }
fail:
    return err;
}

static uint32_t usual_workers(void) {
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    return cores < 1 ? 1 : cores > WORKERS_MAX ? WORKERS_MAX : (uint32_t)cores;
}

/* ---- skip_damaged ---------------------------------------------------------------------------- */

typedef struct {
    const rp_folders *folders;
    bool *damaged; /* [folders->count] */
} looking;

static rp_err look_at_picture(void *context, uint32_t index) {
    const looking *l = context;
    char path[PATH_BYTES];
    rp_image image;
    uint32_t class;
    rp_err err;
    RP_TRY(rp_folders_path(l->folders, index, path, sizeof path, &class));
    RP_TRY(rp_image_read(path, false, &image));
    rp_image_free(&image);
fail:
    l->damaged[index] = err == RP_ERR_FORMAT;
    return err;
}

/* Logs the path of each damaged picture; *first: the first path. */
static rp_err log_damaged(rp_arena *arena, const looking *l, const char **first) {
    char path[PATH_BYTES];
    char *copy;
    uint32_t class;
    rp_err err = RP_OK;
    for (uint32_t i = 0; i < l->folders->count; i++) {
        if (l->damaged[i]) {
            RP_TRY(rp_folders_path(l->folders, i, path, sizeof path, &class));
            RP_TRY(rp_arena_string(arena, path, &copy));
            *first = *first ? *first : copy;
            rp_log_warn("%s: is damaged and skipped (data.skip_damaged)", path);
        }
    }
fail:
    return err;
}

/* Fails if more pictures than allowed are damaged, or one cannot be read for a different reason. */
static rp_err check_damaged(const char *path, const rp_scan_result *result, uint32_t allowed) {
    bool unread = false;
    for (uint32_t i = 0; i < result->count && i < RP_SCAN_NAMED_MAX; i++) {
        unread |= result->bad[i].err != RP_ERR_FORMAT;
    }
    if (result->count <= allowed && !unread) {
        return RP_OK;
    }
    rp_scan_log(result);
    return rp_fail(RP_ERR_FORMAT,
                   "%s: %u of %llu pictures cannot be read, but data.skip_damaged allows %u%s",
                   path, result->count, (unsigned long long)result->samples, allowed,
                   unread ? " damaged ones only" : "");
}

/* Removes up to `allowed` damaged pictures from the set. */
static rp_err skip_damaged(rp_arena *arena, const char *path, uint32_t allowed, rp_data *data,
                           own *o) {
    rp_scan_result result = {0};
    const char *first = NULL;
    rp_arena scratch;
    rp_err err = RP_OK;
    looking looks[2];
    rp_arena_init(&scratch, "damaged", 0);
    for (uint32_t p = 0; p < 2; p++) {
        looks[p].folders = &o->part[p];
        RP_TRY(RP_ARENA_NEW(&scratch, (size_t)o->part[p].count + 1, &looks[p].damaged));
        RP_TRY(rp_scan(o->part[p].count, usual_workers(), look_at_picture, &looks[p], &result));
    }
    RP_TRY(check_damaged(path, &result, allowed));
    for (uint32_t p = 0; p < 2; p++) {
        RP_TRY(log_damaged(arena, &looks[p], &first));
        RP_TRY(rp_folders_drop(&o->part[p], looks[p].damaged));
    }
    if (result.count > 0) {
        RP_TRY(rp_notes_add(arena, &data->notes,
                            "%u damaged pictures are skipped (data.skip_damaged: %u): %s%s",
                            result.count, allowed, first, result.count > 1 ? " and others" : ""));
    }
fail:
    rp_arena_finish(&scratch);
    return err;
}

/* ---- the set --------------------------------------------------------------------------------- */

static rp_err open_set(rp_arena *arena, rp_data *data, rp_node *keys, const rp_data_input *input,
                       bool class_target) {
    static const double mean[] = {0.485, 0.456, 0.406};
    static const double deviation[] = {0.229, 0.224, 0.225};
    static const double grey_mean = 0.449;
    static const double grey_deviation = 0.226;
    const char *path = NULL;
    uint32_t skips = 0;
    rp_labels labels;
    rp_err err;
    own *o;
    (void)class_target;
    RP_TRY(rp_data_find_path(keys, &path));
    RP_TRY(read_size(keys, &input->shape, &data->sample));
    RP_TRY(read_colours(keys, &input->shape, data));
    RP_TRY(rp_labels_read(arena, keys, "classes", &labels));
    RP_TRY(RP_ARENA_NEW(arena, 1, &o));
    RP_TRY(list_parts(arena, path, &labels, data, o));
    RP_TRY(rp_node_u32(keys, "skip_damaged", 0, SKIPS_MAX, &skips));
    RP_TRY(skips > 0 ? skip_damaged(arena, path, skips, data, o) : RP_OK);
    RP_TRY(data->channels == 1 ? rp_norm_set(arena, &data->norm, 1, &grey_mean, &grey_deviation)
                               : rp_norm_set(arena, &data->norm, 3, mean, deviation));
    data->count[RP_SPLIT_TRAIN] = o->part[RP_SPLIT_TRAIN].count;
    data->count[RP_SPLIT_TEST] = o->part[RP_SPLIT_TEST].count;
    data->classes = labels.count;
    data->class_name = labels.name;
    data->bytes = true;
    data->workers = usual_workers();
    data->own = o;
fail:
    return err;
}

static rp_err read_sample(const rp_data *data, rp_split split, uint32_t index, float *x, float *row,
                          int32_t *label) {
    const own *o = data->own;
    const rp_shape *sample = &data->sample;
    char path[PATH_BYTES];
    rp_image image = {0};
    void *pixels = NULL;
    uint32_t class;
    rp_err err;
    (void)row;
    RP_TRY(rp_folders_path(&o->part[split], index, path, sizeof path, &class));
    if (label) {
        *label = (int32_t) class;
    }
    RP_TRY(rp_image_read(path, data->channels == 1, &image));
    RP_TRY(rp_block_new(rp_shape_count(sample), &pixels));
    RP_TRY(rp_resize(&image, sample->dim[1], sample->dim[2], pixels));
    rp_pixels_spread(pixels, sample, x);
fail:
    if (pixels) {
        rp_block_free(pixels);
    }
    rp_image_free(&image);
    return err;
}

static rp_err read_label(const rp_data *data, uint32_t index, int32_t *label) {
    const own *o = data->own;
    char path[PATH_BYTES];
    uint32_t class;
    const rp_err err = rp_folders_path(&o->part[RP_SPLIT_TRAIN], index, path, sizeof path, &class);
    *label = (int32_t) class;
    return err;
}

const rp_data_kind rp_data_images = {
    .name = "images",
    .source = "JPEG and PNG files in a folder for each class; mean and deviation as torchvision's",
    .open = open_set,
    .read = read_sample,
    .read_label = read_label,
};
