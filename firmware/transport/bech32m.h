/* Bytes as a word that YAML, shells and web addresses take as it is, and that finds what was copied
 * wrongly: PREFIX, a 1, five bits a character, six characters of checksum. Up to four wrong
 * characters are always found, others but once in 2^30; capital letters mean the same.
 *
 * source  Bech32m, BIP 350 */
#ifndef RP_TRANSPORT_BECH32M_H
#define RP_TRANSPORT_BECH32M_H

#include <stddef.h>
#include <stdint.h>

enum { RP_BECH32M_CHECK = 6, RP_BECH32M_BYTES_MAX = 48 };

/* Behind the 1. */
#define RP_BECH32M_CHARACTERS(bytes) (((bytes)*8 + 4) / 5 + RP_BECH32M_CHECK)

/* `count` <= RP_BECH32M_BYTES_MAX; out: the prefix, 1, RP_BECH32M_CHARACTERS(count) and a NUL. */
void rp_bech32m_write(const char *prefix, const uint8_t *bytes, size_t count, char *out);
/* `text` begins with the prefix and 1, in letters of either size. Gives NULL, or what is wrong as
 * the end of a sentence that begins with the word's name; `bytes` is then of no use. */
const char *rp_bech32m_read(const char *text, const char *prefix, uint8_t *bytes, size_t count);

#endif
