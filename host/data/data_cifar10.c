#include "data/cifar.h"
#include "data/data.h"
#include "data/pixels.h"

enum { CLASSES = 10, FILES = 6 };

typedef struct {
    rp_cifar_file file[FILES];
} own;

static const char *const names[FILES] = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                                         "data_batch_4.bin", "data_batch_5.bin", "test_batch.bin"};

static rp_err open_set(rp_arena *arena, rp_data *data, rp_node *keys, const rp_data_input *input,
                       bool class_target) {
    static const double mean[] = {0.4914, 0.4822, 0.4465};
    static const double deviation[] = {0.2470, 0.2435, 0.2616};
    static const uint32_t most[] = {CLASSES, 0};
    static const char *const class_names[CLASSES] = {
        "airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"};
    (void)input;
    (void)class_target;
    rp_err err = RP_OK;
    const char *folder = NULL;
    own *o;
    RP_TRY(rp_node_need(keys, "path"));
    RP_TRY(rp_node_string(keys, "path", &folder));
    RP_TRY(RP_ARENA_NEW(arena, 1, &o));
    for (uint32_t i = 0; i < FILES; i++) {
        RP_TRY(rp_cifar_open(arena, folder, "cifar-10-batches-bin", names[i], most, &o->file[i]));
        data->count[i + 1 == FILES ? RP_SPLIT_TEST : RP_SPLIT_TRAIN] += o->file[i].count;
    }
    data->sample = rp_shape_3(3, RP_CIFAR_SIDE, RP_CIFAR_SIDE);
    data->channels = 3;
    data->bytes = true;
    data->classes = CLASSES;
    data->class_name = class_names;
    RP_TRY(rp_norm_set(arena, &data->norm, 3, mean, deviation));
    data->own = o;
fail:
    return err;
}

static rp_err read_sample(const rp_data *data, rp_split split, uint32_t index, float *x, float *row,
                          int32_t *label) {
    const own *o = data->own;
    uint32_t file = split == RP_SPLIT_TEST ? FILES - 1 : 0;
    (void)row;
    while (index >= o->file[file].count) {
        index -= o->file[file++].count;
    }
    const uint8_t *record = o->file[file].records + (size_t)index * o->file[file].record_bytes;
    rp_pixels_read(x, record + 1, RP_CIFAR_PIXELS);
    if (label) {
        *label = record[0];
    }
    return RP_OK;
}

const rp_data_kind rp_data_cifar10 = {
    .name = "cifar10",
    .source = "CIFAR-10 binary version, Krizhevsky 2009; the usual mean and deviation",
    .open = open_set,
    .read = read_sample,
};
