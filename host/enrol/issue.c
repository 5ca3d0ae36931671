#include "enrol/issue.h"

#include <string.h>

#include "enrol/pending.h"

rp_err rp_enrol_issue(const char *keys_folder, const char *host, const char *name, int64_t ends_s,
                      int64_t now_s, char word[RP_TOKEN_WORD]) {
    rp_token token;
    rp_keypair pair;
    rp_token_new(host, &token);
    rp_token_keys(&token, &pair);
    const rp_pending pending = {.name = name, .key = pair.public_text, .ends_s = ends_s};
    const rp_err err = rp_pending_replace(keys_folder, name, &pending, now_s);
    rp_token_write(&token, word);
    explicit_bzero(&token, sizeof token);
    explicit_bzero(&pair, sizeof pair);
    return err;
}
