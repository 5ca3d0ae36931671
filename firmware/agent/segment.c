/* Segments: from START or EVALUATE to FINISHED. */
#include <inttypes.h>

#include "agent/agent_own.h"

static const int64_t SENSORS_NS = RP_NS_PER_S; /* time from one reading to the next */

/* ---- messages -------------------------------------------------------------------------------- */

/* Energy counts from the first segment of an assignment on. */
static void begin_energy(rp_agent *agent) {
    if (agent->options.reports_energy && !agent->run->counts_energy) {
        agent->run->counts_energy = true;
        agent->sensors = (rp_Trace){0};
        rp_energy_begin(&agent->energy, rp_clock_now_ns(agent->clock));
    }
}

/* For the next report. `least_ns`: age of the last reading from which on it is read again. */
static void read_sensors(rp_agent *agent, int64_t least_ns) {
    const int64_t now_ns = rp_clock_now_ns(agent->clock);
    if (agent->run->counts_energy && now_ns - agent->energy.read_ns >= least_ns) {
        rp_energy_read(&agent->energy, now_ns);
        agent->sensors = (rp_Trace){.heat_c = (float)rp_sensors_heat(rp_agent_system_root(agent)),
                                    .power_w = (float)agent->energy.watts,
                                    .energy_j = agent->energy.joules};
    }
}

/* Starts watching neighbours, which may be silent outside a segment. */
static void begin_running(rp_agent *agent) {
    agent_run *run = agent->run;
    agent->state = RP_AGENT_RUNNING;
    begin_energy(agent);
    rp_arena_seal(&run->arena); /* the in-flight state has been restored */
    rp_agent_begin_watching(agent);
    rp_agent_begin_lines(run);
    for (uint32_t i = 0; i < run->neighbour_count; i++) {
        rp_link_begin_use(run->neighbour[i].link);
    }
}

rp_err rp_agent_on_start(rp_agent *agent, const rp_message *message) {
    const rp_Start *start = &message->frame.body.start;
    const agent_run *run = agent->run;
    rp_err err = RP_OK;
    begin_running(agent);
    rp_agent_note_start(agent, start->step_first);
    for (uint32_t h = 0; start->verify && start->pause > 0 && h < run->held_count; h++) {
        const bool both = run->held[h].job.role == RP_ROLE_BOTH; /* other roles are not asked */
        RP_TRY(
            both ? rp_stage_record_begin(run->held[h].stage, start->pause - 1, start->verify_micro)
                 : RP_OK);
    }
    rp_runner_begin_account(agent->run->runner, start->ledger);
    RP_TRY(rp_runner_train(run->runner, start->step_first, start->pause, start->drain));
fail:
    return err;
}

rp_err rp_agent_on_evaluate(rp_agent *agent, const rp_message *message) {
    begin_running(agent);
    return rp_runner_evaluate(agent->run->runner, &message->frame.body.evaluate);
}

/* A STOP that arrives after its segment is ignored. */
rp_err rp_agent_on_stop(rp_agent *agent, const rp_message *message) {
    return rp_runner_stop(agent->run->runner, message->frame.body.stop.step);
}

rp_err rp_agent_on_step_decision(rp_agent *agent, const rp_message *message) {
    const rp_StepDecision *decision = &message->frame.body.step_decision;
    return rp_runner_decide_step(agent->run->runner, decision->step, (float)decision->scale,
                                 decision->skip);
}

/* Reports the codec losses of the stages here in the segment. */
static rp_err report_losses(const agent_run *run, rp_Finished *report) {
    rp_err err = RP_OK;
    for (uint32_t h = 0; h < run->held_count; h++) {
        rp_codec_loss loss[2];
        RP_TRY(rp_stage_take_losses(run->held[h].stage, loss));
        for (uint32_t gradients = 0; gradients < 2; gradients++) {
            if (loss[gradients].all > 0) {
                report->loss[report->loss_count++] = (rp_CodecLoss){.stage = run->held[h].job.stage,
                                                                    .gradients = gradients > 0,
                                                                    .lost = loss[gradients].lost,
                                                                    .all = loss[gradients].all};
            }
        }
    }
fail:
    return err;
}

/* ---- rounds ---------------------------------------------------------------------------------- */

static rp_err finish_segment(rp_agent *agent) {
    agent_run *run = agent->run;
    rp_runner_facts facts = rp_runner_facts_of(run->runner);
    rp_run_ledger ledger;
    const rp_err told = rp_runner_ledger(run->runner, &ledger);
    if (told != RP_OK) {
        return told;
    }
    read_sensors(agent, 1);
    rp_Frame frame = {
        .which_body = RP_KIND_FINISHED,
        .body.finished = {.busy_ns = facts.busy_ns,
                          .microbatches = facts.microbatches,
                          .in_flight_max = facts.in_flight_max,
                          .device_bytes_max =
                              agent->device ? rp_device_used_bytes_max(agent->device) : 0,
                          .in_flight_bytes = rp_runner_in_flight_bytes(run->runner),
                          .energy_j = agent->sensors.energy_j,
                          .ledger = ledger.digest,
                          .ledger_samples = ledger.samples}};
    for (uint32_t h = 0; h < run->held_count; h++) {
        const uint32_t staleness = rp_stage_staleness_max(run->held[h].stage);
        uint32_t *most = &frame.body.finished.staleness_max;
        *most = staleness > *most ? staleness : *most;
        frame.body.finished.flash_bytes += rp_stage_facts(run->held[h].stage).flash_bytes;
    }
    rp_agent_report_links(agent, &frame.body.finished);
    const rp_err lost = report_losses(run, &frame.body.finished);
    if (lost != RP_OK) {
        return lost;
    }
    uint64_t applied[RP_RUNNER_STAGES_MAX * RP_REPLICAS_MAX];
    const rp_part part = rp_agent_applied(run, applied);
    agent->state = RP_AGENT_PAUSED;
    return rp_agent_answer(agent, &frame, &part, 1);
}

rp_err rp_agent_run_round(rp_agent *agent) {
    agent_run *run = agent->run;
    rp_err err;
    RP_TRY(rp_agent_step_links(agent));
    read_sensors(agent, SENSORS_NS);
    if (agent->state == RP_AGENT_RUNNING) {
        bool active;
        RP_TRY(rp_runner_step(run->runner, &active));
        RP_TRY(active ? rp_agent_tell_waiting(agent) : RP_OK);
        if (!active) {
            RP_TRY(finish_segment(agent));
        }
    }
    if (agent->state == RP_AGENT_SAVING) {
        RP_TRY(run->record_bytes ? rp_agent_continue_record(agent) : rp_agent_continue_save(agent));
    }
    RP_TRY(run->copy_step > 0 ? rp_agent_step_copies(agent) : RP_OK);
fail:
    return err;
}
