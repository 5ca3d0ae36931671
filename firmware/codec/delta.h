/* Differences of weights as bytes, on a host: pure.
 *
 *   int8   as in codec.h
 *   topk   of each block of RP_CODEC_KEPT_BLOCK values it keeps the share, rounded up: those with
 *          the largest magnitudes, the first of equal ones. For each block the positions, one byte
 *          each and ascending, and then the values as f32. All other values decode as 0
 *
 * Values that are kept are exact in topk, so with the share 1 nothing is lost. (The codec topk of
 * codec.h is one for gradients, which need no more than bf16.) */
#ifndef RP_CODEC_DELTA_H
#define RP_CODEC_DELTA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum { RP_DELTA_NONE, RP_DELTA_INT8, RP_DELTA_TOPK } rp_delta_kind;

typedef struct {
    rp_delta_kind kind;
    double share; /* topk: above 0, at most 1; else 0 */
} rp_delta;

enum { RP_DELTA_TEXT = 48 };

/* "int8" or "topk:SHARE"; "" for none. */
void rp_delta_print(const rp_delta *delta, char out[RP_DELTA_TEXT]);
/* Reads such a text; false: it is invalid. */
bool rp_delta_parse(const char *text, rp_delta *out);

/* Bytes of `count` encoded values; at most UINT64_MAX / 8 values. */
uint64_t rp_delta_bytes(const rp_delta *delta, uint64_t count);

/* values: [count], finite; to: rp_delta_bytes(). The kind is not NONE. */
void rp_delta_encode(const rp_delta *delta, const float *values, size_t count, uint8_t *to);
/* Checks and decodes rp_delta_bytes(). Returns NULL, or what is wrong with the bytes. */
const char *rp_delta_decode(const rp_delta *delta, const uint8_t *from, size_t count,
                            float *values);

#endif
