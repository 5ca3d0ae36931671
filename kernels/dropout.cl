/* Dropout of rows of `count` elements: to[i] (+)= from[i] * (scale if word `first + i` of the
 * stream is kept, otherwise 0), so a NaN stays a NaN as in PyTorch. The words of a row begin
 * `words` after those of the row before. A word is kept if its upper 24 bits >= drop_below = p *
 * 2^24. Forward and backward are the same launch; `to` may be `from`. Element 0 is at to_first and
 * from_first of the buffers.
 *
 * Grid: (one item for each 64 words from word 4 * (first / 4) of the row, the beginning of a Philox
 * block; rows). */
#include "philox.clh"

/* Elements [at, at + 64) belong to this item's words. `at` may be negative, and at + 64 > count. */
#define BEGIN                                                                                      \
    uint16 word[4];                                                                                \
    ulong block = first / 4 + get_global_id(0) * 16;                                               \
    long at = (long)(get_global_id(0) * 64) - (long)(first % 4);                                   \
    philox64((uint2)(key0, key1), block, word);

kernel void dropout(global float *to, ulong to_first, global const float *from, ulong from_first,
                    uint count, ulong first, ulong words, uint key0, uint key1, uint drop_below,
                    float scale, uint add) {
    ulong row = get_global_id(1);
    first += row * words;
    BEGIN
    to += to_first + row * count;
    from += from_first + row * count;
    if (at >= 0 && at + 64 <= (long)count) {
        for (uint j = 0; j < 4; j++) {
            float16 factor = select((float16)0.0f, (float16)scale, word[j] >> 8 >= drop_below);
            float16 value = vload16(0, from + at + 16 * j) * factor;
            vstore16(add ? vload16(0, to + at + 16 * j) + value : value, 0, to + at + 16 * j);
        }
        return;
    }
    uint lane[64];
    for (uint j = 0; j < 4; j++) {
        vstore16(word[j], j, lane);
    }
    for (uint j = 0; j < 64; j++) {
        if (at + j >= 0 && at + j < (long)count) {
            float value = from[at + j] * (lane[j] >> 8 >= drop_below ? scale : 0.0f);
            to[at + j] = add ? to[at + j] + value : value;
        }
    }
}

/* words[i] = word first + i of the stream; only for tests of the generator. */
kernel void philox_words(global uint *words, uint count, ulong first, uint key0, uint key1) {
    BEGIN
    uint lane[64];
    for (uint j = 0; j < 4; j++) {
        vstore16(word[j], j, lane);
    }
    for (uint j = 0; j < 64; j++) {
        if (at + j >= 0 && at + j < (long)count) {
            words[at + j] = lane[j];
        }
    }
}
