#include "data/idx.h"

static rp_err open_set(rp_arena *arena, rp_data *data, rp_node *keys, const rp_shape *input,
                       bool class_target) {
    (void)input;
    (void)class_target;
    data->mean[0] = 0.2860f;
    data->deviation[0] = 0.3530f;
    return rp_idx_open(arena, data, keys);
}

const rp_data_kind rp_data_fashion_mnist = {
    .name = "fashion-mnist",
    .source = "Fashion-MNIST, Xiao, Rasul, Vollgraf 2017; mean and deviation of its training set",
    .open = open_set,
    .read = rp_idx_read,
};
