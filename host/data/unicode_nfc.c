/* Normal form C.
 *
 * source  Unicode Standard Annex 15; Hangul: chapter 3.12 of the standard */
#include "data/unicode.h"
#include "data/unicode_own.h"

enum {
    PLAIN_END = 0x300, /* characters below it are in normal form C whatever follows or precedes */
    LEAD_FIRST = 0x1100,
    LEADS = 19,
    VOWEL_FIRST = 0x1161,
    VOWELS = 21,
    TAIL_FIRST = 0x11a7, /* the number 0: no tail */
    TAILS = 28,
    SYLLABLE_FIRST = 0xac00,
    SYLLABLES = LEADS * VOWELS * TAILS
};

static bool is_within(const rp_unicode_range *list, uint32_t count, uint32_t code) {
    uint32_t low = 0;
    while (low < count) {
        const uint32_t middle = low + (count - low) / 2;
        if (code < list[middle].first) {
            count = middle;
        } else if (code > list[middle].last) {
            low = middle + 1;
        } else {
            return true;
        }
    }
    return false;
}

/* The combining class; 0: the character begins what can be composed. */
static uint32_t class_of(uint32_t code) {
    uint32_t low = 0;
    uint32_t high = RP_UNICODE_CLASSES;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (code < rp_unicode_classes[middle].first) {
            high = middle;
        } else if (code > rp_unicode_classes[middle].last) {
            low = middle + 1;
        } else {
            return rp_unicode_classes[middle].class;
        }
    }
    return 0;
}

/* The first pair whose second character is `second` or a later one. */
static uint32_t find_pairs(uint32_t second) {
    uint32_t low = 0;
    uint32_t high = RP_UNICODE_PAIRS;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (rp_unicode_pairs[middle].first < second) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static bool composes_hangul(uint32_t first, uint32_t second) {
    const uint32_t syllable = first - SYLLABLE_FIRST;
    return (first - LEAD_FIRST < LEADS && second - VOWEL_FIRST < VOWELS) ||
           (syllable < SYLLABLES && syllable % TAILS == 0 && second > TAIL_FIRST &&
            second - TAIL_FIRST < TAILS);
}

/* May the two characters be composed, with only marks of lower classes between them? A composed
 * first character may contain one that can. */
static bool may_compose(uint32_t first, uint32_t second) {
    uint32_t at = find_pairs(second);
    if (at == RP_UNICODE_PAIRS || rp_unicode_pairs[at].first != second) {
        return composes_hangul(first, second);
    }
    for (; at < RP_UNICODE_PAIRS && rp_unicode_pairs[at].first == second; at++) {
        if (rp_unicode_pairs[at].last == first) {
            return true;
        }
    }
    return class_of(second) > 0 && is_within(rp_unicode_composed, RP_UNICODE_COMPOSED, first);
}

size_t rp_unicode_nfc_bytes(const char *text, size_t bytes) {
    const char *end = text + bytes;
    uint32_t starter = 0; /* the last character of class 0; 0: none */
    uint32_t before = 0;  /* class of the character before */
    uint32_t code;
    uint32_t length;
    for (const char *at = text; at < end; at += length) {
        length = rp_unicode_read(at, end, &code);
        if (length == 0) {
            return (size_t)(at - text);
        }
        if (code < PLAIN_END) {
            starter = code;
            before = 0;
            continue;
        }
        const uint32_t class = class_of(code);
        const bool adjacent = before == 0 || (class > 0 && before < class);
        if (is_within(rp_unicode_not_nfc, RP_UNICODE_NOT_NFC, code) ||
            (class > 0 && before > class) || (adjacent && may_compose(starter, code))) {
            return (size_t)(at - text);
        }
        starter = class == 0 ? code : starter;
        before = class;
    }
    return bytes;
}
