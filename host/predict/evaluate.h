/* Evaluates a part of a data set with a net on this machine's device. */
#ifndef RP_PREDICT_EVALUATE_H
#define RP_PREDICT_EVALUATE_H

#include "data/data.h"
#include "predict/confusion.h"
#include "predict/network.h"

/* Evaluates every sample of the part, which is not empty. `network` has been started. `progress`: a
 * terminal for the progress, or NULL. errors those of reading the set, rp_network_run(),
 * rp_confusion_add() or, without classes, rp_confusion_add_values() */
rp_err rp_evaluate_part(rp_network *network, const rp_data *data, rp_split split, float smoothing,
                        FILE *progress, rp_confusion *out) RP_MUST_CHECK;

#endif
