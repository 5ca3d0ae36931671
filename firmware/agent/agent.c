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
    RP_TRY(split_endpoint(options->listen, agent->host, sizeof agent->host, &agent->port));
    RP_TRY(rp_links_open(arena, &options->keys, clock, (uint64_t)agent->born_ns, &agent->links));
    err = open_control(agent);
    if (err == RP_OK) {
        err = open_alarm(&agent->alarm);
    }
    if (err != RP_OK) {
        rp_links_close(&agent->links);
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
    agent_run *run = &agent->run;
    const rp_link_profile none = {0};
    rp_runner_close(&run->runner);
    rp_stage_destroy(&run->stage);
    rp_links_close(&run->links);
    rp_arena_finish(&run->arena);
    *run = (agent_run){0};
    rp_link_set_run(agent->control, (rp_run_identity){0});
    rp_err err = rp_link_emulate(agent->control, &none);
    RP_ASSERT(err == RP_OK); /* only a line needs memory */
}

void rp_agent_close(rp_agent **agent_pointer) {
    rp_agent *agent = *agent_pointer;
    if (agent) {
        rp_agent_end_run(agent);
        rp_link_close(&agent->control);
        rp_links_close(&agent->links);
        (void)close(agent->alarm);
        *agent_pointer = NULL;
    }
}

/* ---- answers --------------------------------------------------------------------------------- */

rp_err rp_agent_answer(rp_agent *agent, rp_Frame *frame, const rp_part *parts, uint32_t count) {
    frame->run_id = agent->run.identity.id;
    frame->term = agent->run.identity.term;
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
    const rp_device_facts *facts = rp_device_facts_of(agent->device);
    rp_Frame frame = {.which_body = RP_KIND_HELLO,
                      .body.hello = {.memory_bytes = facts->memory_bytes,
                                     .clock_ns = rp_clock_now_ns(agent->clock),
                                     .gemm = (uint32_t)rp_device_gemm(agent->device),
                                     .wire_min = RP_WIRE_MIN,
                                     .wire_max = RP_WIRE_MAX,
                                     .features = RP_WIRE_FEATURES}};
    rp_Hello *hello = &frame.body.hello;
    (void)snprintf(hello->name, sizeof hello->name, "%s", agent->options.name);
    (void)snprintf(hello->software, sizeof hello->software, "%s", RP_VERSION);
    (void)snprintf(hello->device, sizeof hello->device, "%s", facts->name);
    return rp_agent_answer(agent, &frame, NULL, 0);
}

/* ---- segments -------------------------------------------------------------------------------- */

static void add_link_use(rp_Finished *report, const rp_link *link, uint32_t peer) {
    rp_link_stats stats;
    if (!link) {
        return;
    }
    rp_link_stats_of(link, &stats);
    report->link[report->link_count++] = (rp_LinkUse){.peer = peer,
                                                      .bytes = stats.bytes_sent,
                                                      .busy_s = stats.busy_s,
                                                      .duplicates = stats.duplicates};
}

static rp_err finish_segment(rp_agent *agent) {
    agent_run *run = &agent->run;
    rp_runner_facts facts = rp_runner_facts_of(run->runner);
    rp_Frame frame = {.which_body = RP_KIND_FINISHED,
                      .body.finished = {.busy_ns = facts.busy_ns,
                                        .microbatches = facts.microbatches,
                                        .in_flight_max = facts.in_flight_max,
                                        .staleness_max = rp_stage_gap_max(run->stage),
                                        .device_bytes_max = rp_device_used_bytes_max(agent->device),
                                        .in_flight_bytes = rp_runner_flight_bytes(run->runner)}};
    add_link_use(&frame.body.finished, run->out, run->job.stage + 1);
    add_link_use(&frame.body.finished, run->in, run->job.stage - 1);
    uint64_t applied[RP_REPLICAS_MAX];
    const uint32_t replicas = rp_stage_replicas(run->stage);
    for (uint32_t r = 0; r < replicas; r++) {
        applied[r] = rp_stage_applied(run->stage, r);
    }
    const rp_part part = rp_part_of_array(RP_DTYPE_U64, applied, replicas);
    run->active = false;
    return rp_agent_answer(agent, &frame, &part, 1);
}

static rp_err on_run_message(rp_agent *agent, const rp_message *message) {
    agent_run *run = &agent->run;
    const rp_Frame *frame = &message->frame;
    const rp_Start *start = &frame->body.start;
    const rp_Evaluate *evaluate = &frame->body.evaluate;
    const rp_StepDecision *decision = &frame->body.step_decision;
    if (!run->runner) {
        return rp_fail(RP_ERR_PEER, "%s came before the run was complete",
                       rp_kind_name(rp_frame_kind(frame)));
    }
    switch (rp_frame_kind(frame)) {
    case RP_KIND_START:
        run->active = true;
        return rp_runner_train(run->runner, start->step_first, start->pause, start->drain);
    case RP_KIND_EVALUATE:
        run->active = true;
        return rp_runner_evaluate(run->runner, evaluate->samples, evaluate->renew_statistics);
    case RP_KIND_STOP:
        return rp_runner_stop(run->runner, frame->body.stop.step);
    case RP_KIND_STEP_DECISION:
        return rp_runner_verdict(run->runner, decision->step, (float)decision->scale,
                                 decision->skip);
    default: /* RP_KIND_SAVE */
        rp_agent_start_save(agent);
        return RP_OK;
    }
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
    const rp_run_identity run = {message->frame.run_id, message->frame.term};
    if (!rp_terms_admit(&agent->terms, run)) {
        return refuse_older_term(agent, run);
    }
    switch (kind) {
    case RP_KIND_HELLO:
        return on_hello(agent, message);
    case RP_KIND_ASSIGN:
        return rp_agent_on_assign(agent, message);
    case RP_KIND_CONNECT:
        return rp_agent_on_connect(agent, message);
    case RP_KIND_PROFILE:
        return rp_agent_on_profile(agent, message);
    case RP_KIND_TENSOR:
        return rp_agent_on_tensor(agent, message);
    case RP_KIND_TENSORS_END:
        return rp_agent_on_tensors_end(agent, message);
    case RP_KIND_IN_FLIGHT:
        return rp_agent_on_in_flight(agent, message);
    case RP_KIND_PREDICTION_GAIN:
        return rp_agent_on_prediction_gain(agent, message);
    case RP_KIND_START:
    case RP_KIND_EVALUATE:
    case RP_KIND_STOP:
    case RP_KIND_STEP_DECISION:
    case RP_KIND_SAVE:
        return on_run_message(agent, message);
    case RP_KIND_BYE:
    case RP_KIND_FAULT:
        rp_agent_end_run(agent);
        agent->over = agent->options.once;
        return RP_OK;
    default:
        return rp_fail(RP_ERR_PEER, "the host sent %s, which is not for a board",
                       rp_kind_name(kind));
    }
}

static rp_err drain_control(rp_agent *agent) {
    for (;;) {
        rp_message *message;
        rp_err err = rp_link_recv(agent->control, &message);
        if (err != RP_OK) {
            return err == RP_ERR_AGAIN ? RP_OK : err;
        }
        err = on_message(agent, message);
        rp_link_release(agent->control, &message);
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
    if (agent->run.assigned) {
        rp_log_warn("the host is silent for %" PRId64 " s: its run is over here",
                    HOST_SILENT_NS / RP_NS_PER_S);
        rp_agent_end_run(agent);
    }
    agent->over = agent->options.once;
}

/* A neighbour that the host reaches and this board does not: said here, or nobody knows. */
static rp_err watch_neighbour(const rp_agent *agent) {
    const agent_run *run = &agent->run;
    if (!run->out || !run->active) {
        return RP_OK;
    }
    rp_link_stats stats;
    rp_link_stats_of(run->out, &stats);
    if (stats.auth_failed) {
        return rp_fail(RP_ERR_REFUSED, "the next stage refused the handshake");
    }
    int64_t waited_ns = rp_clock_now_ns(agent->clock) - run->connected_ns;
    if (stats.last_heard_ns == 0 && stats.unacked > 0 && waited_ns > HOST_SILENT_NS) {
        return rp_fail(RP_ERR_FAULT, "the next stage can not be reached from this board");
    }
    return RP_OK;
}

static rp_err run_round(rp_agent *agent) {
    agent_run *run = &agent->run;
    rp_link *const data[] = {run->in, run->out, run->feed};
    rp_err err = RP_OK;
    for (uint32_t i = 0; i < 3; i++) {
        if (data[i]) {
            RP_TRY(rp_link_step(data[i]));
        }
    }
    RP_TRY(watch_neighbour(agent));
    if (run->active) {
        bool active;
        RP_TRY(rp_runner_step(run->runner, &active));
        if (!active) {
            RP_TRY(finish_segment(agent));
        }
    }
    if (run->saving && !run->active) {
        RP_TRY(rp_agent_continue_save(agent));
    }
fail:
    return err;
}

rp_err rp_agent_step(rp_agent *agent, bool *over) {
    rp_err err;
    RP_TRY(rp_link_step(agent->control));
    RP_TRY(drain_control(agent));
    err = run_round(agent);
    if (err != RP_OK) {
        report_fault(agent, err);
    }
    watch_host(agent);
    *over = agent->over;
    err = RP_OK;
fail:
    return err;
}

rp_err rp_agent_wait(rp_agent *agent, int64_t timeout_ns) {
    const agent_run *run = &agent->run;
    rp_link *link[4] = {agent->control};
    uint32_t count = 1;
    rp_link *const data[] = {run->in, run->out, run->feed};
    for (uint32_t i = 0; i < 3; i++) {
        if (data[i]) {
            link[count++] = data[i];
        }
    }
    const int fds[] = {rp_device_eventfd(agent->device), agent->alarm};
    const int64_t left_ns = run->runner ? rp_runner_sleep_ns(run->runner, timeout_ns) : timeout_ns;
    const uint32_t fd_count = left_ns < timeout_ns ? 2 : 1; /* the alarm where a pace ends first */
    const struct itimerspec at = {.it_value = {left_ns / RP_NS_PER_S, left_ns % RP_NS_PER_S}};
    rp_err err = RP_OK;
    if (fd_count == 2 && timerfd_settime(agent->alarm, 0, &at, NULL) != 0) {
        return rp_fail(RP_ERR_IO, "timerfd_settime: %s", strerror(errno));
    }
    RP_TRY(rp_link_wait(link, count, fds, fd_count, left_ns));
    for (uint32_t i = 0; i < fd_count; i++) {
        uint64_t drained;
        if (read(fds[i], &drained, sizeof drained) < 0) {
            drained = 0; /* nothing to drain: the descriptors do not block */
        }
    }
fail:
    return err;
}
