/* The model and its weights. Private to the room. */
#ifndef RP_EXPORT_NET_H
#define RP_EXPORT_NET_H

#include "base/safetensors.h"
#include "export/export.h"

struct rp_export_net {
    rp_arena *arena;
    rp_model *model;
    /* The layers of the model file as a tree that nothing has read: a key that no writer asks for
     * is one that it does not know. */
    const rp_node *layers;
    rp_st_reader *weights;
    /* [model->param_count]: values of a parameter, in the shape model->param[i].shape. NULL: it is
     * no tensor of the files, because it is scratch, or is merged into its weight. */
    const float **value;
};

/* Reads the files, without merging. *out is set also after an error; close it.
 * errors  as rp_export_open() */
rp_err rp_export_read_net(rp_arena *arena, const rp_export_options *options,
                          rp_export_net **out) RP_MUST_CHECK;

/* Index of a layer's parameter; UINT32_MAX: it has none of this suffix. */
uint32_t rp_export_find_param(const rp_model *model, uint32_t layer, const char *suffix);

#endif
