/* Activations that are stored in 16 bits (firmware/codec/storage.h): rounded where they are, packed
 * into 16 bits, unpacked into f32.
 *
 *   round_<format> (x, count)         x[i] = x[i] rounded
 *   pack_<format>  (to, x, count)     the same, and to[i] = its 16 bits
 *   unpack_<format>(x, from, count)   x[i] = from[i]
 * Element 0 of each tensor is at `<name>_first` of its buffer. Grid: one item for each 16
 * elements. */
#include "vec16.clh"

#define U uint16
#define CONVERT_FLOAT convert_float16
#define AS_U as_uint16
#include "half.clh"

static uint16 load_bits(global const ushort *p, uint left) {
    ushort lane[16];
    if (left >= 16) {
        return convert_uint16(vload16(0, p));
    }
    for (uint l = 0; l < 16; l++) {
        lane[l] = l < left ? p[l] : 0;
    }
    return convert_uint16(vload16(0, lane));
}

static void store_bits(uint16 bits, global ushort *p, uint left) {
    ushort lane[16];
    if (left >= 16) {
        vstore16(convert_ushort16(bits), 0, p);
        return;
    }
    vstore16(convert_ushort16(bits), 0, lane);
    for (uint l = 0; l < left; l++) {
        p[l] = lane[l];
    }
}

#define STORAGE(format)                                                                            \
    kernel void round_##format(global float *x, ulong x_first, uint count) {                       \
        uint i = (uint)get_global_id(0) * 16;                                                      \
        uint left = count - i;                                                                     \
        if (i < count) {                                                                           \
            uint16 bits = to_##format(as_uint16(load16(x + x_first + i, left, 0.0f)));             \
            store16(as_float16(from_##format(bits)), x + x_first + i, left);                       \
        }                                                                                          \
    }                                                                                              \
    kernel void pack_##format(global ushort *to, ulong to_first, global float *x, ulong x_first,   \
                              uint count) {                                                        \
        uint i = (uint)get_global_id(0) * 16;                                                      \
        uint left = count - i;                                                                     \
        if (i < count) {                                                                           \
            uint16 bits = to_##format(as_uint16(load16(x + x_first + i, left, 0.0f)));             \
            store_bits(bits, to + to_first + i, left);                                             \
            store16(as_float16(from_##format(bits)), x + x_first + i, left);                       \
        }                                                                                          \
    }                                                                                              \
    kernel void unpack_##format(global float *x, ulong x_first, global const ushort *from,         \
                                ulong from_first, uint count) {                                    \
        uint i = (uint)get_global_id(0) * 16;                                                      \
        uint left = count - i;                                                                     \
        if (i < count) {                                                                           \
            uint16 bits = load_bits(from + from_first + i, left);                                  \
            store16(as_float16(from_##format(bits)), x + x_first + i, left);                       \
        }                                                                                          \
    }

STORAGE(f16)
STORAGE(bf16)
