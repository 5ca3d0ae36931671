/* How much workspace the layers of a model need for any number of samples up to a limit. */
#ifndef RP_NN_WORKSPACE_H
#define RP_NN_WORKSPACE_H

#include "nn/model.h"

/* Bytes that a layer needs for steps of any length and of 1 to `samples` samples. Shorter steps may
 * need more, because a layer may then compute more samples at once, and fewer samples, because
 * their number decides which operand of a product is packed.
 *
 * It tries every number of samples, so the model remembers what it found: a planner asks for the
 * same layers again and again. One thread at a time may ask about a model. */
size_t rp_model_workspace(const rp_model *model, uint32_t layer, uint32_t samples,
                          rp_gemm_choice gemm);

/* The memory for this in a model that is being read. errors MEMORY */
rp_err rp_model_new_workspaces(rp_arena *arena, rp_model *model) RP_MUST_CHECK;
/* Forgets what was found, because a layer is planned otherwise now. */
void rp_model_forget_workspaces(const rp_model *model);

#endif
