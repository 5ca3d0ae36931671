/* Reports to the host while a board builds, so that its user sees what the run waits for. */
#include "agent/agent_own.h"
#include "device/ready.h"

static const int64_t TELL_EVERY_NS = 200 * RP_NS_PER_MS;

static bool is_due(const rp_agent *agent, bool last) {
    const int64_t since_ns = rp_clock_now_ns(agent->clock) - agent->building_told_ns;
    rp_link_stats stats;
    const bool builds = agent->state == RP_AGENT_BUILDING || agent->state == RP_AGENT_WARMING;
    if (!agent->device || agent->abandoned || !builds ||
        !(agent->host_features & RP_WIRE_FEATURE_BUILDING)) {
        return false;
    }
    rp_link_stats_of(agent->control, &stats);
    return last || (rp_agent_builds(agent) && since_ns >= TELL_EVERY_NS &&
                    stats.unacked < RP_LINK_CONTROL_MAX / 2);
}

void rp_agent_tell_building(rp_agent *agent, bool last) {
    if (is_due(agent, last)) {
        const rp_build_count count = rp_device_build_count(agent->device);
        const rp_build_parts parts = rp_device_builder_parts(agent->builder);
        rp_Frame frame = {.which_body = RP_KIND_BUILDING,
                          .body.building = {.kernels = count.kernels,
                                            .ready = count.ready,
                                            .built = count.built,
                                            .build_ns = count.build_ns,
                                            .read_ns = count.read_ns,
                                            .layers = parts.parts,
                                            .layers_timed = parts.done}};
        if (rp_agent_answer(agent, &frame, NULL, 0) == RP_OK) {
            agent->building_told_ns = rp_clock_now_ns(agent->clock);
        }
    }
    if (last && agent->device) {
        rp_device_count_anew(agent->device);
    }
}
