/* Tables of unicode.c and unicode_nfc.c. Private to the room. */
#ifndef RP_DATA_UNICODE_OWN_H
#define RP_DATA_UNICODE_OWN_H

#include <stdint.h>

enum { RP_UNICODE_WORDS = 273, RP_UNICODE_LOWERS = 180 };
enum {
    RP_UNICODE_NOT_NFC = 73,
    RP_UNICODE_COMPOSED = 191,
    RP_UNICODE_CLASSES = 382,
    RP_UNICODE_PAIRS = 941
};

typedef struct {
    uint32_t first, last;
} rp_unicode_range;
typedef struct {
    uint32_t first, last, step;
    int32_t more;
} rp_unicode_case;
typedef struct {
    uint32_t first, last, class;
} rp_unicode_class;

/* All in increasing order, without overlaps. */
extern const rp_unicode_range rp_unicode_words[RP_UNICODE_WORDS];
extern const rp_unicode_case rp_unicode_lowers[RP_UNICODE_LOWERS];
extern const rp_unicode_range rp_unicode_not_nfc[RP_UNICODE_NOT_NFC];
extern const rp_unicode_range rp_unicode_composed[RP_UNICODE_COMPOSED];
extern const rp_unicode_class rp_unicode_classes[RP_UNICODE_CLASSES];
extern const rp_unicode_range rp_unicode_pairs[RP_UNICODE_PAIRS]; /* {second, first} */

#endif
