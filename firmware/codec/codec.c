#include "codec/codec.h"

#include <string.h>

static const struct {
    const char *name;
    rp_dtype dtype;
    size_t bits;        /* per element */
    size_t group, head; /* elements that are encoded together, and the bytes of their head */
    uint32_t kept;      /* of 1000 elements; 0: all */
} codecs[RP_CODECS] = {
    [RP_CODEC_F32] = {"f32", RP_F32, 32, 1, 0, 0},
    [RP_CODEC_F16] = {"f16", RP_F16, 16, 1, 0, 0},
    [RP_CODEC_BF16] = {"bf16", RP_BF16, 16, 1, 0, 0},
    [RP_CODEC_INT8] = {"int8", RP_U8, 8, RP_CODEC_BLOCK, sizeof(float), 0},
    [RP_CODEC_INT4] = {"int4", RP_U8, 4, RP_CODEC_TILE, RP_CODEC_TILE_HEAD, 0},
    [RP_CODEC_UINT8] = {"uint8", RP_U8, 8, 1, 0, 0},
    [RP_CODEC_TOPK_100] = {"topk-0.1", RP_U8, 0, RP_CODEC_KEPT_BLOCK, 0, 100},
    [RP_CODEC_TOPK_30] = {"topk-0.03", RP_U8, 0, RP_CODEC_KEPT_BLOCK, 0, 30},
    [RP_CODEC_TOPK_10] = {"topk-0.01", RP_U8, 0, RP_CODEC_KEPT_BLOCK, 0, 10},
};

const char *rp_codec_name(rp_codec codec) {
    return (unsigned)codec < RP_CODECS ? codecs[codec].name : "unknown";
}

rp_codec rp_codec_find(const char *name) {
    unsigned codec = 0;
    while (codec < RP_CODECS && strcmp(codecs[codec].name, name) != 0) {
        codec++;
    }
    return (rp_codec)codec;
}

rp_dtype rp_codec_dtype(rp_codec codec) {
    return codecs[codec].dtype;
}

static size_t kept_of(rp_codec codec, size_t count) {
    return (count * codecs[codec].kept + 999) / 1000;
}

size_t rp_codec_bytes(rp_codec codec, size_t count) {
    const size_t group = codecs[codec].group;
    const size_t whole = count / group;
    const size_t rest = count % group;
    const size_t kept = whole * kept_of(codec, group) + kept_of(codec, rest);
    return (count * codecs[codec].bits + 7) / 8 + (whole + (rest > 0)) * codecs[codec].head +
           kept * RP_CODEC_KEPT_BYTES;
}

uint32_t rp_codec_kept(rp_codec codec) {
    return codecs[codec].kept;
}

size_t rp_codec_group(rp_codec codec) {
    return codecs[codec].group;
}
