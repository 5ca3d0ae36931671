/* `train.storage`: activations that wait for their backward are stored in 16 bits.
 *
 * Which ones. An output of a layer is *kept* if a backward of the whole model reads it: that of its
 * own layer (needs_y) or of a layer that reads it (needs_x). In training every kept f32 output is
 * rounded to a value of the format right after its layer has written it. All later layers, the next
 * stage, the backward and a recomputation see the rounded values. The rule asks for the model only:
 * neither the cut nor the schedule, the slots or the boards have an influence, so the results of a
 * run don't depend on them either.
 *
 * What is not rounded: data of the set; the model's output, of which the loss and its gradient are
 * computed; token ids; what a layer saves itself (statistics, log-sum-exp, indices, gates); all
 * weights, gradients and states. A tensor that no backward reads is not rounded, even if it crosses
 * a boundary or enters a group that is recomputed. Evaluations and predictions keep nothing, so
 * they round nothing.
 *
 * Where they are. A slot has 16 bits for each element of a kept output (rp_layout_storage.packed).
 * A pass computes with an f32 copy in the pool of scratch buffers: in a forward from the tensor's
 * layer to its last reader, in a backward from the first layer that reads it to the last one. So
 * the copies of only a few layers exist at a time, and a slot needs half of the memory. The kernels
 * of layers are the same as without. Rounding and packing are one kernel over the tensor, and
 * unpacking is one; nothing goes through the host (stage/opencl_storage.c).
 *
 * Gradients are not stored in 16 bits, so f16 needs no scaling of the loss. */
#ifndef RP_NN_ROUNDING_H
#define RP_NN_ROUNDING_H

#include "nn/model.h"

/* Whether the output of the layer `producer` is kept in 16 bits; false for RP_LAYER_DATA. The
 * answer for tensors that share memory (fused layers) may differ between stages, but not the values
 * in that memory after the last of them. */
bool rp_rounds_output(const rp_model *model, uint32_t producer);

/* Reads the format, a word: f32, bf16 or f16. Missing: *out is not changed. errors USAGE with line
 * and key */
rp_err rp_rounding_read(rp_node *map, const char *key, rp_dtype *out) RP_MUST_CHECK;

#endif
