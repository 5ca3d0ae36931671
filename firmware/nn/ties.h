/* Tied weights in a cut model: layers that share a tensor, each on its own stage.
 *
 * Before an update, the gradients of all uses are added in the order of the layers, one float
 * addition for each use after the first. With a flush every stage with a use gets the gradients of
 * all others, and applies the same update to the same bits of its copy. Without a flush only the
 * owner, the stage with the first use, gets them and updates the tensor. For each of its forwards
 * it sends the values that it has seen to all stages with later uses, which use them for their
 * forward and backward of the same samples. So all uses have the owner's version and prediction.
 *
 * A stage sends the gradients or values of its uses as one row of bytes. Pure.
 *
 * source  METHODS 15 */
#ifndef RP_NN_TIES_H
#define RP_NN_TIES_H

#include "nn/cut.h"
#include "nn/model.h"

/* A gradient in a row has at least as many bytes as a digest. */
enum { RP_TIE_BYTES_LEAST = 16 };

/* Whether any trained tensor has uses in two stages. */
bool rp_ties_cross(const rp_model *model, const rp_cut *cut);
/* Whether both stages have uses of one trained tensor; false for a stage and itself. */
bool rp_ties_join(const rp_model *model, const rp_cut *cut, uint32_t stage, uint32_t other);

/* Whether `stage` has the first use of a trained tensor that `other` also uses. */
bool rp_ties_owns(const rp_model *model, const rp_cut *cut, uint32_t stage, uint32_t other);

uint32_t rp_ties_stage_of(const rp_model *model, const rp_cut *cut, uint32_t param);
/* Whether the parameter is trained and its tensor also has a use in another stage: its gradient is
 * then in the row of its stage. */
bool rp_ties_is_sent(const rp_model *model, const rp_cut *cut, uint32_t param);
size_t rp_ties_bytes(const rp_model *model, uint32_t param);
/* Bytes before the parameter's gradient in the row of its stage. */
size_t rp_ties_place(const rp_model *model, const rp_cut *cut, uint32_t param);
/* Bytes of a stage's row; 0: it has no use of a tensor that another stage uses. */
size_t rp_ties_row_bytes(const rp_model *model, const rp_cut *cut, uint32_t stage);

#endif
