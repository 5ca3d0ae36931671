/* A token for one board. */
#ifndef RP_ENROL_ISSUE_H
#define RP_ENROL_ISSUE_H

#include "transport/token.h"

/* A new token is on no list, so that no board can enrol by it. */
typedef struct {
    char word[RP_TOKEN_WORD]; /* a secret, which is stored nowhere else */
    char key[RP_KEY_TEXT];    /* Z85, of the pair that it stands for */
} rp_enrol_token;

/* `host`: this host's public key, Z85. */
void rp_enrol_draw(const char *host, rp_enrol_token *out);
/* The token of a word. Gives NULL, or what is wrong as rp_token_parse() does. */
const char *rp_enrol_parse(const char *word, rp_enrol_token *out);
/* Puts the token on the list of `keys_folder`, in the place of an older one of that name. From here
 * on it lets its board in. errors  those of rp_pending_replace() */
rp_err rp_enrol_open(const char *keys_folder, const rp_enrol_token *token, const char *name,
                     int64_t ends_s, int64_t now_s) RP_MUST_CHECK;

#endif
