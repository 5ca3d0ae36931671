/* The edges of this node: opens their ports, passes received messages to their ports, and sends
 * parcels over links. */
#include <stdio.h>
#include <string.h>

#include "agent/runner_own.h"

/* Every neighbour may share the stage, and this board adds its own gradient. */
_Static_assert((int)RP_PORT_SOURCES_MAX > (int)RP_PLAN_NEIGHBOURS_MAX, "edges that end in a port");
_Static_assert((int)RP_PORT_PIECES_MAX >= (int)RP_PLAN_PIECES_MAX, "parcels of an op");
_Static_assert((int)RP_PORT_EDGES_MAX > (int)RP_PLAN_NEIGHBOURS_MAX, "edges that begin in a port");

/* ---- content of one sample ------------------------------------------------------------------- */

static rp_Dtype dtype_on_wire(rp_dtype type) {
    switch (type) {
    case RP_F16:
        return RP_DTYPE_F16;
    case RP_BF16:
        return RP_DTYPE_BF16;
    case RP_U8:
        return RP_DTYPE_U8;
    case RP_I32:
        return RP_DTYPE_I32;
    default:
        return RP_DTYPE_F32;
    }
}

/* One tensor, however many samples it is of. */
static bool is_row(rp_kind carries) {
    return carries == RP_KIND_WEIGHT_GRADIENT || carries == RP_KIND_STASH ||
           carries == RP_KIND_WEIGHT || carries == RP_KIND_TIED_GRADIENT ||
           carries == RP_KIND_TIED_WEIGHT;
}

/* A row of floats: gradients or weights of a stage, or a stash. */
static rp_boundary_tensors row_of(size_t bytes) {
    return (rp_boundary_tensors){.count = bytes > 0,
                                 .sample = {rp_shape_1((uint32_t)(bytes / sizeof(float)))},
                                 .bytes = {bytes},
                                 .sample_bytes = bytes};
}

/* In a step of `time` tokens. */
static rp_boundary_tensors boundary_of(const runner_stage *held, uint32_t time, rp_kind carries,
                                       bool outgoing) {
    const rp_layout *layout = rp_stage_layout(held->stage);
    switch (carries) {
    case RP_KIND_WEIGHT_GRADIENT:
    case RP_KIND_WEIGHT:
        return row_of(layout->gradient_bytes);
    case RP_KIND_STASH:
        return row_of(rp_stage_stash_bytes(held->stage));
    case RP_KIND_TIED_GRADIENT:
    case RP_KIND_TIED_WEIGHT:
        return row_of(layout->tie_row_bytes);
    case RP_KIND_LABEL: {
        const uint32_t width = rp_job_target_width_at(held->job, time);
        return (rp_boundary_tensors){.count = 1,
                                     .type = {held->job->loss->class_target ? RP_I32 : RP_F32},
                                     .sample = {rp_shape_1(width)},
                                     .bytes = {width * sizeof(float)},
                                     .sample_bytes = width * sizeof(float)};
    }
    case RP_KIND_GRADIENT: /* arrives through the upper boundary, leaves through the lower */
        return rp_layout_boundary_at(layout, time, !outgoing, true);
    default:
        return rp_layout_boundary_at(layout, time, outgoing, false);
    }
}

/* The content of parcels in steps of all lengths of the run. */
static rp_err make_form(rp_runner *r, const runner_stage *held, rp_kind carries, bool outgoing,
                        rp_port_form *out) {
    const rp_boundary_tensors longest = boundary_of(held, 0, carries, outgoing);
    const rp_model *model = held->job->model;
    rp_port_time *shorter;
    rp_err err;
    *out = (rp_port_form){.tensor_count = longest.count, .shorter_count = model->view_count};
    for (uint32_t i = 0; i < longest.count; i++) {
        out->sample_bytes[i] = longest.bytes[i];
        out->dtype[i] = dtype_on_wire(longest.type[i]);
    }
    RP_TRY(RP_ARENA_NEW(r->arena, (size_t)model->view_count + 1, &shorter));
    for (uint32_t k = 0; k < model->view_count; k++) {
        const uint32_t time = model->view[k].time;
        const rp_boundary_tensors boundary = boundary_of(held, time, carries, outgoing);
        shorter[k].time = time;
        memcpy(shorter[k].sample_bytes, boundary.bytes, boundary.count * sizeof *boundary.bytes);
    }
    out->shorter = shorter;
fail:
    return err;
}

/* ---- opening --------------------------------------------------------------------------------- */

/* The port of the stage for what edges of this kind bring; NULL: each edge has its own. */
static rp_port_in **port_of(runner_stage *held, rp_kind carries) {
    switch (carries) {
    case RP_KIND_TIED_GRADIENT:
    case RP_KIND_TIED_WEIGHT:
        return NULL;
    case RP_KIND_LABEL:
        return &held->label;
    case RP_KIND_GRADIENT:
        return &held->gradient;
    case RP_KIND_WEIGHT_GRADIENT:
        return &held->summands;
    case RP_KIND_STASH:
        return &held->stashes;
    case RP_KIND_WEIGHT:
        return &held->weights;
    default:
        return &held->in;
    }
}

/* Whether an edge of this node ends in the port for `carries` of stage `held`. */
static bool ends_in(const rp_runner_edge *edge, uint32_t held, rp_port_in *const *port,
                    runner_stage *stage) {
    const bool arrives = !edge->outgoing || !edge->link;
    return arrives && edge->taker == held && port_of(stage, edge->carries) == port;
}

static rp_err open_port_in(rp_runner *r, uint32_t held, rp_kind carries, const char *what,
                           char *name, size_t name_bytes) {
    runner_stage *stage = &r->held[held];
    rp_port_in **port = port_of(stage, carries);
    rp_port_in_options options = {.name = name};
    rp_err err;
    (void)snprintf(name, name_bytes, "%s of stage %u", what, stage->job->stage);
    RP_TRY(make_form(r, stage, carries, false, &options.form));
    for (uint32_t e = 0; e < r->at.edge_count; e++) {
        if (ends_in(&r->at.edge[e], held, port, stage)) {
            r->edge[e].source = options.source_count++;
            options.pending_max += r->at.edge[e].window;
        }
    }
    if (options.source_count == 0 || options.form.tensor_count == 0) {
        return RP_OK; /* nothing comes */
    }
    options.form.is_sum = is_row(carries);
    if (carries == RP_KIND_WEIGHT_GRADIENT) { /* this board's own gradient is one more summand */
        stage->own_summand.source = options.source_count++;
        options.pending_max++;
    }
    RP_TRY(rp_port_in_open(r->arena, &options, port));
fail:
    return err;
}

static void free_part(void *owner, void *memory) {
    rp_message *message = memory;
    rp_link_release(owner, &message);
}

/* One parcel with its shapes. */
static rp_err send_over_link(void *context, const rp_parcel *parcel, void (*done)(void *slot),
                             void *slot) {
    const runner_edge *edge = context;
    const rp_boundary_tensors boundary =
        boundary_of(edge->sender, parcel->time, edge->carries, true);
    const rp_Parcel body = {.step = parcel->step,
                            .first = parcel->samples.first,
                            .count = parcel->samples.count,
                            .stage = edge->stage,
                            .evaluation = parcel->evaluating,
                            .codec = edge->codec,
                            .time = parcel->time};
    rp_Frame frame = rp_frame_of_parcel(edge->carries, &body);
    rp_part part[RP_PARTS_MAX];
    for (uint32_t i = 0; i < boundary.count; i++) {
        const rp_shape shape = is_row(edge->carries)
                                   ? boundary.sample[i]
                                   : rp_shape_batch(body.count, &boundary.sample[i]);
        part[i] = rp_part_of_tensor(parcel->part[i].dtype, parcel->part[i].data, &shape);
    }
    return rp_link_send(edge->link, &frame, part, parcel->part_count, false, done, slot);
}

static rp_err open_port_out(rp_runner *r, uint32_t held, rp_kind carries, rp_port_out **out) {
    runner_stage *stage = &r->held[held];
    rp_port_out_options options = {.micro = carries == RP_KIND_GRADIENT
                                                ? rp_job_backward_samples(stage->job)
                                                : rp_job_forward_samples(stage->job),
                                   .slot_count = 1,
                                   .shared = rp_stage_facts(stage->stage).zeros};
    rp_err err;
    RP_TRY(make_form(r, stage, carries, true, &options.form));
    for (uint32_t e = 0; e < r->at.edge_count; e++) {
        const rp_runner_edge *at = &r->at.edge[e];
        runner_edge *edge = &r->edge[e];
        if (!at->outgoing || at->sender != held || at->carries != carries) {
            continue;
        }
        RP_ASSERT(options.edge_count < RP_PORT_EDGES_MAX);
        edge->sender = stage;
        if (!at->link) {
            edge->local = (rp_port_local){.port = edge->port, .source = edge->source};
        }
        edge->out = options.edge_count++;
        options.edge[edge->out] = (rp_port_edge){at->link ? send_over_link : rp_port_local_send,
                                                 at->link ? (void *)edge : (void *)&edge->local};
        options.slot_count = at->window > options.slot_count ? at->window : options.slot_count;
    }
    options.form.is_sum = is_row(carries) && carries != RP_KIND_WEIGHT_GRADIENT;
    if (carries == RP_KIND_TIED_GRADIENT) {
        stage->sends_row = options.edge_count > 0;
    }
    if (carries == RP_KIND_WEIGHT_GRADIENT && stage->summands) {
        stage->own_summand.port = stage->summands;
        options.form.is_sum = true;
        options.slot_count = 1; /* the next step's comes long after */
        RP_ASSERT(options.edge_count < RP_PORT_EDGES_MAX);
        stage->own_edge = options.edge_count++;
        options.edge[stage->own_edge] = (rp_port_edge){rp_port_local_send, &stage->own_summand};
    }
    RP_TRY(rp_port_out_open(r->arena, &options, out));
fail:
    return err;
}

/* Finds the links that bring anything, each once. */
static void find_sources(rp_runner *r) {
    for (uint32_t e = 0; e < r->at.edge_count; e++) {
        const rp_runner_edge *at = &r->at.edge[e];
        uint32_t s = 0;
        while (s < r->source_count && r->source[s].link != at->link) {
            s++;
        }
        const bool brings = at->link && (!at->outgoing || r->at.take_other);
        if (brings && s == r->source_count) {
            r->source[r->source_count++].link = at->link;
        }
        r->edge[e].edge = at->edge;
        r->edge[e].carries = at->carries;
        r->edge[e].link = at->link;
        r->edge[e].stage = rp_plan_sending_stage(&r->at.plan->edge[at->edge]);
        r->edge[e].codec = r->at.plan->edge[at->edge].codec;
    }
}

rp_err rp_runner_open_edges(rp_runner *r) {
    rp_err err;
    RP_TRY(RP_ARENA_NEW(r->arena, r->at.edge_count + 1, &r->edge));
    RP_TRY(RP_ARENA_NEW(r->arena, r->at.edge_count + 1, &r->source));
    RP_TRY(RP_ARENA_NEW(r->arena, r->at.edge_count + 1, &r->transfer));
    find_sources(r);
    for (uint32_t h = 0; h < r->at.held_count; h++) {
        runner_stage *held = &r->held[h];
        RP_TRY(open_port_in(r, h, RP_KIND_ACTIVATION, "activations", held->name[0],
                            sizeof held->name[0]));
        RP_TRY(
            open_port_in(r, h, RP_KIND_GRADIENT, "gradients", held->name[1], sizeof held->name[1]));
        RP_TRY(open_port_in(r, h, RP_KIND_LABEL, "labels", held->name[2], sizeof held->name[2]));
        RP_TRY(open_port_in(r, h, RP_KIND_WEIGHT_GRADIENT, "weight gradients", held->name[3],
                            sizeof held->name[3]));
        RP_TRY(open_port_in(r, h, RP_KIND_STASH, "stashes", held->name[4], sizeof held->name[4]));
        RP_TRY(open_port_in(r, h, RP_KIND_WEIGHT, "weights", held->name[5], sizeof held->name[5]));
    }
    for (uint32_t e = 0; e < r->at.edge_count; e++) {
        const rp_runner_edge *at = &r->at.edge[e];
        rp_port_in *const *port = port_of(&r->held[at->taker], at->carries);
        if (port && (!at->outgoing || !at->link)) {
            r->edge[e].port = *port;
        }
    }
    RP_TRY(rp_runner_open_rows(r));
    for (uint32_t h = 0; h < r->at.held_count; h++) {
        RP_TRY(open_port_out(r, h, RP_KIND_ACTIVATION, &r->held[h].forward));
        RP_TRY(open_port_out(r, h, RP_KIND_GRADIENT, &r->held[h].backward));
        RP_TRY(open_port_out(r, h, RP_KIND_WEIGHT_GRADIENT, &r->held[h].summand));
        RP_TRY(open_port_out(r, h, RP_KIND_STASH, &r->held[h].stash));
        RP_TRY(open_port_out(r, h, RP_KIND_WEIGHT, &r->held[h].weight));
        RP_TRY(open_port_out(r, h, RP_KIND_TIED_GRADIENT, &r->held[h].row));
        RP_TRY(open_port_out(r, h, RP_KIND_TIED_WEIGHT, &r->held[h].values));
    }
fail:
    return err;
}

void rp_runner_close_edges(rp_runner *r) {
    for (uint32_t h = 0; h < r->at.held_count; h++) {
        rp_port_in_close(&r->held[h].in);
        rp_port_in_close(&r->held[h].gradient);
        rp_port_in_close(&r->held[h].label);
        rp_port_in_close(&r->held[h].summands);
        rp_port_in_close(&r->held[h].stashes);
        rp_port_in_close(&r->held[h].weights);
    }
    rp_runner_close_rows(r);
    for (uint32_t s = 0; s < r->source_count; s++) {
        if (r->source[s].head) {
            rp_link_release(r->source[s].link, &r->source[s].head);
        }
    }
}

void rp_runner_begin_edges(rp_runner *r) {
    for (uint32_t h = 0; h < r->at.held_count; h++) {
        rp_port_in *const port[] = {r->held[h].in,       r->held[h].gradient, r->held[h].label,
                                    r->held[h].summands, r->held[h].stashes,  r->held[h].weights};
        for (uint32_t p = 0; p < sizeof port / sizeof *port; p++) {
            if (port[p]) {
                rp_port_in_begin(port[p]);
            }
        }
    }
    rp_runner_begin_rows(r);
}

const runner_edge *rp_runner_edge_of(const rp_runner *r, const rp_transfer *transfer) {
    uint32_t e = 0;
    while (e < r->at.edge_count && r->edge[e].edge != transfer->edge) {
        e++;
    }
    RP_ASSERT(e < r->at.edge_count);
    return &r->edge[e];
}

/* ---- messages -------------------------------------------------------------------------------- */

static runner_edge *edge_of(rp_runner *r, const rp_link *link, rp_kind carries, uint32_t stage) {
    for (uint32_t e = 0; e < r->at.edge_count; e++) {
        runner_edge *edge = &r->edge[e];
        if (edge->port && edge->link == link && edge->carries == carries && edge->stage == stage) {
            return edge;
        }
    }
    return NULL;
}

static bool is_other(const rp_runner *r, const runner_source *source) {
    return r->at.take_other && !rp_frame_is_data(&source->head->frame);
}

static rp_err take_other(rp_runner *r, runner_source *source) {
    rp_err err = r->at.take_other(r->at.context, source->link, source->head);
    if (err == RP_OK) {
        rp_link_release(source->link, &source->head);
    }
    return err;
}

/* errors  AGAIN: the port has no room */
static rp_err deliver_parcel(rp_runner *r, const runner_source *source) {
    const rp_kind kind = rp_frame_kind(&source->head->frame);
    if (!rp_frame_is_data(&source->head->frame)) {
        return rp_fail(RP_ERR_PEER, "received %s over a data link; expected only tensors",
                       rp_kind_name(kind));
    }
    const rp_Parcel *body = rp_frame_parcel(&source->head->frame);
    const runner_edge *edge = edge_of(r, source->link, kind, body->stage);
    if (!edge) {
        return rp_fail(RP_ERR_PEER,
                       "received %s of stage %u, which no edge of the plan brings to this board",
                       rp_kind_name(kind), body->stage);
    }
    if (body->codec != edge->codec) {
        return rp_fail(RP_ERR_PEER, "received %s of stage %u in codec %s (%u), the plan says %s",
                       rp_kind_name(kind), body->stage, rp_codec_name((rp_codec)body->codec),
                       body->codec, rp_codec_name(edge->codec));
    }
    rp_parcel parcel = {.step = body->step,
                        .samples = {body->first, body->count},
                        .evaluating = body->evaluation,
                        .time = body->time,
                        .source = edge->source,
                        .part_count = source->head->part_count,
                        .release = free_part,
                        .owner = source->link,
                        .memory = source->head};
    for (uint32_t i = 0; i < parcel.part_count; i++) {
        parcel.part[i] = source->head->part[i];
    }
    return rp_port_in_push(edge->port, &parcel);
}

rp_err rp_runner_receive(rp_runner *r) {
    for (uint32_t s = 0; s < r->source_count; s++) {
        runner_source *source = &r->source[s];
        rp_err err = RP_OK;
        while (err == RP_OK) {
            err = source->head ? RP_OK : rp_link_recv(source->link, &source->head);
            if (err == RP_OK) {
                err = is_other(r, source) ? take_other(r, source) : deliver_parcel(r, source);
            }
            if (err == RP_OK) {
                source->head = NULL;
            }
        }
        if (err != RP_ERR_AGAIN) {
            return err;
        }
    }
    return RP_OK;
}

rp_err rp_runner_send(rp_runner *r) {
    rp_err err = RP_OK;
    for (uint32_t h = 0; h < r->at.held_count; h++) {
        RP_TRY(rp_port_out_send(r->held[h].forward));
        RP_TRY(rp_port_out_send(r->held[h].backward));
        RP_TRY(rp_port_out_send(r->held[h].summand));
        RP_TRY(rp_port_out_send(r->held[h].stash));
        RP_TRY(rp_port_out_send(r->held[h].weight));
        RP_TRY(rp_port_out_send(r->held[h].row));
        RP_TRY(rp_port_out_send(r->held[h].values));
    }
fail:
    return err;
}

bool rp_runner_is_quiet(const rp_runner *r) {
    bool quiet = true;
    for (uint32_t h = 0; h < r->at.held_count; h++) {
        quiet = quiet && rp_port_out_is_quiet(r->held[h].forward) &&
                rp_port_out_is_quiet(r->held[h].backward) &&
                rp_port_out_is_quiet(r->held[h].summand) &&
                rp_port_out_is_quiet(r->held[h].stash) && rp_port_out_is_quiet(r->held[h].weight) &&
                rp_port_out_is_quiet(r->held[h].row) && rp_port_out_is_quiet(r->held[h].values);
    }
    return quiet;
}
