/* y = x W' + b on the last axis of a sample [.., in], so that all n samples are one matrix of rows.
 * W is stored [out, in], with `layout: in-out` [in, out]. With `lora` (lora.h) only a correction of
 * low rank is trained. */
#include "nn/affine.h"

const rp_layer_kind rp_layer_linear = {
    .name = "linear",
    .keys = "out, bias, layout, lora",
    .source = "torch.nn.Linear; layout in-out: Conv1D of GPT-2",
    .facts = &(const rp_affine_facts){.flattens = false},
    RP_AFFINE_FUNCTIONS,
};
