/* One run of an agent: its answers, its end, and its memory. */
#include "agent/agent_own.h"

bool rp_agent_builds(const rp_agent *agent) {
    return agent->builder && rp_device_builder_is_started(agent->builder);
}

bool rp_agent_has_complete_run(const rp_agent *agent) {
    switch (agent->state) {
    case RP_AGENT_READY:
    case RP_AGENT_RUNNING:
    case RP_AGENT_PAUSED:
    case RP_AGENT_SAVING:
        return true;
    default:
        return false;
    }
}

rp_err rp_agent_answer(rp_agent *agent, rp_Frame *frame, const rp_part *parts, uint32_t count) {
    frame->run_id = agent->run->identity.id;
    frame->term = agent->run->identity.term;
    return rp_link_send(agent->control, frame, parts, count, true, NULL, NULL);
}

void rp_agent_end_recompute(agent_run *run) {
    rp_stage_destroy(&run->recompute.stage);
    rp_arena_finish(&run->recompute.arena);
    run->recompute = (agent_recompute){0};
}

void rp_agent_free_run(agent_run *run) {
    rp_runner_close(&run->runner);
    rp_agent_end_recompute(run);
    for (uint32_t h = 0; h < run->held_count; h++) {
        rp_stage_destroy(&run->held[h].stage);
    }
    rp_links_close(&run->links);
    rp_agent_end_reading(&run->reading);
    rp_arena_finish(&run->arena);
    *run = (agent_run){0};
}

void rp_agent_end_run(rp_agent *agent, const char *why) {
    const rp_link_profile none = {0};
    if (agent->state == RP_AGENT_HELLO) {
        return;
    }
    const bool builds = rp_agent_builds(agent);
    rp_agent_note_end(agent, builds, why);
    agent->ended = agent->run->identity;
    agent->hung = rp_agent_device_hangs(agent);
    if (builds || agent->hung) { /* still in use, so it is freed later */
        if (builds) {
            rp_device_builder_cancel(agent->builder);
        }
        agent->abandoned = agent->run;
        agent->run = &agent->runs[agent->run == &agent->runs[0]];
    } else {
        rp_agent_free_run(agent->run);
    }
    agent->state = RP_AGENT_HELLO;
    rp_link_set_run(agent->control, (rp_run_identity){0});
    rp_err err = rp_link_emulate(agent->control, &none);
    RP_ASSERT(err == RP_OK); /* cannot fail: only a line needs memory */
}
