/* y = x weight / sqrt(mean of x^2 + eps) over the last `dims` axes of a sample, by default over the
 * last one; 0 means all of them. Unlike torch's RMSNorm, eps does not depend on the type. */
#include "nn/row_norm.h"

const rp_layer_kind rp_layer_rmsnorm = {
    .name = "rmsnorm",
    .source = "Zhang & Sennrich 2019; torch.nn.RMSNorm",
    .facts = &(const rp_row_norm){.dims = 1, .eps = 1e-6f, .rms = true},
    RP_ROW_NORM_FUNCTIONS,
};
