#include "data/idx.h"

static rp_err open_set(rp_arena *arena, rp_data *data, rp_node *keys, const rp_data_input *input,
                       bool class_target) {
    static const char *const names[] = {"T-shirt/top", "trouser",   "pullover", "dress",
                                        "coat",        "sandal",    "shirt",    "sneaker",
                                        "bag",         "ankle boot"};
    (void)input;
    (void)class_target;
    data->class_name = names;
    const double mean = 0.2860;
    const double deviation = 0.3530;
    rp_err err = rp_norm_set(arena, &data->norm, 1, &mean, &deviation);
    return err == RP_OK ? rp_idx_open(arena, data, keys) : err;
}

const rp_data_kind rp_data_fashion_mnist = {
    .name = "fashion-mnist",
    .source = "Fashion-MNIST, Xiao, Rasul, Vollgraf 2017; mean and deviation of its training set",
    .open = open_set,
    .read = rp_idx_read,
};
