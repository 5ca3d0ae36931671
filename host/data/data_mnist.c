#include "data/idx.h"

static rp_err open_set(rp_arena *arena, rp_data *data, rp_node *keys, const rp_shape *input,
                       bool class_target) {
    (void)input;
    (void)class_target;
    data->mean[0] = 0.1307f;
    data->deviation[0] = 0.3081f;
    return rp_idx_open(arena, data, keys);
}

const rp_data_kind rp_data_mnist = {
    .name = "mnist",
    .source = "MNIST, LeCun, Cortes, Burges 1998; mean and deviation as torchvision's examples",
    .open = open_set,
    .read = rp_idx_read,
};
