#include "transport/keytext.h"

#include <ctype.h>
#include <sodium.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>
#include <zmq.h>

enum { CHECK_VALUES = 6, DATA_VALUES = 52, VALUES = DATA_VALUES + CHECK_VALUES };

static const char public_prefix[] = "rpk";
static const char secret_prefix[] = "rpsecret";
static const char alphabet[] = "qpzry9x8gf2tvdw0s3jn54khce6mua7l";
static const uint32_t checksum_of_good = 0x2bc830a3;

/* ---- Bech32m --------------------------------------------------------------------------------- */

static uint32_t add_value(uint32_t sum, uint32_t value) {
    static const uint32_t generator[] = {0x3b6a57b2, 0x26508e6d, 0x1ea119fa, 0x3d4233dd,
                                         0x2a1462b3};
    const uint32_t top = sum >> 25;
    sum = (sum & 0x1ffffff) << 5 ^ value;
    for (uint32_t i = 0; i < 5; i++) {
        sum ^= top >> i & 1 ? generator[i] : 0;
    }
    return sum;
}

static uint32_t checksum_of(const char *prefix, const uint8_t value[VALUES]) {
    uint32_t sum = 1;
    for (const char *at = prefix; *at; at++) {
        sum = add_value(sum, (uint32_t)(uint8_t)*at >> 5);
    }
    sum = add_value(sum, 0);
    for (const char *at = prefix; *at; at++) {
        sum = add_value(sum, (uint32_t)(uint8_t)*at & 31);
    }
    for (uint32_t i = 0; i < VALUES; i++) {
        sum = add_value(sum, value[i]);
    }
    return sum;
}

/* Value i holds the bits from 5 i on, the first one on top. */
static void split_bytes(const uint8_t bytes[RP_KEY_BYTES], uint8_t value[VALUES]) {
    for (uint32_t i = 0; i < DATA_VALUES; i++) {
        const uint32_t at = 5 * i / 8;
        const uint32_t next = at + 1 < RP_KEY_BYTES ? bytes[at + 1] : 0;
        const uint32_t window = (uint32_t)bytes[at] << 8 | next;
        value[i] = (uint8_t)(window >> (11 - 5 * i % 8) & 31);
    }
}

/* False when bits behind the last byte are set: another text means the same bytes. */
static bool join_values(const uint8_t value[VALUES], uint8_t out[RP_KEY_BYTES]) {
    uint8_t bytes[RP_KEY_BYTES + 1] = {0};
    for (uint32_t i = 0; i < DATA_VALUES; i++) {
        const uint32_t at = 5 * i / 8;
        const uint32_t window = (uint32_t)value[i] << (11 - 5 * i % 8);
        bytes[at] = (uint8_t)(bytes[at] | window >> 8);
        bytes[at + 1] = (uint8_t)(bytes[at + 1] | (window & 255));
    }
    const bool good = bytes[RP_KEY_BYTES] == 0;
    memcpy(out, bytes, RP_KEY_BYTES);
    explicit_bzero(bytes, sizeof bytes);
    return good;
}

static void write_word(const char *prefix, const char *z85, char *out) {
    uint8_t bytes[RP_KEY_BYTES];
    uint8_t value[VALUES] = {0};
    const bool good = strlen(z85) == RP_KEY_TEXT - 1 && zmq_z85_decode(bytes, z85);
    RP_ASSERT(good);
    split_bytes(bytes, value);
    const uint32_t sum = checksum_of(prefix, value) ^ checksum_of_good;
    for (uint32_t i = 0; i < CHECK_VALUES; i++) {
        value[DATA_VALUES + i] = (uint8_t)(sum >> 5 * (CHECK_VALUES - 1 - i) & 31);
    }
    const size_t before = strlen(prefix);
    memcpy(out, prefix, before);
    out[before] = '1';
    for (uint32_t i = 0; i < VALUES; i++) {
        out[before + 1 + i] = alphabet[value[i]];
    }
    out[before + 1 + VALUES] = '\0';
    explicit_bzero(bytes, sizeof bytes);
    explicit_bzero(value, sizeof value);
}

static bool begins_with(const char *text, const char *prefix) {
    const size_t bytes = strlen(prefix);
    return strncasecmp(text, prefix, bytes) == 0 && text[bytes] == '1';
}

static const char *read_values(const char *text, const char *prefix, uint8_t value[VALUES]) {
    bool small = false;
    bool large = false;
    const char *at = text + strlen(prefix) + 1;
    if (strlen(at) != VALUES) {
        return strlen(at) < VALUES ? "is too short: some of its characters are missing"
                                   : "is too long: it has characters that are not its own";
    }
    for (const char *c = text; *c; c++) {
        small = small || islower((unsigned char)*c);
        large = large || isupper((unsigned char)*c);
    }
    for (uint32_t i = 0; i < VALUES; i++) {
        const char *found = strchr(alphabet, tolower((unsigned char)at[i]));
        if (!found) {
            return "has a character that no key has";
        }
        value[i] = (uint8_t)(found - alphabet);
    }
    if (small && large) {
        return "has small and capital letters: expected either";
    }
    return checksum_of(prefix, value) == checksum_of_good
               ? NULL
               : "has a wrong character: its checksum does not fit";
}

static const char *read_word(const char *text, const char *prefix, char out[RP_KEY_TEXT]) {
    uint8_t value[VALUES];
    uint8_t bytes[RP_KEY_BYTES];
    const char *wrong = read_values(text, prefix, value);
    if (!wrong && !join_values(value, bytes)) {
        wrong = "has bits that no key has";
    }
    if (!wrong) {
        (void)zmq_z85_encode(out, bytes, RP_KEY_BYTES);
    }
    explicit_bzero(value, sizeof value);
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
        return "is a secret key, which is its owner's alone: expected the public one, which "
               "`ringpipe keys show` prints";
    }
    const char *wrong = parse_key(text, public_prefix, out);
    return wrong && !wrong[0] ? "is no public key: expected what `ringpipe keys show` prints, rpk1 "
                                "and 58 letters and digits (or the 40 characters of an older key)"
                              : wrong;
}

const char *rp_key_parse_secret(const char *text, char out[RP_KEY_TEXT]) {
    const char *wrong = parse_key(text, secret_prefix, out);
    return wrong && !wrong[0] ? "is no secret key: expected rpsecret1 and 58 letters and digits "
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
    uint8_t value[VALUES];
    _Static_assert(sizeof hash == RP_KEY_BYTES, "a hash is split as a key is");
    const bool good = strlen(z85) == RP_KEY_TEXT - 1 && zmq_z85_decode(bytes, z85);
    RP_ASSERT(good);
    (void)crypto_hash_sha256(hash, bytes, sizeof bytes);
    split_bytes(hash, value);
    for (uint32_t i = 0; i < RP_KEY_FINGERPRINT - 1; i++) {
        out[i] = i % 5 == 4 ? '-' : alphabet[value[i - i / 5]];
    }
    out[RP_KEY_FINGERPRINT - 1] = '\0';
}

rp_err rp_key_decode(const char *text, uint8_t out[RP_KEY_BYTES]) {
    if (!text || strlen(text) != RP_KEY_TEXT - 1 || !zmq_z85_decode(out, text)) {
        return rp_fail(RP_ERR_FORMAT, "key '%.60s': expected 40 Z85 characters", text ? text : "");
    }
    return RP_OK;
}
