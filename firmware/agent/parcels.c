#include "agent/parcels.h"

#include <inttypes.h>

#include "agent/connect.h"
#include "nn/ties.h"

static uint64_t gradient_bytes(const rp_job *job, uint32_t stage) {
    const uint32_t *first = job->cut.first;
    return rp_model_param_count(job->model, RP_PARAM_TRAINED, first[stage], first[stage + 1]) *
           sizeof(float);
}

/* One full parcel. */
static uint64_t parcel_bytes(const rp_plan *plan, const rp_plan_edge *edge, const rp_job *job) {
    const uint64_t width = job->target_width;
    if (edge->carries == RP_CARRIES_LABEL) {
        return width * job->batch * sizeof(float);
    }
    if (edge->carries == RP_CARRIES_WEIGHT_GRADIENT || edge->carries == RP_CARRIES_WEIGHT) {
        return gradient_bytes(job, edge->stage);
    }
    if (edge->carries == RP_CARRIES_TIED_GRADIENT || edge->carries == RP_CARRIES_TIED_WEIGHT) {
        return rp_ties_row_bytes(job->model, &job->cut, edge->stage);
    }
    return rp_plan_sample_bytes(edge, job->model) * rp_plan_parcel_samples(plan, edge);
}

static bool edge_arrives(const rp_plan_edge *edge, uint32_t node) {
    /* parcels that stay on the node wait in the slots of their sender */
    return edge->to == node && edge->from != node;
}

typedef struct {
    const rp_plan *plan;
    const rp_job *job;
    uint32_t node, count;
    const uint32_t *index; /* its edges */
} edges_of_node;

/* Whether it is the first edge with the largest parcels among those that arrive over its link. */
static bool is_largest_of_link(const edges_of_node *of, uint32_t at) {
    const rp_plan_edge *own = &of->plan->edge[of->index[at]];
    const uint64_t bytes = parcel_bytes(of->plan, own, of->job);
    bool largest = edge_arrives(own, of->node);
    for (uint32_t i = 0; largest && i < of->count; i++) {
        const rp_plan_edge *edge = &of->plan->edge[of->index[i]];
        if (i != at && edge_arrives(edge, of->node) && edge->from == own->from) {
            const uint64_t other = parcel_bytes(of->plan, edge, of->job);
            largest = other < bytes || (other == bytes && i > at);
        }
    }
    return largest;
}

rp_parcel_memory rp_parcel_memory_of(const rp_plan *plan, uint32_t node, const rp_job *job) {
    rp_parcel_memory out = {0};
    edges_of_node of = {.plan = plan, .job = job, .node = node};
    of.index = rp_plan_node_edges(plan, node, &of.count);
    for (uint32_t i = 0; i < of.count; i++) {
        const rp_plan_edge *edge = &plan->edge[of.index[i]];
        const uint32_t slack = is_largest_of_link(&of, i) ? RP_PLAN_LINK_SLACK : 0;
        const uint64_t bytes = (edge->window + slack) * parcel_bytes(plan, edge, job);
        out.bytes += bytes;
        if (bytes > out.edge_bytes) {
            out.edge_bytes = bytes;
            out.edge_parcels = edge->window + slack;
            out.edge = of.index[i];
        }
    }
    return out;
}

rp_err rp_parcel_memory_check(const rp_plan *plan, uint32_t node, const rp_parcel_memory *parcels,
                              const rp_parcel_room *room) {
    const double mib = 1.0 / (1 << 20);
    const uint64_t needs = room->stage_bytes + parcels->bytes;
    if (needs <= room->limit_bytes) {
        return RP_OK;
    }
    const rp_plan_edge *most = &plan->edge[parcels->edge];
    const uint32_t far = rp_plan_far_end(most, node);
    return rp_fail(
        RP_ERR_LIMIT,
        "needs %.1f MiB of %smemory, but the limit is %.1f (the board's memory_fraction): its %s "
        "need %.1f, and parcels on its links %.1f; most of that, %.1f, is for %" PRIu32
        " parcels with %ss %s %s%s. Use smaller microbatches, a codec (links.codec), or less "
        "advance",
        (double)needs * mib, room->apart ? "its processor's " : "", (double)room->limit_bytes * mib,
        room->apart ? "offloaded stashes" : "stages", (double)room->stage_bytes * mib,
        (double)parcels->bytes * mib, (double)parcels->edge_bytes * mib, parcels->edge_parcels,
        rp_carries_name(most->carries), most->to == node ? "from" : "to",
        far == RP_PLAN_HOST ? "the " : "board ", rp_plan_node_name(plan, far));
}
