/* Makes tokens; each admits one board. */
#ifndef RP_ENROL_ISSUE_H
#define RP_ENROL_ISSUE_H

#include "transport/token.h"

/* No board can enrol with a token before rp_enrol_open(). */
typedef struct {
    char word[RP_TOKEN_WORD]; /* a secret, which is stored nowhere else */
    char key[RP_KEY_TEXT];    /* Z85, public key of the token's pair */
} rp_enrol_token;

/* Draws a token. `host`: this host's public key, Z85. */
void rp_enrol_draw(const char *host, rp_enrol_token *out);
/* Parses the word of a token. Returns NULL, or the problem like rp_token_parse(). */
const char *rp_enrol_parse(const char *word, rp_enrol_token *out);
/* Adds the token to the list of `keys_folder`, and replaces an older one of that name. From here on
 * it admits its board. errors  those of rp_pending_replace() */
rp_err rp_enrol_open(const char *keys_folder, const rp_enrol_token *token, const char *name,
                     int64_t ends_s, int64_t now_s) RP_MUST_CHECK;

#endif
