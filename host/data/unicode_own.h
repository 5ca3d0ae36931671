/* Tables of unicode.c. Private to the room. */
#ifndef RP_DATA_UNICODE_OWN_H
#define RP_DATA_UNICODE_OWN_H

#include <stdint.h>

enum { RP_UNICODE_WORDS = 273, RP_UNICODE_LOWERS = 180 };

typedef struct {
    uint32_t first, last;
} rp_unicode_range;
typedef struct {
    uint32_t first, last, step;
    int32_t more;
} rp_unicode_case;

/* Both in increasing order, without overlaps. */
extern const rp_unicode_range rp_unicode_words[RP_UNICODE_WORDS];
extern const rp_unicode_case rp_unicode_lowers[RP_UNICODE_LOWERS];

#endif
