#include "agent/agent_own.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/log.h"

enum { CONTROL_PART_MAX = 4 << 20 };
static const int64_t HOST_SILENT_NS = 30 * RP_NS_PER_S;
/* Links want to be stepped at least this often, and the host's silence has to be noticed. */
static const int64_t ROUND_NS = 50 * RP_NS_PER_MS;
static const int64_t FIRST_WORD_NS = 600 * RP_NS_PER_S;

/* ---- endpoints ------------------------------------------------------------------------------- */

static rp_err split_endpoint(const char *endpoint, char *host, size_t host_bytes, uint32_t *port) {
    const char *start = strncmp(endpoint, "tcp://", 6) == 0 ? endpoint + 6 : NULL;
    const char *colon = start ? strrchr(start, ':') : NULL;
    char *end = NULL;
    unsigned long value = colon ? strtoul(colon + 1, &end, 10) : 0;
    if (!colon || colon == start || end == colon + 1 || *end || value > 65533 ||
        (size_t)(colon - start) >= host_bytes) {
        return rp_fail(RP_ERR_USAGE, "expected tcp://HOST:PORT (port 0 to 65533), found '%s'",
                       endpoint);
    }
    memcpy(host, start, (size_t)(colon - start));
    host[colon - start] = '\0';
    *port = (uint32_t)value;
    return RP_OK;
}

void rp_agent_bind_text(const rp_agent *agent, uint32_t plus, char *out, size_t bytes) {
    if (agent->port) {
        (void)snprintf(out, bytes, "tcp://%s:%u", agent->host, agent->port + plus);
    } else {
        (void)snprintf(out, bytes, "tcp://%s:*", agent->host);
    }
}

/* ---- opening --------------------------------------------------------------------------------- */

static rp_err open_control(rp_agent *agent) {
    char endpoint[160];
    rp_agent_bind_text(agent, 0, endpoint, sizeof endpoint);
    rp_link_options options = {
        .name = "control",
        .bind = endpoint,
        .window = 1,
        .send_window = 1,
        .part_bytes_max = CONTROL_PART_MAX,
    };
    rp_err err;
    RP_TRY(rp_link_open(agent->links, &options, &agent->control));
    for (uint32_t i = 0; i < agent->options.trusted_count; i++) {
        RP_TRY(rp_link_allow(agent->control, agent->options.trusted[i]));
    }
fail:
    return err;
}

static rp_err open_alarm(int *out) {
    *out = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    return *out < 0 ? rp_fail(RP_ERR_IO, "timerfd_create: %s", strerror(errno)) : RP_OK;
}

rp_err rp_agent_open(rp_arena *arena, rp_device *device, const rp_clock *clock,
                     const rp_agent_options *options, rp_agent **out) {
    rp_err err;
    rp_agent *agent;
    RP_TRY(RP_ARENA_NEW(arena, 1, &agent));
    agent->options = *options;
    agent->device = device;
    agent->clock = clock;
    agent->born_ns = rp_clock_now_ns(clock);
    agent->wire = RP_WIRE_MAX;
    agent->gemm = device ? rp_device_gemm(device) : RP_GEMM_PANEL;
    agent->executor = options->executor ? options->executor : rp_executor_find("opencl");
    agent->run = &agent->runs[0];
    RP_TRY(split_endpoint(options->listen, agent->host, sizeof agent->host, &agent->port));
    const rp_links_options links = {.clock = clock,
                                    .keys = &agent->options.keys,
                                    .transport = options->transport,
                                    .sessions = options->sessions};
    RP_TRY(rp_links_open(arena, &links, &agent->links));
    agent->alarm = -1;
    err = open_control(agent);
    if (err == RP_OK && device) {
        err = rp_device_builder_open(arena, device, &agent->builder);
    }
    if (err == RP_OK && !options->transport) {
        err = open_alarm(&agent->alarm);
    }
    if (err != RP_OK) {
        rp_agent_close(&agent);
        return err;
    }
    *out = agent;
fail:
    return err;
}

const char *rp_agent_endpoint(const rp_agent *agent) {
    return rp_link_endpoint(agent->control);
}

void rp_agent_end_run(rp_agent *agent) {
    const rp_link_profile none = {0};
    if (agent->state == RP_AGENT_HELLO) {
        return;
    }
    agent->ended = agent->run->identity;
    if (rp_agent_builds(agent)) {
        rp_device_builder_cancel(agent->builder);
        agent->abandoned = agent->run;
        agent->run = &agent->runs[agent->run == &agent->runs[0]];
    } else {
        rp_agent_free_run(agent->run);
    }
    agent->state = RP_AGENT_HELLO;
    rp_link_set_run(agent->control, (rp_run_identity){0});
    rp_err err = rp_link_emulate(agent->control, &none);
    RP_ASSERT(err == RP_OK); /* only a line needs memory */
}

void rp_agent_close(rp_agent **agent_pointer) {
    rp_agent *agent = *agent_pointer;
    if (agent) {
        rp_agent_end_run(agent);
        rp_device_builder_close(&agent->builder);
        if (agent->abandoned) {
            rp_agent_free_run(agent->abandoned);
        }
        if (agent->held) {
            rp_link_release(agent->control, &agent->held);
        }
        rp_link_close(&agent->control);
        rp_links_close(&agent->links);
        if (agent->alarm >= 0) {
            (void)close(agent->alarm);
        }
        *agent_pointer = NULL;
    }
}

/* ---- answers --------------------------------------------------------------------------------- */

rp_err rp_agent_answer(rp_agent *agent, rp_Frame *frame, const rp_part *parts, uint32_t count) {
    frame->run_id = agent->run->identity.id;
    frame->term = agent->run->identity.term;
    return rp_link_send(agent->control, frame, parts, count, true, NULL, NULL);
}

static rp_FaultClass fault_class_of(rp_err err) {
    switch (err) {
    case RP_ERR_AGAIN:
    case RP_ERR_TIMEOUT:
        return RP_FAULT_TRANSIENT;
    case RP_ERR_MEMORY:
    case RP_ERR_IO:
    case RP_ERR_DEVICE:
    case RP_ERR_PEER:
    case RP_ERR_FAULT:
        return RP_FAULT_BOARD;
    case RP_ERR_USAGE:
    case RP_ERR_FORMAT:
    case RP_ERR_SHAPE:
    case RP_ERR_LIMIT:
        return RP_FAULT_USER;
    case RP_ERR_REFUSED:
        return RP_FAULT_SECURITY;
    case RP_ERR_NUMERIC:
    case RP_ERR_INTERRUPTED:
        return RP_FAULT_FATAL;
    case RP_OK:
    case RP_ERR_COUNT:
        break;
    }
    return RP_FAULT_UNKNOWN;
}

/* The run is over for this agent: tell the host why and be ready for another. */
static void report_fault(rp_agent *agent, rp_err code) {
    rp_Frame frame = {.which_body = RP_KIND_FAULT};
    rp_Fault *fault = &frame.body.fault;
    fault->err = (uint32_t)code;
    fault->fault_class = fault_class_of(code);
    (void)snprintf(fault->text, sizeof fault->text, "%s", rp_err_message());
    if (rp_agent_answer(agent, &frame, NULL, 0) != RP_OK) {
        rp_log_warn("the host could not be told");
    }
    rp_agent_end_run(agent);
}

/* A host of other versions of the wire hears which ones this board speaks, and gives up. */
static void agree_on_wire(rp_agent *agent, const rp_Hello *host) {
    rp_wire_range both = {RP_WIRE_MIN, RP_WIRE_MAX};
    if (!rp_wire_narrow(&both, host->wire_min, host->wire_max)) {
        rp_log_error("the host speaks wire versions %u to %u, this board %d to %d", host->wire_min,
                     host->wire_max, RP_WIRE_MIN, RP_WIRE_MAX);
    }
    agent->wire = both.max;
    rp_link_set_wire(agent->control, both.max);
}

static rp_err on_hello(rp_agent *agent, const rp_message *message) {
    rp_agent_end_run(agent);
    agree_on_wire(agent, &message->frame.body.hello);
    const rp_device_facts *facts = agent->device ? rp_device_facts_of(agent->device) : NULL;
    rp_Frame frame = {.which_body = RP_KIND_HELLO,
                      .body.hello = {.memory_bytes = facts ? facts->memory_bytes : 0,
                                     .clock_ns = rp_clock_now_ns(agent->clock),
                                     .gemm = (uint32_t)agent->gemm,
                                     .wire_min = RP_WIRE_MIN,
                                     .wire_max = RP_WIRE_MAX,
                                     .features = RP_WIRE_FEATURES}};
    rp_Hello *hello = &frame.body.hello;
    (void)snprintf(hello->name, sizeof hello->name, "%s", agent->options.name);
    (void)snprintf(hello->software, sizeof hello->software, "%s", RP_VERSION);
    (void)snprintf(hello->device, sizeof hello->device, "%s",
                   facts ? facts->name : agent->executor->name);
    return rp_agent_answer(agent, &frame, NULL, 0);
}

static rp_err on_end(rp_agent *agent, const rp_message *message) {
    (void)message;
    rp_agent_end_run(agent);
    agent->over = agent->options.once;
    return RP_OK;
}

/* ---- states ---------------------------------------------------------------------------------- */

const char *rp_agent_state_name(rp_agent_state state) {
    static const char *const names[RP_AGENT_STATES] = {"hello",   "building", "assigned", "ready",
                                                       "running", "paused",   "saving"};
    RP_ASSERT((unsigned)state < RP_AGENT_STATES);
    return names[state];
}

rp_agent_state rp_agent_state_of(const rp_agent *agent) {
    return agent->state;
}

/* Which message is taken in which states, and by whom. A message that stands in no row, or comes in
 * another state, is the host's fault and ends the run. */
typedef struct {
    rp_kind kind;
    uint32_t states; /* bits by rp_agent_state */
    rp_err (*handle)(rp_agent *agent, const rp_message *message);
} message_rule;

enum {
    HELLO = 1 << RP_AGENT_HELLO,
    BUILDING = 1 << RP_AGENT_BUILDING,
    ASSIGNED = 1 << RP_AGENT_ASSIGNED,
    READY = 1 << RP_AGENT_READY,
    RUNNING = 1 << RP_AGENT_RUNNING,
    PAUSED = 1 << RP_AGENT_PAUSED,
    SAVING = 1 << RP_AGENT_SAVING,
    ANY = HELLO | BUILDING | ASSIGNED | READY | RUNNING | PAUSED | SAVING,
    BETWEEN = READY | PAUSED /* two segments */
};

static const message_rule rules[] = {
    {RP_KIND_HELLO, ANY, on_hello},
    {RP_KIND_ASSIGN, ANY, rp_agent_on_assign},
    {RP_KIND_PROFILE, ANY, rp_agent_on_profile},
    {RP_KIND_CONNECT, ASSIGNED, rp_agent_on_connect},
    {RP_KIND_TENSOR, BETWEEN, rp_agent_on_tensor},
    {RP_KIND_TENSORS_END, BETWEEN, rp_agent_on_tensors_end},
    {RP_KIND_IN_FLIGHT, BETWEEN, rp_agent_on_in_flight},
    {RP_KIND_PREDICTION_GAIN, BETWEEN | RUNNING | SAVING, rp_agent_on_prediction_gain},
    {RP_KIND_START, BETWEEN, rp_agent_on_start},
    {RP_KIND_EVALUATE, BETWEEN, rp_agent_on_evaluate},
    {RP_KIND_STOP, BETWEEN | RUNNING | SAVING, rp_agent_on_stop},
    {RP_KIND_STEP_DECISION, RUNNING, rp_agent_on_step_decision},
    {RP_KIND_SAVE, BETWEEN, rp_agent_on_save},
    {RP_KIND_BYE, ANY, on_end},
    {RP_KIND_FAULT, ANY, on_end},
};
enum { RULES = sizeof rules / sizeof *rules };

static const message_rule *rule_of(rp_agent_state state, rp_kind kind) {
    for (uint32_t i = 0; i < RULES; i++) {
        if (rules[i].kind == kind && rules[i].states & 1u << state) {
            return &rules[i];
        }
    }
    return NULL;
}

bool rp_agent_takes(rp_agent_state state, rp_kind kind) {
    return rule_of(state, kind) != NULL;
}

static bool is_of_ended_run(const rp_agent *agent, const rp_Frame *frame) {
    return agent->state == RP_AGENT_HELLO && agent->ended.id != 0 &&
           frame->run_id == agent->ended.id && frame->term == agent->ended.term;
}

/* A controller that another one has replaced: it is told, and what runs here goes on. */
static rp_err refuse_older_term(rp_agent *agent, rp_run_identity run) {
    rp_Frame frame = {.which_body = RP_KIND_FAULT,
                      .run_id = run.id,
                      .term = run.term,
                      .body.fault = {.err = RP_ERR_PEER, .fault_class = RP_FAULT_FATAL}};
    rp_Fault *fault = &frame.body.fault;
    (void)snprintf(fault->text, sizeof fault->text,
                   "a newer start of this run has been here: term %u, this controller has %u",
                   rp_terms_newest(&agent->terms, run.id), run.term);
    rp_log_warn("a controller is refused: %s", fault->text);
    return rp_link_send(agent->control, &frame, NULL, 0, true, NULL, NULL);
}

static rp_err on_message(rp_agent *agent, const rp_message *message) {
    const rp_kind kind = rp_frame_kind(&message->frame);
    const message_rule *rule = rule_of(agent->state, kind);
    if (rule) {
        return rule->handle(agent, message);
    }
    return is_of_ended_run(agent, &message->frame)
               ? RP_OK /* the host has not heard yet that it is over */
               : rp_fail(RP_ERR_PEER, "the host sent %s, which a board in state %s does not take",
                         rp_kind_name(kind), rp_agent_state_name(agent->state));
}

/* The builder has one job at a time. */
static bool waits_for_builder(const rp_agent *agent, const rp_message *message) {
    const rp_kind kind = rp_frame_kind(&message->frame);
    return (kind == RP_KIND_ASSIGN || kind == RP_KIND_PROFILE) && rp_agent_builds(agent);
}

static rp_err drain_control(rp_agent *agent) {
    for (;;) {
        rp_err err = agent->held ? RP_OK : rp_link_recv(agent->control, &agent->held);
        if (err != RP_OK) {
            return err == RP_ERR_AGAIN ? RP_OK : err;
        }
        const rp_Frame *frame = &agent->held->frame;
        const rp_run_identity run = {frame->run_id, frame->term};
        const bool is_older = !rp_terms_admit(&agent->terms, run);
        if (!is_older && waits_for_builder(agent, agent->held)) {
            rp_agent_end_run(agent); /* that is built for nobody */
            return RP_OK;
        }
        err = is_older ? refuse_older_term(agent, run) : on_message(agent, agent->held);
        rp_link_release(agent->control, &agent->held);
        if (err != RP_OK) {
            report_fault(agent, err);
        }
    }
}

/* A host that is silent has crashed or is cut off: its run is over. */
static void watch_host(rp_agent *agent) {
    rp_link_stats stats;
    rp_link_stats_of(agent->control, &stats);
    if (stats.last_heard_ns == 0 && !agent->options.once) {
        return; /* a board waits for its first host as long as it takes */
    }
    /* a host speaks only when all its local agents are up */
    int64_t heard_ns = stats.last_heard_ns ? stats.last_heard_ns : agent->born_ns + FIRST_WORD_NS;
    if (rp_clock_now_ns(agent->clock) - heard_ns < HOST_SILENT_NS) {
        return;
    }
    if (agent->state != RP_AGENT_HELLO) {
        /* it may live all the same: our clock has jumped, or the way to us was cut */
        report_fault(agent, rp_fail(RP_ERR_TIMEOUT,
                                    "the host is silent for %" PRId64 " s: its run is over here",
                                    HOST_SILENT_NS / RP_NS_PER_S));
    }
    agent->over = agent->options.once;
}

rp_err rp_agent_step(rp_agent *agent, bool *over) {
    rp_err err;
    RP_TRY(rp_link_step(agent->control));
    err = rp_agent_finish_build(agent);
    if (err != RP_OK) {
        report_fault(agent, err);
    }
    RP_TRY(drain_control(agent));
    err = rp_agent_run_round(agent);
    if (err != RP_OK) {
        report_fault(agent, err);
    }
    watch_host(agent);
    *over = agent->over;
    err = RP_OK;
fail:
    return err;
}

enum { AGENT_LINKS = 4 };

static uint32_t list_links(const rp_agent *agent, rp_link *link[AGENT_LINKS]) {
    rp_link *const all[AGENT_LINKS] = {agent->control, agent->run->in, agent->run->out,
                                       agent->run->feed};
    uint32_t count = 0;
    for (uint32_t i = 0; i < AGENT_LINKS; i++) {
        if (all[i]) {
            link[count++] = all[i];
        }
    }
    return count;
}

int64_t rp_agent_deadline_ns(const rp_agent *agent) {
    const int64_t now_ns = rp_clock_now_ns(agent->clock);
    const rp_runner *runner = agent->run->runner;
    rp_link *link[AGENT_LINKS];
    const uint32_t count = list_links(agent, link);
    int64_t at_ns = now_ns + (runner ? rp_runner_sleep_ns(runner, ROUND_NS) : ROUND_NS);
    for (uint32_t i = 0; i < count; i++) {
        rp_link_before_wait(link[i]);
        const int64_t link_ns = rp_link_deadline_ns(link[i], now_ns);
        at_ns = link_ns < at_ns ? link_ns : at_ns;
    }
    return at_ns;
}

rp_err rp_agent_wait(rp_agent *agent, int64_t timeout_ns) {
    const agent_run *run = agent->run;
    rp_link *link[AGENT_LINKS];
    const uint32_t count = list_links(agent, link);
    const bool builds = rp_agent_builds(agent); /* the device is its own */
    const int fds[] = {builds ? rp_device_builder_eventfd(agent->builder)
                              : rp_device_eventfd(agent->device),
                       agent->alarm};
    const int64_t left_ns = run->runner ? rp_runner_sleep_ns(run->runner, timeout_ns) : timeout_ns;
    const uint32_t fd_count = left_ns < timeout_ns ? 2 : 1; /* the alarm where a pace ends first */
    const struct itimerspec at = {.it_value = {left_ns / RP_NS_PER_S, left_ns % RP_NS_PER_S}};
    rp_err err = RP_OK;
    if (fd_count == 2 && timerfd_settime(agent->alarm, 0, &at, NULL) != 0) {
        return rp_fail(RP_ERR_IO, "timerfd_settime: %s", strerror(errno));
    }
    RP_TRY(rp_link_wait(link, count, fds, fd_count, left_ns));
    for (uint32_t i = builds; i < fd_count; i++) {
        uint64_t drained;
        if (read(fds[i], &drained, sizeof drained) < 0) {
            drained = 0; /* nothing to drain: the descriptors do not block */
        }
    }
fail:
    return err;
}
