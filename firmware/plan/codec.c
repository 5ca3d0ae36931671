/* Codecs of edges: one for all activation edges, and one for all gradient edges, of a boundary. */
#include <string.h>

#include "plan/plan_own.h"

/* The boundary below stage + 1; activations go up through it, gradients down. */
static uint32_t boundary_of(const rp_plan_edge *edge) {
    return edge->carries == RP_CARRIES_ACTIVATION ? edge->stage - 1 : edge->stage;
}

static bool may_have_codec(const rp_plan_edge *edge) {
    return edge->carries == RP_CARRIES_ACTIVATION || edge->carries == RP_CARRIES_GRADIENT;
}

static bool has_bytes(const rp_plan_edge *edge) {
    return may_have_codec(edge) || edge->carries == RP_CARRIES_INPUT;
}

/* Whether both edges have the same boundary and direction. */
static bool belong_together(const rp_plan_edge *a, const rp_plan_edge *b) {
    return a->stage == b->stage && a->carries == b->carries;
}

static bool crosses_nodes(const rp_plan *plan, const rp_plan_edge *of) {
    bool crosses = false;
    for (uint32_t e = 0; e < plan->edge_count; e++) {
        const rp_plan_edge *edge = &plan->edge[e];
        crosses |= belong_together(edge, of) && edge->from != edge->to;
    }
    return crosses;
}

static size_t tensor_bytes(const rp_model *model, const char *name, rp_codec codec) {
    uint32_t layer = 0;
    while (layer < model->layer_count && strcmp(model->layer[layer].name, name) != 0) {
        layer++;
    }
    return layer < model->layer_count
               ? rp_codec_bytes(codec, rp_shape_count(rp_model_shape(model, layer)))
               : rp_shape_count(&model->input) * sizeof(float); /* "data" */
}

uint64_t rp_plan_sample_bytes(const rp_plan_edge *edge, const rp_model *model) {
    const bool input = edge->carries == RP_CARRIES_INPUT;
    uint64_t bytes = input ? rp_codec_bytes(edge->codec, rp_shape_count(&model->input)) : 0;
    for (uint32_t t = 0; t < edge->tensor_count; t++) {
        bytes += tensor_bytes(model, edge->tensor[t], edge->codec);
    }
    return bytes;
}

void rp_plan_note_bytes(rp_plan *plan, const rp_model *model) {
    for (uint32_t e = 0; e < plan->edge_count; e++) {
        rp_plan_edge *edge = &plan->edge[e];
        if (has_bytes(edge)) {
            edge->parcel_bytes =
                rp_plan_sample_bytes(edge, model) * rp_plan_parcel_samples(plan, edge);
        }
    }
}

void rp_plan_set_codecs(rp_plan *plan, const rp_model *model, const rp_codec (*codec)[2]) {
    for (uint32_t e = 0; e < plan->edge_count; e++) {
        rp_plan_edge *edge = &plan->edge[e];
        if (may_have_codec(edge) && crosses_nodes(plan, edge)) {
            edge->codec = codec[boundary_of(edge)][edge->carries == RP_CARRIES_GRADIENT];
        }
    }
    if (model) {
        rp_plan_note_bytes(plan, model);
    }
}

void rp_plan_set_input_codec(rp_plan *plan, const rp_model *model, rp_codec codec) {
    for (uint32_t e = 0; e < plan->edge_count; e++) {
        rp_plan_edge *edge = &plan->edge[e];
        edge->codec = edge->carries == RP_CARRIES_INPUT ? codec : edge->codec;
    }
    if (model) {
        rp_plan_note_bytes(plan, model);
    }
}

void rp_plan_codecs_of(const rp_plan *plan, uint32_t stage, rp_codec out[2][2]) {
    memset(out, 0, 4 * sizeof out[0][0]);
    for (uint32_t e = 0; e < plan->edge_count; e++) {
        const rp_plan_edge *edge = &plan->edge[e];
        const bool gradient = edge->carries == RP_CARRIES_GRADIENT;
        if (edge->carries == RP_CARRIES_INPUT && stage == 0) {
            out[0][0] = edge->codec;
        } else if (may_have_codec(edge) && boundary_of(edge) == stage) {
            out[1][gradient] = edge->codec;
        } else if (may_have_codec(edge) && boundary_of(edge) + 1 == stage) {
            out[0][gradient] = edge->codec;
        }
    }
}

rp_codec rp_plan_input_codec(const rp_plan *plan) {
    rp_codec codec[2][2];
    rp_plan_codecs_of(plan, 0, codec);
    return codec[0][0];
}

bool rp_plan_has_codec(const rp_plan *plan) {
    bool has = false;
    for (uint32_t e = 0; e < plan->edge_count; e++) {
        has |= plan->edge[e].codec != RP_CODEC_F32;
    }
    return has;
}

static const rp_plan_edge *find_other(const rp_plan *plan, const rp_plan_edge *of) {
    for (const rp_plan_edge *edge = plan->edge; edge < of; edge++) {
        if (belong_together(edge, of) && edge->codec != of->codec) {
            return edge;
        }
    }
    return NULL;
}

/* Whether its codec is meant for what it carries. */
static bool may_carry(const rp_plan_edge *edge) {
    const bool only_input = edge->codec == RP_CODEC_UINT8;
    const bool only_gradient = rp_codec_kept(edge->codec) > 0;
    return edge->codec == RP_CODEC_F32 ||
           (has_bytes(edge) && (!only_input || edge->carries == RP_CARRIES_INPUT) &&
            (!only_gradient || edge->carries == RP_CARRIES_GRADIENT));
}

rp_err rp_plan_check_codecs(const rp_plan *plan) {
    for (uint32_t e = 0; e < plan->edge_count; e++) {
        const rp_plan_edge *edge = &plan->edge[e];
        const char *to = rp_plan_node_name(plan, edge->to);
        if (!may_carry(edge)) {
            return rp_fail(
                RP_ERR_USAGE, "%s: edges[%u].codec: to %s: codec %s of %ss; expected f32",
                plan->source, e, to, rp_codec_name(edge->codec), rp_carries_name(edge->carries));
        }
        const rp_plan_edge *other = has_bytes(edge) ? find_other(plan, edge) : NULL;
        if (other) {
            return rp_fail(RP_ERR_USAGE,
                           "%s: edges[%u].codec: to %s: codec %s, but edges[%u] with the %s of the "
                           "same stage has %s; expected one codec",
                           plan->source, e, to, rp_codec_name(edge->codec),
                           (uint32_t)(other - plan->edge), rp_carries_name(edge->carries),
                           rp_codec_name(other->codec));
        }
    }
    return RP_OK;
}
