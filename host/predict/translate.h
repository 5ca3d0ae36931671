/* Translations by a net that was trained on pairs: the target grows by one token at a time.
 *
 * source  Wu et al. 2016, section 7: beam search with the length penalty ((5 + length) / 6)^0.6,
 *         without their coverage penalty */
#ifndef RP_PREDICT_TRANSLATE_H
#define RP_PREDICT_TRANSLATE_H

#include "data/describe.h"
#include "predict/network.h"

enum { RP_BEAM_MAX = 64 };

typedef struct rp_translator rp_translator;

/* `network` has been started before the first translation; both are borrowed. time: ids of a source
 * and of a target. beam: hypotheses that are kept; 1: always the likeliest token.
 * errors  MEMORY; USAGE: the net cannot run `beam` samples at once */
rp_err rp_translator_open(rp_arena *arena, rp_network *network, const rp_vocab *vocab,
                          uint32_t time, uint32_t beam, rp_translator **out) RP_MUST_CHECK;

/* Number of sources that are best translated in one call. */
uint32_t rp_translator_batch(const rp_translator *translator);
/* Translates `count` sources, at most rp_translator_batch(). A translation ends at <end>, or after
 * `time` tokens.
 *
 * shapes  source [count][time], padded with 0; target [count][time], without <end>; length [count]
 * errors  DEVICE; NUMERIC: an output is not finite */
rp_err rp_translate(rp_translator *translator, const int32_t *source, uint32_t count,
                    int32_t *target, uint32_t *length) RP_MUST_CHECK;

/* A translation as a text in `arena`. errors MEMORY */
rp_err rp_translator_decode(const rp_translator *translator, rp_arena *arena, const int32_t *target,
                            uint32_t length, char **out) RP_MUST_CHECK;

#endif
