#include "base/nearest.h"

#include <stdbool.h>
#include <string.h>

enum { WORD_MAX = 63 };

static uint32_t smaller_of(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

uint32_t rp_word_distance(const char *a, const char *b) {
    const size_t rows = strlen(a);
    const size_t columns = strlen(b);
    uint32_t row[3][WORD_MAX + 1]; /* the current row and the two before it */
    if (rows > WORD_MAX || columns > WORD_MAX) {
        return UINT32_MAX;
    }
    uint32_t *here = row[0];
    uint32_t *above = row[1];
    uint32_t *above_2 = row[2];
    for (size_t j = 0; j <= columns; j++) {
        here[j] = above[j] = above_2[j] = (uint32_t)j;
    }
    for (size_t i = 1; i <= rows; i++) {
        uint32_t *const oldest = above_2;
        above_2 = above;
        above = here;
        here = oldest;
        here[0] = (uint32_t)i;
        for (size_t j = 1; j <= columns; j++) {
            here[j] = smaller_of(smaller_of(above[j], here[j - 1]) + 1,
                                 above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
                here[j] = smaller_of(here[j], above_2[j - 2] + 1);
            }
        }
    }
    return here[columns];
}

void rp_nearest_offer(rp_nearest *nearest, const char *candidate) {
    const size_t length = strlen(nearest->word);
    const bool begins = length >= 2 && strncmp(candidate, nearest->word, length) == 0;
    const uint32_t distance = begins ? 0 : rp_word_distance(nearest->word, candidate);
    const uint32_t most = length < 3 ? 1 : (uint32_t)(length / 3);
    if (distance <= most && length > 0 && (!nearest->best || distance < nearest->distance)) {
        nearest->best = candidate;
        nearest->distance = distance;
    }
}
