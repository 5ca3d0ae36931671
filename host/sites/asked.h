/* asked.json of a round's folder: what the round was asked for. */
#ifndef RP_SITES_ASKED_H
#define RP_SITES_ASKED_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "sites/rules.h"

enum { RP_SITES_DIGEST = 17 };

/* Two rounds are the same if all members are equal. */
typedef struct {
    uint64_t round;
    const char *site;
    uint64_t steps;  /* most steps; 0: not limited */
    uint64_t epochs; /* most epochs; 0: not limited */
    rp_round_rules rules;
    char split[RP_SITES_DIGEST]; /* of the split file; "": none */
    char in[RP_SITES_DIGEST];    /* of the given weights */
    char run[RP_SITES_DIGEST];   /* of the run file with its --set */
} rp_round_asked;

/* XXH3-64 of a file's bytes, as text. errors  IO */
rp_err rp_sites_digest_file(const char *path, char out[RP_SITES_DIGEST]) RP_MUST_CHECK;
/* XXH3-64 of a text without its end. */
void rp_sites_digest_text(const char *text, char out[RP_SITES_DIGEST]);

/* *claimed: the folder belongs to this round; false: to none. It may be missing.
 * errors  USAGE: it belongs to another round, or has a run or an answer without asked.json; IO */
rp_err rp_round_find_claim(const char *folder, const rp_round_asked *asked,
                           bool *claimed) RP_MUST_CHECK;
/* Writes the file, as a whole or not at all, when all that can be checked before the run is right.
 * errors  IO, MEMORY */
rp_err rp_round_claim(const char *folder, const rp_round_asked *asked) RP_MUST_CHECK;
/* Removes the file of a round that was refused before it had a run. errors  IO */
rp_err rp_round_release(const char *folder) RP_MUST_CHECK;

#endif
