#include "data/idx.h"

static rp_err open_set(rp_arena *arena, rp_data *data, rp_node *keys, const rp_data_input *input,
                       bool class_target) {
    (void)input;
    (void)class_target;
    const double mean = 0.1307;
    const double deviation = 0.3081;
    rp_err err = rp_norm_set(arena, &data->norm, 1, &mean, &deviation);
    return err == RP_OK ? rp_idx_open(arena, data, keys) : err;
}

const rp_data_kind rp_data_mnist = {
    .name = "mnist",
    .source = "MNIST, LeCun, Cortes, Burges 1998; mean and deviation as torchvision's examples",
    .open = open_set,
    .read = rp_idx_read,
};
