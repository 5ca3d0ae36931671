#include "data/cifar.h"
#include "data/data.h"
#include "data/pixels.h"

enum { FINE = 100, COARSE = 20, LABELS = 2 /* in a record: coarse, then fine */ };

typedef struct {
    rp_cifar_file part[2];
    uint32_t label; /* index of the label in a record */
} own;

static rp_err open_set(rp_arena *arena, rp_data *data, rp_node *keys, const rp_data_input *input,
                       bool class_target) {
    static const double mean[] = {0.5071, 0.4867, 0.4408};
    static const double deviation[] = {0.2675, 0.2565, 0.2761};
    static const uint32_t most[] = {COARSE, FINE, 0};
    static const char *const words[] = {"fine", "coarse", NULL};
    static const char sub[] = "cifar-100-binary";
    (void)input;
    (void)class_target;
    const char *folder = NULL;
    uint32_t word = 0;
    rp_err err;
    own *o;
    RP_TRY(rp_node_need(keys, "path"));
    RP_TRY(rp_node_string(keys, "path", &folder));
    RP_TRY(rp_node_word(keys, "labels", words, &word));
    RP_TRY(RP_ARENA_NEW(arena, 1, &o));
    RP_TRY(rp_cifar_open(arena, folder, sub, "train.bin", most, &o->part[RP_SPLIT_TRAIN]));
    RP_TRY(rp_cifar_open(arena, folder, sub, "test.bin", most, &o->part[RP_SPLIT_TEST]));
    o->label = word == 0 ? 1 : 0;
    data->classes = word == 0 ? FINE : COARSE;
    RP_TRY(rp_cifar_names(arena, folder, sub,
                          word == 0 ? "fine_label_names.txt" : "coarse_label_names.txt",
                          data->classes, &data->class_name));
    data->count[RP_SPLIT_TRAIN] = o->part[RP_SPLIT_TRAIN].count;
    data->count[RP_SPLIT_TEST] = o->part[RP_SPLIT_TEST].count;
    data->sample = rp_shape_3(3, RP_CIFAR_SIDE, RP_CIFAR_SIDE);
    data->channels = 3;
    data->bytes = true;
    RP_TRY(rp_norm_set(arena, &data->norm, 3, mean, deviation));
    data->own = o;
fail:
    return err;
}

static rp_err read_sample(const rp_data *data, rp_split split, uint32_t index, float *x, float *row,
                          int32_t *label) {
    const own *o = data->own;
    const rp_cifar_file *file = &o->part[split];
    const uint8_t *record = file->records + (size_t)index * file->record_bytes;
    (void)row;
    rp_pixels_read(x, record + LABELS, RP_CIFAR_PIXELS);
    if (label) {
        *label = record[o->label];
    }
    return RP_OK;
}

const rp_data_kind rp_data_cifar100 = {
    .name = "cifar100",
    .source = "CIFAR-100 binary version, Krizhevsky 2009; the usual mean and deviation",
    .open = open_set,
    .read = read_sample,
};
