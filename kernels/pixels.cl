/* Inputs that came as bytes (firmware/codec/pixels.h): a byte is looked up among the 256 values of
 * its group. Nothing is computed, so every device gives the same bits. */

/* Grid: one item for each element of all samples. width: elements of a group. */
kernel void decode_uint8(global uint *to, ulong first, global const uchar *from,
                         global const uint *values, uint count, uint groups, uint width) {
    uint i = (uint)get_global_id(0);
    if (i < count) {
        to[first + i] = values[i / width % groups * 256 + from[i]];
    }
}
