#include "enrol/issue.h"

#include <string.h>

#include "enrol/pending.h"

static void note_key(const rp_token *token, rp_enrol_token *out) {
    rp_keypair pair;
    rp_token_keys(token, &pair);
    memcpy(out->key, pair.public_text, sizeof out->key);
    explicit_bzero(&pair, sizeof pair);
}

void rp_enrol_draw(const char *host, rp_enrol_token *out) {
    rp_token token;
    rp_token_new(host, &token);
    rp_token_write(&token, out->word);
    note_key(&token, out);
    explicit_bzero(&token, sizeof token);
}

const char *rp_enrol_parse(const char *word, rp_enrol_token *out) {
    rp_token token;
    const char *wrong = rp_token_parse(word, &token);
    if (!wrong) {
        rp_token_write(&token, out->word);
        note_key(&token, out);
    }
    explicit_bzero(&token, sizeof token);
    return wrong;
}

rp_err rp_enrol_open(const char *keys_folder, const rp_enrol_token *token, const char *name,
                     int64_t ends_s, int64_t now_s) {
    const rp_pending pending = {.name = name, .key = token->key, .ends_s = ends_s};
    return rp_pending_replace(keys_folder, name, &pending, now_s);
}
