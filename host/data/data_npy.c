#include "data/arrays.h"

static rp_err open_set(rp_arena *arena, rp_data *data, rp_node *keys, const rp_data_input *input,
                       bool class_target) {
    const rp_arrays_names names = {"x_train.npy", "y_train.npy", "x_test.npy", "y_test.npy", false};
    return rp_arrays_open(arena, data, keys, input, class_target, &names);
}

const rp_data_kind rp_data_npy = {
    .name = "npy",
    .source = "NumPy's files x_train.npy, y_train.npy, x_test.npy, y_test.npy, of any shape",
    .open = open_set,
    .read_real = rp_arrays_read,
    .read_ids = rp_arrays_read_ids,
    .read_label = rp_arrays_read_label,
    .close = rp_arrays_close,
};
