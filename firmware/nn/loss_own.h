/* The launch shared by all losses; private to the room. */
#ifndef RP_NN_LOSS_OWN_H
#define RP_NN_LOSS_OWN_H

#include "nn/loss.h"

/* Launches kernels/loss.cl `entry`, one work-item for each target, or, with
 * options.classes_first, for 16 pixels. */
rp_err rp_loss_launch(const rp_loss_call *call, const char *entry) RP_MUST_CHECK;

#endif
