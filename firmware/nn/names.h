/* Names of parameters, and tied weights: layers whose parameters have one name share them. */
#ifndef RP_NN_NAMES_H
#define RP_NN_NAMES_H

#include "nn/model.h"

/* Bytes of the longest name, with its final 0. In a checkpoint prefixes precede it, for which
 * RP_ST_NAME_MAX leaves room. */
enum { RP_PARAM_NAME_MAX = 161 };

/* Whether a name has 1 to `room` - 1 characters, all of them of A-Z a-z 0-9 _ . - */
bool rp_names_is_valid(const char *name, size_t room);
/* The beginning of the name, or the whole name, that safetensors files use for other entries: the
 * states of optimisers, sets of weights (rp_method_set_prefix()), metadata. NULL: none of these. */
const char *rp_names_reserved(const char *name);

/* The shape of a tensor in weights files that has `dims` dimensions there: the layer's shape with
 * dimensions of 1 in front or, if these are fewer, without dimensions of 1 that stand before the
 * last one, as in the weight [out, in, kernel] of a Conv1d. False: other dimensions would have to
 * be left out; *out is then the shortest possible shape. */
bool rp_names_shape(const rp_shape *layer, uint32_t dims, rp_shape *out) RP_MUST_CHECK;

/* Takes `names: {SUFFIX: NAME}` of the layer from its keys and checks the names. An entry can be
 * `{name: NAME, dims: N}`, see rp_model_param.shape.
 * errors  USAGE with file, line and layer */
rp_err rp_names_read(rp_layer *layer, rp_node *keys) RP_MUST_CHECK;

/* Checks the names of a planned layer's tensors: whether each key of `names` is a parameter of the
 * layer, and whether a name is too long or reserved.
 * errors  USAGE with file, line, key and layer */
rp_err rp_names_check(const rp_layer *layer, const rp_layer_plan *plan,
                      rp_node *keys) RP_MUST_CHECK;

/* Lists the parameters of all layers, with their names, in model->param, and finds the owner of
 * each. errors USAGE naming file, line and both layers: uses of a tensor that differ in shape or in
 * what happens to it; MEMORY */
rp_err rp_names_list_params(rp_arena *arena, rp_model *model) RP_MUST_CHECK;

#endif
