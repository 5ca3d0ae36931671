#include "nn/layer.h"

#include <string.h>

const rp_layer_kind *rp_layer_find(const char *name) {
    for (const rp_layer_kind *const *kind = rp_layer_kinds; *kind; kind++) {
        if (strcmp((*kind)->name, name) == 0) {
            return *kind;
        }
    }
    return NULL;
}

bool rp_layer_fuse_relu(rp_layer *layer) {
    if (!layer->kind->fuse_relu) {
        return false;
    }
    layer->kind->fuse_relu(layer);
    return true;
}
