/* Cross-entropy against rows of probabilities, as made by mixup. */
#include "nn/loss_own.h"

static rp_err run_soft_cross_entropy(const rp_loss_call *call) {
    return rp_loss_launch(call, "cross_entropy_soft");
}

const rp_loss_kind rp_loss_soft_cross_entropy = {
    .name = "soft-cross-entropy",
    .source = "torch.nn.CrossEntropyLoss whose targets are probabilities",
    .accuracy = true,
    .run = run_soft_cross_entropy,
};
