/* Codecs: how a boundary tensor travels. Pure facts: names, and the bytes of a sample.
 *
 *   f32    as it is
 *   f16    IEEE half precision, to nearest, ties to even; from 65520 on infinite
 *   bf16   the upper 16 bits of an f32, to nearest, ties to even
 *   int8   blocks of RP_CODEC_BLOCK elements with a scale s = max|x| / 127 each (f32), elements
 *          round(x / s) from -127 to 127: symmetric, so that both extremes come back. A block with
 *          an element that is not finite comes back as NaN
 *   int4   tiles of RP_CODEC_TILE elements with a base and a step each (bf16), elements from 0 to
 * 15 steps above the base. Where that gives a smaller step, the largest element of a whole tile is
 * swapped with its first, and then the tile is multiplied by a Hadamard matrix over
 * sqrt(RP_CODEC_TILE), its own inverse: one that stands out becomes a part of the base (TAH-Quant).
 * A tile that is not finite, or too wide, comes back as NaN
 *   topk   of gradients only: of each block of RP_CODEC_KEPT_BLOCK elements the share with the
 * largest magnitude, of equal ones the first, as bf16 with their places; the others are 0. What is
 * no number is kept before all. topk-0.1, topk-0.03 and topk-0.01 keep that share, rounded up
 *   uint8  inputs only: bytes of pixels as the data set has them. No digit is lost, and the first
 * stage makes of them what the host would have (pixels.h)
 *
 * A sample is encoded by itself, whatever else is in its parcel, and takes the same bytes always:
 * parcels are cut and gathered by samples. */
#ifndef RP_CODEC_CODEC_H
#define RP_CODEC_CODEC_H

#include <stdbool.h>
#include <stddef.h>

#include "base/dtype.h"

enum {
    RP_CODEC_BLOCK = 128,      /* elements of a sample that share a scale: int8 */
    RP_CODEC_TILE = 64,        /* .. a base and a step: int4 */
    RP_CODEC_TILE_HEAD = 5,    /* bytes: base, step, and 0 or 128 + the place of the largest */
    RP_CODEC_KEPT_BLOCK = 256, /* elements of which a share is kept: topk */
    RP_CODEC_KEPT_BYTES = 3    /* of an element that is kept: its place in the block, and a bf16 */
};

/* The numbers are on the wire: Parcel.codec. 9 and 10 were aqsgd4 and aqsgd2, and stay unused. */
typedef enum {
    RP_CODEC_F32,
    RP_CODEC_F16,
    RP_CODEC_BF16,
    RP_CODEC_INT8,
    RP_CODEC_INT4,
    RP_CODEC_UINT8,
    RP_CODEC_TOPK_100, /* of 1000 */
    RP_CODEC_TOPK_30,
    RP_CODEC_TOPK_10,
    RP_CODECS /* how many */
} rp_codec;

#define RP_CODEC_NAMES "f32, f16, bf16, int8 or int4"
#define RP_CODEC_GRADIENT_NAMES "f32, f16, bf16, int8, int4, topk-0.1, topk-0.03 or topk-0.01"
#define RP_CODEC_INPUT_NAMES "auto, f32, f16, bf16, int8, int4 or uint8"

const char *rp_codec_name(rp_codec codec); /* "f16"; "unknown" for what is no codec */
rp_codec rp_codec_find(const char *name);  /* RP_CODECS when there is none of this name */

/* What encoding has lost of some elements: sums of squares, of what is lost and of the elements. */
typedef struct {
    double lost, all;
} rp_codec_loss;

/* Of a sample of so many f32, encoded. */
size_t rp_codec_bytes(rp_codec codec, size_t count);
/* Elements of a sample that are encoded together; 1: each by itself. */
size_t rp_codec_group(rp_codec codec);
/* Elements of 1000 that are kept, 0 = all. With any the codec is for gradients only. */
uint32_t rp_codec_kept(rp_codec codec);
/* Of the elements on the wire: U8 where they are a row of bytes with scales. */
rp_dtype rp_codec_dtype(rp_codec codec);

#endif
