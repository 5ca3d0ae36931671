#include "run/codecs.h"

#include <string.h>

#include "codec/pixels.h"

bool rp_codecs_any(const rp_codec (*codec)[2], uint32_t stages) {
    bool any = false;
    for (uint32_t k = 0; codec && k + 1 < stages; k++) {
        any |= codec[k][0] != RP_CODEC_F32 || codec[k][1] != RP_CODEC_F32;
    }
    return any;
}

static const char *const directions[2] = {"activations", "gradients"};

static rp_err take_name(const rp_node *node, bool gradients, rp_codec *out) {
    const char *text = rp_node_is_scalar(node) ? rp_node_text(node) : "..";
    *out = rp_codec_find(text);
    if (*out == RP_CODECS || *out == RP_CODEC_UINT8) {
        return rp_node_fail(node, "expected %s, found '%s'",
                            gradients ? RP_CODEC_GRADIENT_NAMES : RP_CODEC_NAMES, text);
    }
    return gradients || rp_codec_kept(*out) == 0
               ? RP_OK
               : rp_node_fail(
                     node,
                     "'%s' is a codec for gradients only: expected {gradients: %s}, or one "
                     "for both directions: " RP_CODEC_NAMES,
                     text, text);
}

static rp_err take_input(const rp_node *node, rp_codec *out) {
    const char *text = rp_node_is_scalar(node) ? rp_node_text(node) : "..";
    *out = rp_codec_find(text);
    const bool fits = *out < RP_CODECS && rp_codec_kept(*out) == 0;
    return fits || strcmp(text, "auto") == 0
               ? RP_OK
               : rp_node_fail(node, "expected " RP_CODEC_INPUT_NAMES ", found '%s'", text);
}

/* One codec for both directions, or a map by direction. */
static rp_err take_boundary(rp_node *node, rp_codec out[2]) {
    rp_err err = RP_OK;
    out[0] = out[1] = RP_CODEC_F32;
    if (!rp_node_is_map(node)) {
        RP_TRY(take_name(node, false, &out[0]));
        out[1] = out[0];
        return RP_OK;
    }
    for (uint32_t d = 0; d < 2; d++) {
        const rp_node *named = rp_node_find(node, directions[d]);
        RP_TRY(named ? take_name(named, d == 1, &out[d]) : RP_OK);
    }
    RP_TRY(rp_node_done(node));
fail:
    return err;
}

static rp_err take_boundaries(rp_arena *arena, rp_node *node, uint32_t stages,
                              const rp_codec (**out)[2]) {
    rp_codec(*codec)[2];
    rp_err err;
    const bool each = rp_node_is_list(node);
    if (each && rp_node_count(node) != stages - 1) {
        return rp_node_fail(node,
                            "the list has %u codecs for %u stages; expected one codec for each of "
                            "the %u boundaries between stages, or a single codec, or {activations: "
                            "CODEC, gradients: CODEC}",
                            rp_node_count(node), stages, stages - 1);
    }
    RP_TRY(RP_ARENA_NEW(arena, stages, &codec));
    for (uint32_t k = 0; k + 1 < stages; k++) {
        RP_TRY(take_boundary(each ? rp_node_item(node, k) : node, codec[k]));
    }
    *out = (const rp_codec(*)[2])codec;
fail:
    return err;
}

static rp_err take_max_error(rp_node *links, rp_codecs *out) {
    const rp_node *limit = rp_node_find(links, "max_error");
    out->max_error = 0.05;
    if (limit && !out->is_auto) {
        return rp_node_fail(limit, "has an effect only with `codec: auto`; remove it, or set codec "
                                   "to auto");
    }
    return out->is_auto ? rp_node_f64(links, "max_error", 1e-6, 1, &out->max_error) : RP_OK;
}

rp_err rp_codecs_read(rp_arena *arena, rp_node *root, uint32_t stages, rp_codecs *out) {
    rp_node *links;
    rp_err err;
    *out = (rp_codecs){.inputs = RP_CODECS};
    RP_TRY(rp_node_section(root, "links", NULL, &links));
    if (!links) {
        return RP_OK;
    }
    if (!rp_node_is_map(links)) {
        return rp_node_fail(links, "expected a map like {codec: int8}");
    }
    const rp_node *named = rp_node_find(links, "inputs");
    RP_TRY(named ? take_input(named, &out->inputs) : RP_OK);
    RP_TRY(rp_node_default(links, "inputs", "auto"));
    rp_node *node = rp_node_find(links, "codec");
    out->is_auto = node && rp_node_is_scalar(node) && strcmp(rp_node_text(node), "auto") == 0;
    RP_TRY(rp_node_default(links, "codec", "f32"));
    RP_TRY(take_max_error(links, out));
    RP_TRY(rp_node_done(links));
    RP_TRY(node && !out->is_auto ? take_boundaries(arena, node, stages, &out->at) : RP_OK);
fail:
    return err;
}

bool rp_codecs_are_alike(const rp_codec (*codec)[2], uint32_t stages) {
    for (uint32_t k = 1; codec && k + 1 < stages; k++) {
        if (codec[k][0] != codec[0][0] || codec[k][1] != codec[0][1]) {
            return false;
        }
    }
    return true;
}

rp_err rp_codecs_choose_inputs(rp_node *root, const rp_data *data, rp_codec *inputs,
                               const char **why) {
    const bool many = data->norm.groups > RP_PIXEL_GROUPS_MAX;
    const bool bytes = rp_data_has_bytes(data, why) && !many;
    rp_node *links = rp_node_find(root, "links");
    *why = !*why && many ? "its samples have more than 16 channels" : *why;
    if (data->type == RP_I32 && *inputs != RP_CODECS && *inputs != RP_CODEC_F32) {
        return rp_node_fail(rp_node_find(links, "inputs"),
                            "the samples are token ids, which are sent as they are; expected auto "
                            "or f32");
    }
    if (*inputs == RP_CODEC_UINT8 && !bytes) {
        return rp_node_fail(rp_node_find(links, "inputs"),
                            "uint8 does not fit the data set: %s; expected auto or f32", *why);
    }
    if (*inputs == RP_CODECS) {
        *inputs = bytes ? RP_CODEC_UINT8 : RP_CODEC_F32;
    }
    return RP_OK;
}
