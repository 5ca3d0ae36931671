#include "data/arrays.h"

static rp_err open_set(rp_arena *arena, rp_data *data, rp_node *keys, const rp_data_input *input,
                       bool class_target) {
    const rp_arrays_names names = {"train-images-idx3-ubyte", "train-labels-idx1-ubyte",
                                   "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte", true};
    return rp_arrays_open(arena, data, keys, input, class_target, &names);
}

const rp_data_kind rp_data_idx = {
    .name = "idx",
    .source = "idx files of any shape and type, by MNIST's names unless others are given",
    .open = open_set,
    .read_real = rp_arrays_read,
    .read_ids = rp_arrays_read_ids,
    .read_label = rp_arrays_read_label,
    .close = rp_arrays_close,
};
