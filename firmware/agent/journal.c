/* Log lines for the operator of a board, at the beginning and end of things, none for a step. Only
 * if the options ask for them, because for many agents in one process they would be noise. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "agent/agent_own.h"
#include "base/log.h"

enum { RUN_TEXT = 48, STAGES_TEXT = 240 };

/* As identity.json in the host's run folder has it. */
static void name_run(rp_run_identity identity, char out[RUN_TEXT]) {
    (void)snprintf(out, RUN_TEXT, "run %016" PRIx64 ", term %" PRIu32, identity.id, identity.term);
}

/* "stage 1: conv2 to relu2 (5 layers)"; of many stages as many as fit. */
static void name_stages(const agent_run *run, char out[STAGES_TEXT]) {
    out[0] = '\0';
    for (uint32_t h = 0; h < run->held_count; h++) {
        const rp_job *job = &run->held[h].job;
        const uint32_t first = job->cut.first[job->stage];
        const uint32_t end = job->cut.first[job->stage + 1];
        const size_t used = strlen(out);
        (void)snprintf(out + used, STAGES_TEXT - used, "%sstage %u: %s to %s (%u layers)",
                       h ? "; " : "", job->stage, job->model->layer[first].name,
                       job->model->layer[end - 1].name, end - first);
    }
}

static double seconds_of(const rp_agent *agent) {
    return (double)(rp_clock_now_ns(agent->clock) - agent->run->build_start_ns) * 1e-9;
}

void rp_agent_note_host(const rp_agent *agent) {
    if (agent->options.journal) {
        rp_log_info("a host (ringpipe %s) says hello", agent->host_software);
    }
}

void rp_agent_note_ready(const rp_agent *agent, uint64_t device_bytes) {
    const agent_run *run = agent->run;
    char name[RUN_TEXT];
    char stages[STAGES_TEXT];
    if (!agent->options.journal) {
        return;
    }
    name_run(run->identity, name);
    name_stages(run, stages);
    rp_log_info("%s: board %s, %u of %u; %s; %.1f MiB of device memory, built in %.1f s", name,
                rp_plan_node_name(run->plan, run->node), run->node + 1, run->plan->node_count,
                stages, (double)device_bytes / (1 << 20), seconds_of(agent));
}

void rp_agent_note_start(rp_agent *agent, uint64_t step) {
    char name[RUN_TEXT];
    if (agent->options.journal && !agent->run->has_started) {
        name_run(agent->run->identity, name);
        rp_log_info("%s: trains from step %" PRIu64 " on", name, step);
    }
    agent->run->has_started = true;
}

void rp_agent_note_neighbours(rp_agent *agent) {
    agent_run *run = agent->run;
    for (uint32_t i = 0; agent->options.journal && i < run->neighbour_count; i++) {
        agent_neighbour *at = &run->neighbour[i];
        if (at->link && !at->is_known && rp_link_health_of(at->link).last_heard_ns) {
            at->is_known = true;
            rp_log_info("board %s is connected", rp_plan_node_name(run->plan, at->node));
        }
    }
}

void rp_agent_note_end(const rp_agent *agent, bool builds, const char *why) {
    const agent_run *run = agent->run;
    char name[RUN_TEXT];
    if (!agent->options.journal) {
        return;
    }
    name_run(run->identity, name);
    if (builds) { /* the rest belongs to the builder */
        rp_log_info("%s ends while it is built: %s", name, why);
        return;
    }
    if (run->layer_seconds) {
        rp_log_info("%s: a profile of %u layers ends after %.1f s: %s", name,
                    run->held[0].job.model->layer_count, seconds_of(agent), why);
        return;
    }
    const uint64_t microbatches =
        run->runner ? rp_runner_facts_of(run->runner).microbatches : (uint64_t)0;
    rp_log_info("%s ends after %.1f s and %" PRIu64 " microbatches: %s", name, seconds_of(agent),
                microbatches, why);
}
