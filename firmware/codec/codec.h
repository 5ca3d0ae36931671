/* Codecs: the formats in which boundary tensors are sent. Pure: names, and the bytes of a sample.
 *
 *   f32    unchanged
 *   f16    IEEE half precision, to nearest, ties to even; infinite from 65520 on
 *   bf16   the upper 16 bits of an f32, to nearest, ties to even
 *   int8   blocks of RP_CODEC_BLOCK elements, each with a scale s = max|x| / 127 (f32); elements
 *          round(x / s) from -127 to 127, so that both extremes are exact. A block with an element
 *          that is not finite decodes as NaN
 *   int4   tiles of RP_CODEC_TILE elements, each with a base and a step (bf16); elements are 0 to
 * 15 steps above the base. If that makes the step smaller, the largest element of a full tile is
 * swapped with its first one, and the tile is multiplied by a Hadamard matrix over
 *          sqrt(RP_CODEC_TILE), which is its own inverse; an outlier so becomes a part of the base
 *          (TAH-Quant). A tile that is not finite, or too wide, decodes as NaN
 *   topk   gradients only: of each block of RP_CODEC_KEPT_BLOCK elements it keeps a share, rounded
 *          up, as bf16 with positions; all other elements decode as 0. It keeps the largest
 *          magnitudes, the first of equal ones, and NaN before all numbers. The share is in the
 * name: topk-0.1, topk-0.03, topk-0.01 uint8  inputs only: bytes of pixels as in the data set,
 * without loss. The first stage computes the values that the host would have sent as f32 (pixels.h)
 *
 * A sample is encoded independently of all other samples of its parcel, always with the same size,
 * so parcels can be split and merged by samples. */
#ifndef RP_CODEC_CODEC_H
#define RP_CODEC_CODEC_H

#include <stdbool.h>
#include <stddef.h>

#include "base/dtype.h"

enum {
    RP_CODEC_BLOCK = 128, /* elements of a sample that share a scale: int8 */
    RP_CODEC_TILE = 64,   /* elements of a sample that share a base and a step: int4 */
    RP_CODEC_TILE_HEAD =
        5, /* bytes: base, step, and 0 or 128 + the position of the largest element */
    RP_CODEC_KEPT_BLOCK = 256, /* elements of which a share is kept: topk */
    RP_CODEC_KEPT_BYTES = 3    /* for each kept element: its position in the block, and a bf16 */
};

/* These numbers are sent in Parcel.codec. 9 and 10 were aqsgd4 and aqsgd2, and stay unused. */
typedef enum {
    RP_CODEC_F32,
    RP_CODEC_F16,
    RP_CODEC_BF16,
    RP_CODEC_INT8,
    RP_CODEC_INT4,
    RP_CODEC_UINT8,
    RP_CODEC_TOPK_100, /* 100 of 1000 elements are kept */
    RP_CODEC_TOPK_30,
    RP_CODEC_TOPK_10,
    RP_CODECS /* number of codecs */
} rp_codec;

#define RP_CODEC_NAMES "f32, f16, bf16, int8 or int4"
#define RP_CODEC_GRADIENT_NAMES "f32, f16, bf16, int8, int4, topk-0.1, topk-0.03 or topk-0.01"
#define RP_CODEC_INPUT_NAMES "auto, f32, f16, bf16, int8, int4 or uint8"

const char *rp_codec_name(rp_codec codec); /* "f16" etc.; "unknown" if `codec` is invalid */
rp_codec rp_codec_find(const char *name);  /* RP_CODECS if the name is unknown */

/* Loss of some encoded elements: sums of squares of the errors, and of the elements. */
typedef struct {
    double lost, all;
} rp_codec_loss;

/* Bytes of an encoded sample of `count` elements. */
size_t rp_codec_bytes(rp_codec codec, size_t count);
/* Elements of a sample that are encoded together; 1: each separately. */
size_t rp_codec_group(rp_codec codec);
/* Elements of 1000 that are kept, 0 = all. If not 0, the codec is for gradients only. */
uint32_t rp_codec_kept(rp_codec codec);
/* Type of the encoded elements; U8 if they are a row of bytes with scales. */
rp_dtype rp_codec_dtype(rp_codec codec);

#endif
