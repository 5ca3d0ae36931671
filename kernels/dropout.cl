/* Dropout: to[i] (+)= from[i] * scale where word `first + i` of the stream is kept, else * 0, so
 * that a NaN stays a NaN as in PyTorch. Kept: the word's upper 24 bits >= drop_below = p * 2^24.
 * Forward and backward are the same launch; `to` may be `from`.
 *
 * Grid: one work-item per Philox block that holds a word of [first, first + count). */
#include "philox.clh"

kernel void dropout(global float *to, global const float *from, uint count, ulong first, uint key0,
                    uint key1, uint drop_below, float scale, uint add) {
    ulong block = first / 4 + get_global_id(0);
    uint4 word = philox((uint2)(key0, key1), block) >> 8;
    uint lane[4] = {word.x, word.y, word.z, word.w};
    for (uint j = 0; j < 4; j++) {
        ulong i = block * 4 + j - first; /* wraps far above count for words before the first */
        if (i < count) {
            float value = from[i] * (lane[j] >= drop_below ? scale : 0.0f);
            to[i] = add ? to[i] + value : value;
        }
    }
}

/* words[i] = word first + i of the stream: the test's window on the generator. */
kernel void philox_words(global uint *words, uint count, ulong first, uint key0, uint key1) {
    ulong i = get_global_id(0);
    if (i < count) {
        uint4 word = philox((uint2)(key0, key1), (first + i) / 4);
        uint lane[4] = {word.x, word.y, word.z, word.w};
        words[i] = lane[(first + i) % 4];
    }
}
