#include "agent/agent_own.h"

#include <inttypes.h>
#include <unistd.h>

#include "base/log.h"

static const int64_t HOST_SILENT_NS = 90 * RP_NS_PER_S;
/* Links must be stepped at least this often, and the host's silence must be noticed. */
static const int64_t ROUND_NS = 50 * RP_NS_PER_MS;
static const int64_t FIRST_WORD_NS = 600 * RP_NS_PER_S;

/* ---- opening --------------------------------------------------------------------------------- */

rp_err rp_agent_trust(rp_agent *agent, const char *const *keys, uint32_t count) {
    return agent->options.dial ? RP_OK : rp_link_allow_only(agent->control, keys, count);
}

static rp_err open_control(rp_agent *agent) {
    char endpoint[160];
    const bool dials = agent->options.dial != NULL;
    rp_link_options options = {
        .name = "control",
        .bind = dials ? NULL : endpoint,
        .connect = dials ? endpoint : NULL,
        .peer_public = dials ? agent->options.host_public : NULL,
        .window = 1,
        .send_window = 1,
        .part_bytes_max = RP_LINK_CONTROL_PART_MAX,
    };
    rp_err err;
    if (dials) {
        rp_agent_dial_text(agent, 0, endpoint, sizeof endpoint);
    } else {
        rp_agent_bind_text(agent, 0, endpoint, sizeof endpoint);
    }
    RP_TRY(rp_link_open(agent->links, &options, &agent->control));
    RP_TRY(rp_agent_trust(agent, agent->options.trusted, agent->options.trusted_count));
    rp_link_set_answer(agent->control, rp_agent_answer_question, agent);
fail:
    return err;
}

rp_err rp_agent_open(rp_arena *arena, rp_device *device, const rp_clock *clock,
                     const rp_agent_options *options, rp_agent **out) {
    rp_err err;
    rp_agent *agent;
    RP_TRY(RP_ARENA_NEW(arena, 1, &agent));
    agent->options = *options;
    agent->device = device;
    const rp_site_costs *costs = options->site.costs;
    if (costs) {
        (void)snprintf(agent->kind, sizeof agent->kind, "%s", costs->kind);
    }
    if (device) {
        rp_measure_kind(device, agent->kind, sizeof agent->kind);
    }
    agent->clock = clock;
    agent->born_ns = rp_clock_now_ns(clock);
    agent->wire = RP_WIRE_MAX;
    agent->gemm = device ? rp_device_gemm(device) : RP_GEMM_PANEL;
    agent->executor = options->executor ? options->executor : rp_executor_find("opencl");
    agent->run = &agent->runs[0];
    if (options->reports_energy) {
        rp_energy_open(&agent->energy, rp_agent_system_root(agent));
    }
    RP_TRY(rp_agent_split_endpoint(options->dial ? options->dial : options->listen, agent->host,
                                   sizeof agent->host, &agent->port));
    const rp_links_options links = {.clock = clock,
                                    .keys = &agent->options.keys,
                                    .transport = options->transport,
                                    .media = options->media,
                                    .sessions = options->sessions,
                                    .loop = options->loop};
    RP_TRY(rp_links_open(arena, &links, &agent->links));
    err = open_control(agent);
    if (err == RP_OK && device) {
        err = rp_device_builder_open(arena, device, &agent->builder);
    }
    if (err != RP_OK) {
        rp_agent_close(&agent);
        return err;
    }
    *out = agent;
fail:
    return err;
}

bool rp_agent_starts_again(const rp_agent *agent) {
    return agent->push.starts_again;
}

bool rp_agent_has_met_host(const rp_agent *agent) {
    return agent->has_met_host;
}

const char *rp_agent_endpoint(const rp_agent *agent) {
    return rp_link_endpoint(agent->control);
}

void rp_agent_close(rp_agent **agent_pointer) {
    rp_agent *agent = *agent_pointer;
    if (agent) {
        rp_agent_end_run(agent, "the agent ends");
        rp_device_builder_close(&agent->builder);
        if (agent->abandoned) {
            rp_agent_free_run(agent->abandoned);
        }
        if (agent->held) {
            rp_link_release(agent->control, &agent->held);
        }
        rp_agent_end_trial(agent);
        rp_agent_end_push(agent);
        rp_copies_drop(&agent->copies);
        rp_link_close(&agent->control);
        rp_wire_rate_end(&agent->home); /* the link may have read from its memory */
        rp_links_close(&agent->links);
        *agent_pointer = NULL;
    }
}

/* ---- rounds ---------------------------------------------------------------------------------- */

/* The host may be alive, if our clock has jumped or the line was cut, so it is told. */
static void lose_host(rp_agent *agent) {
    const bool keeps = rp_agent_has_complete_run(agent);
    const rp_err err = rp_fail(
        RP_ERR_TIMEOUT, "no message from the host for %" PRId64 " s: its run %s on this board",
        HOST_SILENT_NS / RP_NS_PER_S, keeps ? "has stopped" : "is over");
    if (!keeps) {
        rp_agent_report_fault(agent, err);
        return;
    }
    rp_agent_tell_fault(agent, err);
    agent->state = RP_AGENT_ORPHAN;
    agent->orphaned_ns = rp_clock_now_ns(agent->clock);
}

/* A silent host has crashed or is cut off. */
static void watch_host(rp_agent *agent) {
    const int64_t now_ns = rp_clock_now_ns(agent->clock);
    const int64_t last_heard_ns = rp_link_health_of(agent->control).last_heard_ns;
    if (agent->state == RP_AGENT_ORPHAN) {
        const int64_t orphan_ns = agent->run->orphan_ns;
        if (now_ns - agent->orphaned_ns >= orphan_ns) {
            rp_log_warn("no host has resumed the run within %" PRId64 " s: this board drops it",
                        orphan_ns / RP_NS_PER_S);
            rp_agent_end_run(agent, "no host has resumed it");
        }
        return;
    }
    if (last_heard_ns == 0 && !agent->options.once) {
        return; /* a board waits for its first host without a limit */
    }
    /* a host sends nothing before all its local agents are up */
    int64_t heard_ns = last_heard_ns ? last_heard_ns : agent->born_ns + FIRST_WORD_NS;
    if (now_ns - heard_ns < HOST_SILENT_NS) {
        return;
    }
    if (agent->state != RP_AGENT_HELLO) {
        lose_host(agent);
    }
    agent->over = agent->options.once;
}

/* Reports the result of a build. */
static rp_err take_build(rp_agent *agent) {
    bool is_built;
    rp_err err;
    rp_agent_tell_building(agent, false);
    RP_TRY(rp_agent_finish_build(agent, &is_built));
    if (is_built) {
        rp_agent_tell_building(agent, true);
        RP_TRY(agent->run->layer_seconds     ? rp_agent_report_profile(agent)
               : agent->run->recompute.bytes ? rp_agent_report_recomputed(agent)
                                             : rp_agent_report_ready(agent));
    }
fail:
    return err;
}

rp_err rp_agent_step(rp_agent *agent, bool *over) {
    rp_err err;
    RP_TRY(rp_link_step(agent->control));
    err = take_build(agent);
    if (err != RP_OK) {
        rp_agent_report_fault(agent, err);
    }
    RP_TRY(rp_agent_take_messages(agent));
    RP_TRY(rp_agent_step_trial(agent));
    err = rp_agent_continue_fetch(agent);
    err = err == RP_OK ? rp_agent_run_round(agent) : err;
    if (err != RP_OK) {
        rp_agent_report_fault(agent, err);
    }
    watch_host(agent);
    rp_agent_watch_warming(agent);
    rp_agent_step_push(agent);
    rp_agent_step_system(agent);
    rp_agent_step_reboot(agent);
    *over = agent->over;
    err = rp_agent_check_device(agent);
fail:
    return err;
}

enum { AGENT_LINKS = RP_PLAN_NEIGHBOURS_MAX + 3 }; /* also control, feed and trial */

static uint32_t list_links(const rp_agent *agent, rp_link *link[AGENT_LINKS]) {
    const agent_run *run = agent->run;
    uint32_t count = 0;
    link[count++] = agent->control;
    for (uint32_t i = 0; i < run->neighbour_count; i++) {
        link[count] = run->neighbour[i].link;
        count += link[count] != NULL;
    }
    link[count] = run->feed;
    count += link[count] != NULL;
    link[count] = agent->trial;
    count += link[count] != NULL;
    return count;
}

int64_t rp_agent_deadline_ns(const rp_agent *agent) {
    const int64_t now_ns = rp_clock_now_ns(agent->clock);
    const bool runs = agent->state == RP_AGENT_RUNNING;
    rp_link *link[AGENT_LINKS];
    const uint32_t count = list_links(agent, link);
    int64_t at_ns = now_ns + (runs ? rp_runner_sleep_ns(agent->run->runner, ROUND_NS) : ROUND_NS);
    for (uint32_t i = 0; i < count; i++) {
        rp_link_before_wait(link[i]);
        const int64_t link_ns = rp_link_deadline_ns(link[i], now_ns);
        at_ns = link_ns < at_ns ? link_ns : at_ns;
    }
    return at_ns;
}

rp_err rp_agent_wait(rp_agent *agent) {
    rp_link *link[AGENT_LINKS];
    rp_handle handle[AGENT_LINKS * RP_PORT_HANDLES_MAX + 1];
    const uint32_t links = list_links(agent, link);
    const int64_t deadline_ns = rp_agent_deadline_ns(agent);
    const bool builds = rp_agent_builds(agent); /* the device belongs to the builder then */
    bool device_has_news = false;
    uint32_t count = 0;
    rp_err err;
    for (uint32_t i = 0; i < links; i++) {
        count += rp_link_handles(link[i], handle + count);
    }
    if (builds) {
        handle[count++] = (rp_handle){.fd = rp_device_builder_eventfd(agent->builder)};
    } else if (agent->device) {
        handle[count++] =
            (rp_handle){.fd = rp_device_eventfd(agent->device), .ready = &device_has_news};
    }
    rp_loop *loop = rp_link_loop(agent->control);
    RP_TRY(loop->wait(loop, deadline_ns, handle, count));
    if (device_has_news) {
        uint64_t count_of_ends;
        (void)!read(rp_device_eventfd(agent->device), &count_of_ends, sizeof count_of_ends);
    }
fail:
    return err;
}
