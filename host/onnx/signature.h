/* Parameters that a net had and that its file lacks. Private to the room. */
#ifndef RP_ONNX_SIGNATURE_H
#define RP_ONNX_SIGNATURE_H

#include "onnx/findings.h"
#include "onnx/model.h"
#include "onnx/symbols.h"

/* Which missing parameters are no reason to refuse. */
typedef struct {
    uint32_t tied; /* number of second names of tensors that layers share */
    bool accept;   /* the user accepts that parameters were folded */
} rp_onnx_folding;

/* Whether torch.export lists the tensor as `role`, PARAMETER or BUFFER. */
bool rp_onnx_is_listed(const rp_onnx_model *model, const char *role, const char *name);

/* Findings on parameters that torch.export lists in the file and that the file lacks. errors MEMORY
 */
rp_err rp_onnx_check_signature(const rp_onnx_model *model, const rp_onnx_folding *folding,
                               rp_onnx_findings *findings, rp_onnx_findings *notes) RP_MUST_CHECK;

/* Findings on names of a state_dict, read from `file`, that the model lacks. errors MEMORY */
rp_err rp_onnx_check_state(const rp_onnx_model *model, const rp_onnx_symbols *names,
                           const char *file, const rp_onnx_folding *folding,
                           rp_onnx_findings *findings, rp_onnx_findings *notes) RP_MUST_CHECK;

#endif
