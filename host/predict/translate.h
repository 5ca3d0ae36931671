/* Translations by a net that was trained on pairs: beam.h chooses the tokens. */
#ifndef RP_PREDICT_TRANSLATE_H
#define RP_PREDICT_TRANSLATE_H

#include "data/describe.h"
#include "data/encode.h"
#include "predict/beam.h"
#include "predict/network.h"

typedef struct rp_translator rp_translator;

/* `network` and `vocab` are borrowed; the network is started before the first translation. time:
 * ids of a source and of a target. beam: as the width in beam.h. errors  MEMORY; SHAPE: the net has
 * too few outputs */
rp_err rp_translator_open(rp_arena *arena, rp_network *network, const rp_vocab *vocab,
                          uint32_t time, uint32_t beam, rp_translator **out) RP_MUST_CHECK;

/* Number of sources that one call translates at most. */
uint32_t rp_translator_batch(const rp_translator *translator);
/* Translates `count` sources, which are padded with 0, each to a text in `arena`. A translation has
 * at most `time` tokens. The net computes the whole target again for each token.
 *
 * shapes  source [count][time]; text [count]
 * errors  DEVICE; NUMERIC: an output is not finite; MEMORY */
rp_err rp_translate(rp_translator *translator, rp_arena *arena, const int32_t *source,
                    uint32_t count, rp_text *text) RP_MUST_CHECK;

#endif
