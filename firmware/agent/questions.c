/* Questions of hosts, in any state: the board's condition, its log lines; and the order to reboot.
 * They arrive outside the control link's stream (link/link.h), so that a run is not disturbed, and
 * are answered at once, from memory or a few small files. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/agent_own.h"
#include "base/log.h"
#include "base/log_lines.h"
#include "device/ready.h"

static const int64_t FRESH_NS = RP_NS_PER_S;        /* answers are reused for this long */
static const int64_t LEAVE_NS = 300 * RP_NS_PER_MS; /* time for the answer before the agent ends */

/* ---- condition of the board ------------------------------------------------------------------ */

static void note_run(const rp_agent *agent, rp_Condition *out) {
    const agent_run *run = agent->run;
    if (agent->state == RP_AGENT_HELLO || agent->state == RP_AGENT_WARMING) {
        return;
    }
    out->run = run->identity.id;
    out->term = run->identity.term;
    if (rp_agent_builds(agent)) {
        return; /* the rest belongs to the builder */
    }
    for (uint32_t h = 0; h < run->held_count && run->plan; h++) {
        out->stage[out->stage_count++] = run->held[h].job.stage;
    }
    out->step = run->runner ? rp_runner_place_of(run->runner).step : 0;
}

static void note_hops(const rp_agent *agent, rp_Condition *out) {
    const agent_run *run = agent->run;
    if (agent->state == RP_AGENT_HELLO || rp_agent_builds(agent)) {
        return;
    }
    for (uint32_t i = 0; i < run->neighbour_count; i++) {
        const agent_neighbour *at = &run->neighbour[i];
        rp_link_stats stats;
        if (!at->link) {
            continue;
        }
        rp_link_stats_of(at->link, &stats);
        const int64_t heard_ns = rp_clock_now_ns(agent->clock) - stats.last_heard_ns;
        out->hop[out->hop_count++] =
            (rp_HopState){.peer = at->node,
                          .there = stats.last_heard_ns > 0 && heard_ns < RP_LINK_SILENT_NS,
                          .delay_s = (float)stats.delay_ns[0] * 1e-9f,
                          .resets = stats.resets,
                          .resent = stats.resent};
    }
}

static void note_software(rp_agent *agent, rp_Condition *out) {
    const rp_agent_software *software = agent->options.software;
    rp_ab ab;
    if (!software) {
        return;
    }
    out->slot = (uint32_t)software->own;
    out->system_slots_count =
        rp_agent_note_system(agent, out->system_slots, &out->system_slot) ? 2 : 0;
    if (rp_ab_read(software->slots, &ab) == RP_OK) {
        out->has_slots = true;
        out->release = ab.version;
        out->trial_release = ab.trial_version;
        out->starts = ab.starts;
        out->former = ab.former;
        out->failed = ab.failed;
    }
}

static void note_names(const rp_agent *agent, rp_Condition *out) {
    const rp_device_facts *facts = agent->device ? rp_device_facts_of(agent->device) : NULL;
    const rp_sensors *sensors = &agent->asked.sensors;
    (void)snprintf(out->name, sizeof out->name, "%s", agent->options.name);
    (void)snprintf(out->software, sizeof out->software, "%s", RP_VERSION);
    (void)snprintf(out->board, sizeof out->board, "%s",
                   agent->options.profile ? agent->options.profile : "");
    (void)snprintf(out->device, sizeof out->device, "%.127s",
                   facts ? facts->name : agent->executor->name);
    (void)snprintf(out->driver, sizeof out->driver, "%.63s", facts ? facts->driver : "");
    (void)snprintf(out->system, sizeof out->system, "%s", sensors->system);
    (void)snprintf(out->kernel, sizeof out->kernel, "%s", sensors->kernel);
}

static void add_reading(rp_Condition *out, rp_reading what, double value) {
    if (out->reading_count < sizeof out->reading / sizeof *out->reading) {
        out->reading[out->reading_count++] = (rp_Reading){.what = (uint32_t)what, .value = value};
    }
}

static void note_readings(const rp_agent *agent, rp_Condition *out) {
    const rp_sensors *sensors = &agent->asked.sensors;
    const int64_t up_ns = rp_clock_now_ns(agent->clock) - agent->born_ns;
    for (uint32_t what = 1; what < RP_READINGS; what++) {
        if (sensors->known[what]) {
            add_reading(out, (rp_reading)what, sensors->value[what]);
        }
    }
    add_reading(out, RP_READING_AGENT_UP, (double)up_ns * 1e-9);
    const uint64_t resident = rp_agent_resident_bytes();
    if (resident > 0) {
        add_reading(out, RP_READING_RESIDENT, (double)resident);
    }
    if (agent->device && rp_agent_builds(agent)) {
        const rp_build_count count = rp_device_build_count(agent->device);
        add_reading(out, RP_READING_KERNELS, (double)count.kernels);
        add_reading(out, RP_READING_KERNELS_READY, (double)count.ready);
        rp_device_building(agent->device, out->building, sizeof out->building);
    }
    if (agent->state == RP_AGENT_WARMING) {
        add_reading(out, RP_READING_WARM_LEFT, (double)rp_agent_warm_left_ns(agent) * 1e-9);
    }
}

/* Caches the readings, because some boards read their sensors over a slow bus. */
static void refresh_condition(rp_agent *agent) {
    const int64_t now_ns = rp_clock_now_ns(agent->clock);
    if (agent->asked.read_ns == 0 || now_ns - agent->asked.read_ns > FRESH_NS) {
        const rp_agent_options *options = &agent->options;
        agent->asked.read_ns = now_ns;
        rp_sensors_read(rp_agent_system_root(agent), options->folder, &agent->asked.sensors);
        agent->asked.condition = (rp_Condition){0};
        note_names(agent, &agent->asked.condition);
        note_software(agent, &agent->asked.condition);
    }
}

static void tell_condition(rp_agent *agent, const rp_Ask *ask, rp_Frame *out) {
    rp_link_stats stats;
    refresh_condition(agent);
    out->which_body = RP_KIND_CONDITION;
    rp_Condition *condition = &out->body.condition;
    *condition = agent->asked.condition;
    rp_link_stats_of(agent->control, &stats);
    condition->id = ask->id;
    condition->life = agent->options.life;
    condition->state = (uint32_t)agent->state;
    condition->wire_min = RP_WIRE_MIN;
    condition->wire_max = RP_WIRE_MAX;
    condition->may_reboot = agent->options.may_reboot;
    condition->hosts = stats.resets;
    note_run(agent, condition);
    note_hops(agent, condition);
    note_readings(agent, condition);
}

/* ---- log lines ------------------------------------------------------------------------------- */

static void tell_lines(const rp_agent *agent, const rp_Ask *ask, rp_Frame *out) {
    const int level = ask->level < RP_LOG_DEBUG ? (int)ask->level : (int)RP_LOG_DEBUG;
    rp_log_line line;
    out->which_body = RP_KIND_LINES;
    rp_Lines *lines = &out->body.lines;
    const pb_size_t most = sizeof lines->text / sizeof *lines->text;
    const uint64_t error = rp_log_newest_error();
    lines->id = ask->id;
    lines->life = agent->options.life;
    lines->end = lines->next = rp_log_lines_end();
    lines->fault = error > 0 ? error + 1 : 0;
    uint64_t at = ask->first > 0 ? ask->first : rp_log_lines_begin(ask->count, level);
    while (lines->number_count < most && rp_log_line_from(at, level, &line)) {
        const pb_size_t i = lines->number_count++;
        lines->number[i] = line.number;
        lines->time_ms[i] = (uint64_t)line.time_ms;
        lines->level[i] = (uint32_t)line.level;
        (void)snprintf(lines->text[i], sizeof lines->text[i], "%s", line.text);
        at = line.number + 1;
        lines->next = at;
    }
    lines->time_ms_count = lines->level_count = lines->text_count = lines->number_count;
    lines->next = rp_log_line_from(at, level, &line) ? at : lines->end;
}

/* ---- reboot ---------------------------------------------------------------------------------- */

static rp_ordered_outcome judge_order(const rp_agent *agent, const rp_Ask *ask, const char **why) {
    if (!agent->options.may_reboot) {
        *why = "no host may reboot this board, because its agent runs without `--reboot allow`";
        return RP_ORDERED_REFUSED;
    }
    *why = agent->state == RP_AGENT_WARMING
               ? "the board is building kernels; --force reboots it nevertheless"
           : agent->state != RP_AGENT_HELLO ? "the board has a run; --force reboots it nevertheless"
           : agent->push.file ? "the board is receiving a bundle; --force reboots it nevertheless"
                              : "";
    return **why && !ask->force && agent->reboot_ns == 0 ? RP_ORDERED_BUSY : RP_ORDERED_DONE;
}

static void take_order(rp_agent *agent, const rp_Ask *ask, rp_Frame *out) {
    const char *why;
    const rp_ordered_outcome outcome = judge_order(agent, ask, &why);
    out->which_body = RP_KIND_ORDERED;
    rp_Ordered *said = &out->body.ordered;
    *said = (rp_Ordered){.id = ask->id, .outcome = (uint32_t)outcome};
    if (outcome != RP_ORDERED_DONE) {
        (void)snprintf(said->text, sizeof said->text, "%s", why);
    } else if (agent->reboot_ns == 0) {
        rp_log_warn("a host has ordered this board to reboot%s",
                    ask->force ? ", even during a run" : "");
        agent->reboot_ns = rp_clock_now_ns(agent->clock);
    }
}

void rp_agent_step_reboot(rp_agent *agent) {
    if (agent->reboot_ns && rp_clock_now_ns(agent->clock) - agent->reboot_ns > LEAVE_NS) {
        agent->over = true;
    }
}

bool rp_agent_reboots(const rp_agent *agent) {
    return agent->reboot_ns != 0;
}

/* ---- the host that holds the board ----------------------------------------------------------- */

static void tell_holder(const rp_agent *agent, const rp_Ask *ask, rp_Frame *out) {
    const int64_t heard_ns = rp_link_health_of(agent->control).last_heard_ns;
    const int64_t silent_ns = rp_clock_now_ns(agent->clock) - heard_ns;
    const char *served =
        agent->options.dial ? agent->options.dial : rp_link_peers_of(agent->control).served;
    out->which_body = RP_KIND_ORDERED;
    rp_Ordered *said = &out->body.ordered;
    *said =
        (rp_Ordered){.id = ask->id, .outcome = RP_ORDERED_DONE, .state = (uint32_t)agent->state};
    if (agent->state != RP_AGENT_HELLO && agent->state != RP_AGENT_WARMING) {
        said->run = agent->run->identity.id;
        (void)snprintf(said->origin, sizeof said->origin, "%s", agent->host_origin);
    }
    if (heard_ns > 0) {
        (void)snprintf(said->address, sizeof said->address, "%.63s", served);
        said->silent_ms = silent_ns > 0 ? (uint64_t)(silent_ns / RP_NS_PER_MS) : 0;
    }
}

bool rp_agent_answer_question(void *context, const rp_Ask *ask, rp_Frame *out) {
    rp_agent *agent = context;
    switch (ask->what) {
    case RP_ASK_CONDITION:
        tell_condition(agent, ask, out);
        break;
    case RP_ASK_LINES:
        tell_lines(agent, ask, out);
        break;
    case RP_ASK_REBOOT:
        take_order(agent, ask, out);
        break;
    case RP_ASK_HOLDER:
        tell_holder(agent, ask, out);
        break;
    default:
        out->which_body = RP_KIND_ORDERED;
        out->body.ordered = (rp_Ordered){.id = ask->id, .outcome = RP_ORDERED_UNKNOWN};
    }
    return true;
}
