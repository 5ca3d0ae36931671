/* Normalisation over the last `dims` axes of a sample, by default over all of them, with a weight
 * and a bias for each of their elements: torch's LayerNorm whose normalized_shape are these axes.
 */
#include "nn/row_norm.h"

const rp_layer_kind rp_layer_layernorm = {
    .name = "layernorm",
    .source = "Ba, Kiros & Hinton 2016; torch.nn.LayerNorm",
    .facts = &(const rp_row_norm){.eps = 1e-5f},
    RP_ROW_NORM_FUNCTIONS,
};
