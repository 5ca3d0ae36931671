#include "transport/token.h"

#include <sodium.h>
#include <string.h>
#include <strings.h>
#include <zmq.h>

#include "transport/bech32m.h"

enum { BYTES = RP_TOKEN_SEED + RP_KEY_BYTES };
_Static_assert((int)BYTES <= (int)RP_BECH32M_BYTES_MAX, "a token is one word");
_Static_assert(RP_TOKEN_WORD == sizeof "rpt1" + RP_BECH32M_CHARACTERS(BYTES), "its length");

static const char prefix[] = "rpt";

void rp_token_new(const char *host, rp_token *out) {
    RP_ASSERT(sodium_init() >= 0 && strlen(host) == RP_KEY_TEXT - 1);
    randombytes_buf(out->seed, sizeof out->seed);
    memcpy(out->host, host, sizeof out->host);
}

void rp_token_write(const rp_token *token, char out[RP_TOKEN_WORD]) {
    uint8_t bytes[BYTES];
    memcpy(bytes, token->seed, RP_TOKEN_SEED);
    const bool good = zmq_z85_decode(bytes + RP_TOKEN_SEED, token->host);
    RP_ASSERT(good);
    rp_bech32m_write(prefix, bytes, sizeof bytes, out);
    explicit_bzero(bytes, sizeof bytes);
}

const char *rp_token_parse(const char *text, rp_token *out) {
    uint8_t bytes[BYTES];
    if (strncasecmp(text, "rpt1", 4) != 0) {
        return "is not a token: expected the text from `ringpipe boards enrol`, rpt1 and 83 "
               "letters and digits";
    }
    const char *wrong = rp_bech32m_read(text, prefix, bytes, sizeof bytes);
    if (!wrong) {
        memcpy(out->seed, bytes, RP_TOKEN_SEED);
        (void)zmq_z85_encode(out->host, bytes + RP_TOKEN_SEED, RP_KEY_BYTES);
    }
    explicit_bzero(bytes, sizeof bytes);
    return wrong;
}

void rp_token_keys(const rp_token *token, rp_keypair *out) {
    static const uint8_t purpose[] = "ringpipe enrolment token, version 1";
    uint8_t secret[RP_KEY_BYTES];
    uint8_t public[RP_KEY_BYTES];
    (void)crypto_generichash(secret, sizeof secret, token->seed, sizeof token->seed, purpose,
                             sizeof purpose - 1);
    (void)crypto_scalarmult_base(public, secret);
    (void)zmq_z85_encode(out->public_text, public, sizeof public);
    (void)zmq_z85_encode(out->secret_text, secret, sizeof secret);
    explicit_bzero(secret, sizeof secret);
}
