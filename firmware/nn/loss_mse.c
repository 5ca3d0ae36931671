/* Mean over the outputs of the squared difference; targets are rows of floats. */
#include "nn/loss_own.h"

static rp_err run_mse(const rp_loss_call *call) {
    return rp_loss_launch(call, "mse");
}

const rp_loss_kind rp_loss_mse = {
    .name = "mse",
    .source = "torch.nn.MSELoss",
    .run = run_mse,
};
