/* Encodes bytes as a word that needs no quotes in YAML, shells and URLs and that reveals copying
 * errors: PREFIX, a 1, one character for each five bits, six characters of checksum. Up to four
 * wrong characters are always found, more are missed once in 2^30. Case does not matter.
 *
 * source  Bech32m, BIP 350 */
#ifndef RP_TRANSPORT_BECH32M_H
#define RP_TRANSPORT_BECH32M_H

#include <stddef.h>
#include <stdint.h>

enum { RP_BECH32M_CHECK = 6, RP_BECH32M_BYTES_MAX = 48 };

/* Number of characters after the 1. */
#define RP_BECH32M_CHARACTERS(bytes) (((bytes)*8 + 4) / 5 + RP_BECH32M_CHECK)

/* `count` <= RP_BECH32M_BYTES_MAX. `out` receives the prefix, 1, RP_BECH32M_CHARACTERS(count)
 * characters and a NUL. */
void rp_bech32m_write(const char *prefix, const uint8_t *bytes, size_t count, char *out);
/* Decodes `text`, which begins with the prefix and 1, in either case. Returns NULL, or the problem
 * as the end of a sentence that begins with the word's name; `bytes` is then undefined. */
const char *rp_bech32m_read(const char *text, const char *prefix, uint8_t *bytes, size_t count);

#endif
