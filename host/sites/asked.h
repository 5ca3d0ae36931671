/* asked.json of a round's folder: what the round was asked for. */
#ifndef RP_SITES_ASKED_H
#define RP_SITES_ASKED_H

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

/* Writes the file, or compares with it if it exists.
 * errors  USAGE: the folder belongs to another round; IO */
rp_err rp_round_claim(const char *folder, const rp_round_asked *asked) RP_MUST_CHECK;

#endif
