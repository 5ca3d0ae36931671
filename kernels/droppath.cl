/* Stochastic depth: to[s] (+)= from[s] * (scale if word `first + s` of the stream is kept,
 * otherwise 0) for samples of `count` elements, so a NaN stays a NaN as in PyTorch. A word is kept
 * if its upper 24 bits >= drop_below = p * 2^24. Forward and backward are the same launch; `to` may
 * be `from`. Element 0 is at to_first and from_first of the buffers.
 *
 * Grid: one item for each PIECE elements of a sample, one dimension for all n samples. */
#include "philox.clh"
#include "vec16.clh"

#define PIECE 128

kernel void droppath(global float *to, ulong to_first, global const float *from, ulong from_first,
                     uint n, uint count, ulong first, uint key0, uint key1, uint drop_below,
                     float scale, uint add) {
    uint item = (uint)get_global_id(0);
    uint pieces = (count + PIECE - 1) / PIECE;
    uint s = item / pieces;
    uint begin = item % pieces * PIECE;
    uint end = count - begin < PIECE ? count : begin + PIECE;
    if (s >= n) {
        return;
    }
    uint word = philox_word((uint2)(key0, key1), first + s);
    float16 factor = (float16)(word >> 8 >= drop_below ? scale : 0.0f);
    to += to_first + (ulong)s * count;
    from += from_first + (ulong)s * count;
    for (uint i = begin; i < end; i += 16) {
        put16(load16(from + i, end - i, 0.0f) * factor, to + i, end - i, add);
    }
}
