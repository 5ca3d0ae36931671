/* BLEU of translations: a corpus' score of 1-grams to 4-grams with a brevity penalty.
 *
 * source  Papineni et al. 2002; Post 2018: tokenisation 13a, smoothing `exp`, mixed case, as
 *         sacrebleu's signature nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp */
#ifndef RP_PREDICT_BLEU_H
#define RP_PREDICT_BLEU_H

#include "data/encode.h"

enum { RP_BLEU_ORDER = 4 };

/* Counts over all pairs so far; zeroed at the beginning. */
typedef struct {
    uint64_t match[RP_BLEU_ORDER], total[RP_BLEU_ORDER]; /* n-grams of the translations */
    uint64_t words, reference_words;
} rp_bleu;

/* Adds a translation and its reference, UTF-8. errors MEMORY */
rp_err rp_bleu_add(rp_bleu *bleu, const rp_text *translation,
                   const rp_text *reference) RP_MUST_CHECK;
/* From 0 to 100. */
double rp_bleu_score(const rp_bleu *bleu);

/* Words of a line as 13a separates them; *count of them. Exposed for tests. errors MEMORY */
rp_err rp_bleu_words(rp_arena *arena, const rp_text *line, rp_text **words,
                     uint32_t *count) RP_MUST_CHECK;

#endif
