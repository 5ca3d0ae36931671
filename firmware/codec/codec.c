#include "codec/codec.h"

#include <string.h>

static const struct {
    const char *name;
    rp_dtype dtype;
} codecs[RP_CODECS] = {
    [RP_CODEC_F32] = {"f32", RP_F32},
    [RP_CODEC_F16] = {"f16", RP_F16},
    [RP_CODEC_BF16] = {"bf16", RP_BF16},
    [RP_CODEC_INT8] = {"int8", RP_U8},
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
    const size_t blocks = (count + RP_CODEC_BLOCK - 1) / RP_CODEC_BLOCK;
    return count * rp_dtype_bytes(codecs[codec].dtype) +
           (codec == RP_CODEC_INT8 ? blocks * sizeof(float) : 0);
}
