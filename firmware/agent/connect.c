/* The edges of a row of stages. */
#include "agent/runner.h"

static uint32_t node_count(const rp_job *job) {
    return job->cut.stage_count / job->method.chunks;
}

static void add_edge(rp_runner_options *options, rp_runner_edge edge) {
    RP_ASSERT(options->edge_count < RP_RUNNER_EDGES_MAX);
    edge.share[1] = 1;
    edge.window = edge.outgoing ? RP_RUNNER_SLOTS : options->window;
    options->edge[options->edge_count++] = edge;
}

/* Between stage `held` and the one in front of it on another node. */
static void add_lower(rp_runner_options *options, uint32_t held, rp_link *in) {
    const uint32_t stage = options->held[held].job->stage;
    add_edge(options,
             (rp_runner_edge){
                 .carries = RP_KIND_ACTIVATION, .held = held, .link = in, .far_stage = stage - 1});
    add_edge(options, (rp_runner_edge){
                          .carries = RP_KIND_GRADIENT, .held = held, .link = in, .outgoing = true});
}

/* And the one behind it. */
static void add_upper(rp_runner_options *options, uint32_t held, rp_link *out) {
    const uint32_t stage = options->held[held].job->stage;
    add_edge(options,
             (rp_runner_edge){
                 .carries = RP_KIND_ACTIVATION, .held = held, .link = out, .outgoing = true});
    add_edge(options,
             (rp_runner_edge){
                 .carries = RP_KIND_GRADIENT, .held = held, .link = out, .far_stage = stage + 1});
}

/* Between stage `held` and the next one, both here. */
static void add_local(rp_runner_options *options, uint32_t held) {
    add_edge(options, (rp_runner_edge){.carries = RP_KIND_ACTIVATION,
                                       .held = held,
                                       .far_held = held + 1,
                                       .outgoing = true});
    add_edge(options, (rp_runner_edge){.carries = RP_KIND_GRADIENT,
                                       .held = held + 1,
                                       .far_held = held,
                                       .outgoing = true});
}

void rp_runner_connect(rp_runner_options *options, rp_link *in, rp_link *out, rp_link *feed) {
    for (uint32_t h = 0; h < options->held_count; h++) {
        const rp_job *job = options->held[h].job;
        const bool first = job->stage == 0;
        const bool last = rp_job_is_last(job);
        if (first && feed) {
            add_edge(options, (rp_runner_edge){.carries = RP_KIND_INPUT, .held = h, .link = feed});
        }
        if (last && feed) {
            add_edge(options, (rp_runner_edge){.carries = RP_KIND_LABEL, .held = h, .link = feed});
        }
        if (!first && in) {
            add_lower(options, h, in);
        }
        if (!last && out) {
            add_upper(options, h, out);
        }
        if (!last && node_count(job) == 1) {
            add_local(options, h);
        }
    }
}
