/* BLEU of the translations of a part of a data set. */
#ifndef RP_PREDICT_EVALUATE_BLEU_H
#define RP_PREDICT_EVALUATE_BLEU_H

#include <stdio.h>

#include "data/data.h"
#include "predict/network.h"

/* errors  USAGE: the samples of the set are not pairs */
rp_err rp_bleu_check_data(const rp_data *data) RP_MUST_CHECK;

/* Translates every sample of the part, which is not empty, and compares the texts with those of the
 * set. `network` has been started. `beam`: as in translate.h. `progress`: a terminal, or NULL.
 * errors those of reading the set and of rp_translate() */
rp_err rp_evaluate_bleu(rp_network *network, const rp_data *data, rp_split split, uint32_t beam,
                        FILE *progress, double *out) RP_MUST_CHECK;

#endif
