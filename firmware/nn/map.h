/* Functions of two or three operands, element by element, with operands broadcast by NumPy's rule;
 * shared by the kinds of layer_binary.c, add and mul. Private to the room. */
#ifndef RP_NN_MAP_H
#define RP_NN_MAP_H

#include "nn/axes.h"

typedef struct {
    const char *name; /* of the functions in kernels/map.cl */
    uint32_t operands;
    /* LINEAR: the gradient of operand i is factor[i] dy. NONE: the operands have no gradient. */
    enum { RP_MAP_COMPUTED, RP_MAP_LINEAR, RP_MAP_NONE } gradient;
    float factor[2];
    bool takes_ids; /* the first operand may be token ids */
} rp_map;

/* As the functions of rp_layer_kind. */
rp_err rp_map_plan(const rp_map *map, const rp_layer *layer, const rp_shape *in,
                   rp_layer_plan *out) RP_MUST_CHECK;
size_t rp_map_workspace_bytes(const rp_map *map, const rp_layer_plan *plan, const rp_shape *in,
                              uint32_t n);
rp_err rp_map_forward(const rp_map *map, const rp_layer_call *call) RP_MUST_CHECK;
rp_err rp_map_backward(const rp_map *map, const rp_layer_call *call) RP_MUST_CHECK;

#endif
