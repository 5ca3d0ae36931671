/* Names of parameters, and tied weights: layers whose parameters have one name share them. */
#ifndef RP_NN_NAMES_H
#define RP_NN_NAMES_H

#include "nn/model.h"

enum { RP_PARAM_NAME_MAX = 161 };

/* Takes `names: {SUFFIX: NAME}` of the layer from its keys and checks the names.
 * errors  USAGE with file, line and layer */
rp_err rp_names_read(rp_layer *layer, rp_node *keys) RP_MUST_CHECK;

/* Lists the parameters of all layers, with their names, in model->param, and finds the owner of
 * each. errors USAGE naming file, line and both layers: a suffix that the layer lacks; uses of a
 * tensor that differ in shape or in what happens to it; MEMORY */
rp_err rp_names_list_params(rp_arena *arena, rp_model *model) RP_MUST_CHECK;

#endif
