/* Softmax cross-entropy by a shifted log-sum-exp; targets are class numbers. */
#include "nn/loss_own.h"

static rp_err run_cross_entropy(const rp_loss_call *call) {
    return rp_loss_launch(call,
                          call->options.classes_first ? "cross_entropy_pixels" : "cross_entropy");
}

const rp_loss_kind rp_loss_cross_entropy = {
    .name = "cross-entropy",
    .source = "torch.nn.CrossEntropyLoss",
    .class_target = true,
    .accuracy = true,
    .run = run_cross_entropy,
};
