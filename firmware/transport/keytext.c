#include "transport/keytext.h"

#include <sodium.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>
#include <zmq.h>

#include "transport/bech32m.h"

_Static_assert(RP_KEY_WORD == sizeof "rpk1" + RP_BECH32M_CHARACTERS(RP_KEY_BYTES), "public");
_Static_assert(RP_KEY_SECRET_WORD == sizeof "rpsecret1" + RP_BECH32M_CHARACTERS(RP_KEY_BYTES),
               "secret");

static const char public_prefix[] = "rpk";
static const char secret_prefix[] = "rpsecret";

static void write_word(const char *prefix, const char *z85, char *out) {
    uint8_t bytes[RP_KEY_BYTES];
    const bool good = strlen(z85) == RP_KEY_TEXT - 1 && zmq_z85_decode(bytes, z85);
    RP_ASSERT(good);
    rp_bech32m_write(prefix, bytes, RP_KEY_BYTES, out);
    explicit_bzero(bytes, sizeof bytes);
}

static bool begins_with(const char *text, const char *prefix) {
    const size_t bytes = strlen(prefix);
    return strncasecmp(text, prefix, bytes) == 0 && text[bytes] == '1';
}

static const char *read_word(const char *text, const char *prefix, char out[RP_KEY_TEXT]) {
    uint8_t bytes[RP_KEY_BYTES];
    const char *wrong = rp_bech32m_read(text, prefix, bytes, RP_KEY_BYTES);
    if (!wrong) {
        (void)zmq_z85_encode(out, bytes, RP_KEY_BYTES);
    }
    explicit_bzero(bytes, sizeof bytes);
    return wrong;
}

/* ---- keys ------------------------------------------------------------------------------------ */

static bool is_z85(const char *text) {
    uint8_t bytes[RP_KEY_BYTES];
    const bool good = strlen(text) == RP_KEY_TEXT - 1 && zmq_z85_decode(bytes, text);
    explicit_bzero(bytes, sizeof bytes);
    return good;
}

static const char *parse_key(const char *text, const char *prefix, char out[RP_KEY_TEXT]) {
    if (is_z85(text)) {
        memmove(out, text, RP_KEY_TEXT);
        return NULL;
    }
    return begins_with(text, prefix) ? read_word(text, prefix, out) : "";
}

const char *rp_key_parse(const char *text, char out[RP_KEY_TEXT]) {
    if (begins_with(text, secret_prefix)) {
        return "is a secret key, which must stay on its own machine: expected the public key, "
               "which `ringpipe keys show` prints";
    }
    const char *wrong = parse_key(text, public_prefix, out);
    return wrong && !wrong[0]
               ? "is not a public key: expected the text from `ringpipe keys show`, rpk1 and 58 "
                 "letters and digits (or the 40 characters of an older key)"
               : wrong;
}

const char *rp_key_parse_secret(const char *text, char out[RP_KEY_TEXT]) {
    const char *wrong = parse_key(text, secret_prefix, out);
    return wrong && !wrong[0] ? "is not a secret key: expected rpsecret1 and 58 letters and digits "
                                "(or the 40 characters of an older key)"
                              : wrong;
}

void rp_key_write(const char *z85, char out[RP_KEY_WORD]) {
    write_word(public_prefix, z85, out);
}

void rp_key_write_secret(const char *z85, char out[RP_KEY_SECRET_WORD]) {
    write_word(secret_prefix, z85, out);
}

void rp_key_fingerprint(const char *z85, char out[RP_KEY_FINGERPRINT]) {
    uint8_t bytes[RP_KEY_BYTES];
    uint8_t hash[crypto_hash_sha256_BYTES];
    char text[RP_BECH32M_CHARACTERS(RP_KEY_BYTES) + sizeof "1"];
    const bool good = strlen(z85) == RP_KEY_TEXT - 1 && zmq_z85_decode(bytes, z85);
    RP_ASSERT(good);
    (void)crypto_hash_sha256(hash, bytes, sizeof bytes);
    rp_bech32m_write("", hash, sizeof hash, text);
    for (uint32_t i = 0; i < RP_KEY_FINGERPRINT - 1; i++) {
        out[i] = i % 5 == 4 ? '-' : text[1 + i - i / 5];
    }
    out[RP_KEY_FINGERPRINT - 1] = '\0';
}

rp_err rp_key_decode(const char *text, uint8_t out[RP_KEY_BYTES]) {
    if (!text || strlen(text) != RP_KEY_TEXT - 1 || !zmq_z85_decode(out, text)) {
        return rp_fail(RP_ERR_FORMAT, "key '%.60s': expected 40 Z85 characters", text ? text : "");
    }
    return RP_OK;
}
