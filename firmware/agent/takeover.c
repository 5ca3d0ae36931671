/* A host that has gone is replaced by a new one, in a higher term: the stages keep their state,
 * and the new host is told what that is. */
#include "agent/agent_own.h"

/* A run that has not trained anything is not worth keeping: the host has the same state, and a
 * board may have been lost while it was being loaded. */
bool rp_agent_may_hold(const rp_agent *agent, rp_run_identity run) {
    const bool is_complete = rp_agent_has_complete_run(agent) || agent->state == RP_AGENT_ORPHAN;
    return is_complete && agent->run->has_started && agent->run->identity.id == run.id;
}

/* An orphan continues where it stopped, with what has arrived meanwhile. A save that the previous
 * host had requested is dropped. */
void rp_agent_hold(rp_agent *agent, uint32_t term, bool stop) {
    agent_run *run = agent->run;
    const bool is_over = rp_runner_place_of(run->runner).paused;
    run->identity.term = term;
    rp_link_set_run(agent->control, run->identity);
    run->is_stopped = stop && !is_over;
    run->copy = NULL;
    run->record_bytes = 0;
    if (!stop && !is_over && agent->state != RP_AGENT_RUNNING) {
        rp_agent_begin_watching(agent);
    }
    agent->state = stop || is_over ? RP_AGENT_PAUSED : RP_AGENT_RUNNING;
}

size_t rp_agent_saved_in_flight(const agent_run *run) {
    return run->is_stopped ? 0 : rp_runner_in_flight_bytes(run->runner);
}

static uint32_t list_applied(const agent_run *run,
                             uint64_t applied[RP_RUNNER_STAGES_MAX * RP_REPLICAS_MAX]) {
    uint32_t count = 0;
    for (uint32_t h = 0; h < run->held_count; h++) {
        rp_stage *stage = run->held[h].stage;
        for (uint32_t r = 0; r < rp_stage_replicas(stage); r++) {
            applied[count++] = rp_stage_applied(stage, r);
        }
    }
    return count;
}

rp_part rp_agent_applied(const agent_run *run,
                         uint64_t applied[RP_RUNNER_STAGES_MAX * RP_REPLICAS_MAX]) {
    return rp_part_of_array(RP_DTYPE_U64, applied, list_applied(run, applied));
}

rp_err rp_agent_tell_held(rp_agent *agent, bool stopped) {
    agent_run *run = agent->run;
    const rp_runner_place place = rp_runner_place_of(run->runner);
    uint64_t applied[RP_RUNNER_STAGES_MAX * RP_REPLICAS_MAX];
    rp_run_ledger ledger = {0};
    rp_Frame frame = {.which_body = RP_KIND_HELD,
                      .body.held = {.step = place.step,
                                    .plan = rp_plan_digest(run->plan),
                                    .node = run->node,
                                    .ops = place.ops,
                                    .settled = place.settled,
                                    .paused = place.paused,
                                    .clean = place.clean,
                                    .stopped = stopped,
                                    .in_flight_bytes = rp_agent_saved_in_flight(run),
                                    .fill_step = rp_runner_fill_step(run->runner),
                                    .waits = place.waits,
                                    .decided_end = place.decided_end,
                                    .scale = (double)place.scale,
                                    .skip = place.skip}};
    rp_Held *held = &frame.body.held;
    rp_part part[2] = {rp_agent_applied(run, applied)};
    uint64_t(*told)[2] = (uint64_t(*)[2])(void *)run->piece;
    if (rp_runner_ledger(run->runner, &ledger) == RP_OK) { /* otherwise its stages differ */
        held->ledger = ledger.digest;
    }
    const uint32_t steps = stopped ? rp_runner_told(run->runner, &held->told_first, told) : 0;
    part[1] = rp_part_of_array(RP_DTYPE_U64, told, 2 * (size_t)steps);
    return rp_agent_answer(agent, &frame, part, steps > 0 ? 2 : 1);
}
