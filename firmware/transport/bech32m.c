#include "transport/bech32m.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "base/err.h"

enum { VALUES_MAX = RP_BECH32M_CHARACTERS(RP_BECH32M_BYTES_MAX) };

static const char alphabet[] = "qpzry9x8gf2tvdw0s3jn54khce6mua7l";
static const uint32_t checksum_of_good = 0x2bc830a3;

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

static uint32_t checksum_of(const char *prefix, const uint8_t *value, size_t values) {
    uint32_t sum = 1;
    for (const char *at = prefix; *at; at++) {
        sum = add_value(sum, (uint32_t)(uint8_t)*at >> 5);
    }
    sum = add_value(sum, 0);
    for (const char *at = prefix; *at; at++) {
        sum = add_value(sum, (uint32_t)(uint8_t)*at & 31);
    }
    for (size_t i = 0; i < values; i++) {
        sum = add_value(sum, value[i]);
    }
    return sum;
}

/* Value i holds the 5 bits from bit 5 i on, most significant first. */
static void split_bytes(const uint8_t *bytes, size_t count, uint8_t *value) {
    for (size_t i = 0; 5 * i < 8 * count; i++) {
        const size_t at = 5 * i / 8;
        const uint32_t next = at + 1 < count ? bytes[at + 1] : 0;
        const uint32_t window = (uint32_t)bytes[at] << 8 | next;
        value[i] = (uint8_t)(window >> (11 - 5 * i % 8) & 31);
    }
}

/* Returns false if bits after the last byte are set, because the encoding must be unique. */
static bool join_values(const uint8_t *value, uint8_t *bytes, size_t count) {
    uint32_t behind = 0;
    memset(bytes, 0, count);
    for (size_t i = 0; 5 * i < 8 * count; i++) {
        const size_t at = 5 * i / 8;
        const uint32_t window = (uint32_t)value[i] << (11 - 5 * i % 8);
        bytes[at] = (uint8_t)(bytes[at] | window >> 8);
        if (at + 1 < count) {
            bytes[at + 1] = (uint8_t)(bytes[at + 1] | (window & 255));
        } else {
            behind |= window & 255;
        }
    }
    return behind == 0;
}

void rp_bech32m_write(const char *prefix, const uint8_t *bytes, size_t count, char *out) {
    uint8_t value[VALUES_MAX] = {0};
    const size_t values = RP_BECH32M_CHARACTERS(count);
    const size_t before = strlen(prefix);
    RP_ASSERT(count <= RP_BECH32M_BYTES_MAX);
    split_bytes(bytes, count, value);
    const uint32_t sum = checksum_of(prefix, value, values) ^ checksum_of_good;
    for (uint32_t i = 0; i < RP_BECH32M_CHECK; i++) {
        value[values - RP_BECH32M_CHECK + i] =
            (uint8_t)(sum >> 5 * (RP_BECH32M_CHECK - 1 - i) & 31);
    }
    memcpy(out, prefix, before);
    out[before] = '1';
    for (size_t i = 0; i < values; i++) {
        out[before + 1 + i] = alphabet[value[i]];
    }
    out[before + 1 + values] = '\0';
    explicit_bzero(value, sizeof value);
}

static const char *read_values(const char *text, const char *prefix, uint8_t *value,
                               size_t values) {
    bool small = false;
    bool large = false;
    const char *at = text + strlen(prefix) + 1;
    if (strlen(at) != values) {
        return strlen(at) < values ? "is too short: some of its characters are missing"
                                   : "is too long: it has characters that are not its own";
    }
    for (const char *c = text; *c; c++) {
        small = small || islower((unsigned char)*c);
        large = large || isupper((unsigned char)*c);
    }
    for (size_t i = 0; i < values; i++) {
        const char *found = strchr(alphabet, tolower((unsigned char)at[i]));
        if (!found) {
            return "has a character that such texts never have";
        }
        value[i] = (uint8_t)(found - alphabet);
    }
    if (small && large) {
        return "mixes small and capital letters: expected only one kind";
    }
    return checksum_of(prefix, value, values) == checksum_of_good
               ? NULL
               : "has a wrong character: its checksum does not fit";
}

const char *rp_bech32m_read(const char *text, const char *prefix, uint8_t *bytes, size_t count) {
    uint8_t value[VALUES_MAX];
    RP_ASSERT(count <= RP_BECH32M_BYTES_MAX);
    const char *wrong = read_values(text, prefix, value, RP_BECH32M_CHARACTERS(count));
    if (!wrong && !join_values(value, bytes, count)) {
        wrong = "has bits that must be zero";
    }
    explicit_bzero(value, sizeof value);
    return wrong;
}
