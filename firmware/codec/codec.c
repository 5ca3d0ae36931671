#include "codec/codec.h"

#include <string.h>

static const struct {
    const char *name;
    rp_dtype dtype;
    size_t bits;        /* of an element */
    size_t group, head; /* elements that are encoded together, and the bytes that they share */
} codecs[RP_CODECS] = {
    [RP_CODEC_F32] = {"f32", RP_F32, 32, 1, 0},
    [RP_CODEC_F16] = {"f16", RP_F16, 16, 1, 0},
    [RP_CODEC_BF16] = {"bf16", RP_BF16, 16, 1, 0},
    [RP_CODEC_INT8] = {"int8", RP_U8, 8, RP_CODEC_BLOCK, sizeof(float)},
    [RP_CODEC_INT4] = {"int4", RP_U8, 4, RP_CODEC_TILE, RP_CODEC_TILE_HEAD},
    [RP_CODEC_UINT8] = {"uint8", RP_U8, 8, 1, 0},
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

size_t rp_codec_bytes(rp_codec codec, size_t count) {
    const size_t groups = (count + codecs[codec].group - 1) / codecs[codec].group;
    return (count * codecs[codec].bits + 7) / 8 + groups * codecs[codec].head;
}

size_t rp_codec_group(rp_codec codec) {
    return codecs[codec].group;
}
