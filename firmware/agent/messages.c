/* Messages of the host: which message is handled in which state, and by which function. */
#include <stdio.h>
#include <string.h>

#include "agent/agent_own.h"
#include "base/log.h"

/* Tells a host with other versions of the wire which ones this board speaks; the host gives up. */
static void agree_on_wire(rp_agent *agent, const rp_Hello *host) {
    rp_wire_range both = {RP_WIRE_MIN, RP_WIRE_MAX};
    if (!rp_wire_narrow(&both, host->wire_min, host->wire_max)) {
        rp_log_error("the host (ringpipe %s) has wire versions %u to %u, this board (ringpipe %s) "
                     "has %d to %d: update ringpipe on %s",
                     host->software, host->wire_min, host->wire_max, RP_VERSION, RP_WIRE_MIN,
                     RP_WIRE_MAX, host->wire_min > RP_WIRE_MAX ? "this board" : "the host");
    }
    agent->wire = both.max;
    rp_link_set_wire(agent->control, both.max);
}

/* Refuses a host without a feature that a ring needs. */
static rp_err check_features(const rp_Hello *host) {
    if (!(host->features & RP_WIRE_FEATURE_PLAN)) {
        return rp_fail(RP_ERR_PEER,
                       "the host (ringpipe %s) assigns stages without a plan, which this board "
                       "(ringpipe %s) needs: update ringpipe on the host",
                       host->software, RP_VERSION);
    }
    if (!(host->features & RP_WIRE_FEATURE_NEIGHBOURS)) {
        return rp_fail(RP_ERR_PEER,
                       "the host (ringpipe %s) connects boards in a row only, this board "
                       "(ringpipe %s) has a link to each neighbour of the plan: update ringpipe on "
                       "the host",
                       host->software, RP_VERSION);
    }
    return RP_OK;
}

/* A host without a run ends nothing, and changes nothing that a run has agreed on. */
static void take_greeting(rp_agent *agent, const rp_Hello *host, bool of_no_run) {
    if (of_no_run && agent->state != RP_AGENT_HELLO) {
        return;
    }
    rp_agent_end_run(agent, "a host says hello");
    agent->host_features = host->features;
    memcpy(agent->host_software, host->software, sizeof agent->host_software);
    rp_agent_note_host(agent);
    agree_on_wire(agent, host);
}

/* A HELLO that asks what is held ends nothing, in any state. */
static bool take_asking(rp_agent *agent, const rp_Frame *frame) {
    const bool holds = rp_agent_may_hold(agent, (rp_run_identity){frame->run_id, frame->term});
    if (holds) {
        rp_agent_hold(agent, frame->term, frame->body.hello.hold > 1);
    }
    return holds;
}

static rp_err on_hello(rp_agent *agent, const rp_message *message) {
    const rp_Hello *host = &message->frame.body.hello;
    const bool asks = host->hold > 0;
    const bool holds = asks && take_asking(agent, &message->frame);
    rp_err err;
    agent->has_met_host = true;
    if (message->frame.run_id != 0 && (holds || !asks)) {
        memcpy(agent->host_origin, host->origin, sizeof agent->host_origin);
    }
    if (!asks) {
        take_greeting(agent, host, message->frame.run_id == 0);
    }
    if (rp_agent_leaves(agent)) {
        return RP_OK; /* the host will greet the next process */
    }
    if (!asks) {
        err = rp_agent_tell_copies(agent, message->frame.run_id);
        if (err != RP_OK) {
            return err;
        }
    }
    const rp_device_facts *facts = agent->device ? rp_device_facts_of(agent->device) : NULL;
    rp_Frame frame = {.which_body = RP_KIND_HELLO,
                      .body.hello = {.memory_bytes = facts ? facts->memory_bytes : 0,
                                     .device_memory = !facts           ? 0
                                                      : facts->unified ? 2
                                                                       : 1,
                                     .clock_ns = rp_clock_now_ns(agent->clock),
                                     .gemm = (uint32_t)agent->gemm,
                                     .wire_min = RP_WIRE_MIN,
                                     .wire_max = RP_WIRE_MAX,
                                     .features = RP_WIRE_FEATURES,
                                     .busy = asks ? holds : agent->state != RP_AGENT_HELLO}};
    rp_Hello *hello = &frame.body.hello;
    (void)snprintf(hello->name, sizeof hello->name, "%s", agent->options.name);
    (void)snprintf(hello->software, sizeof hello->software, "%s", RP_VERSION);
    (void)snprintf(hello->device, sizeof hello->device, "%s",
                   facts ? facts->name : agent->executor->name);
    (void)snprintf(hello->kind, sizeof hello->kind, "%s", agent->kind);
    (void)snprintf(hello->machine, sizeof hello->machine, "%s", agent->energy.machine);
    err = rp_agent_answer(agent, &frame, NULL, 0); /* reports what this board is, in any case */
    if (holds && err == RP_OK) {
        return rp_agent_tell_held(agent, host->hold > 1);
    }
    return err == RP_OK && rp_wire_narrow(&(rp_wire_range){RP_WIRE_MIN, RP_WIRE_MAX},
                                          host->wire_min, host->wire_max)
               ? check_features(host)
               : err;
}

static rp_err on_end(rp_agent *agent, const rp_message *message) {
    const bool failed = rp_frame_kind(&message->frame) == RP_KIND_FAULT;
    char why[sizeof message->frame.body.fault.text + 32] = "the host has ended the run";
    if (failed) {
        (void)snprintf(why, sizeof why, "the host says: %s", message->frame.body.fault.text);
    }
    rp_agent_end_run(agent, why);
    agent->fetched = NULL;
    rp_copies_drop(&agent->copies);
    agent->over = agent->options.once;
    return RP_OK;
}

/* Ignores the message; the host times such messages to their acks. */
static rp_err ignore_message(rp_agent *agent, const rp_message *message) {
    (void)agent;
    (void)message;
    return RP_OK;
}

/* ---- states ---------------------------------------------------------------------------------- */

const char *rp_agent_state_name(rp_agent_state state) {
    static const char *const names[RP_AGENT_STATES] = {"hello",  "building", "assigned",
                                                       "ready",  "running",  "paused",
                                                       "saving", "orphan",   "warming"};
    RP_ASSERT((unsigned)state < RP_AGENT_STATES);
    return names[state];
}

rp_agent_state rp_agent_state_of(const rp_agent *agent) {
    return agent->state;
}

/* The states in which each message is accepted, and its handler. A message without a row, or in
 * another state, is a fault of the host and ends the run. */
typedef struct {
    rp_kind kind;
    uint32_t states; /* one bit for each rp_agent_state */
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
    ORPHAN = 1 << RP_AGENT_ORPHAN,
    WARMING = 1 << RP_AGENT_WARMING,
    ANY = HELLO | BUILDING | ASSIGNED | READY | RUNNING | PAUSED | SAVING | ORPHAN | WARMING,
    BETWEEN = READY | PAUSED /* between two segments */
};

static const message_rule rules[] = {
    {RP_KIND_HELLO, ANY, on_hello},
    {RP_KIND_ASSIGN, ANY, rp_agent_on_assign},
    {RP_KIND_TRIAL, HELLO, rp_agent_on_trial},
    {RP_KIND_TRIAL_BYTES, HELLO, ignore_message},
    {RP_KIND_PUSH, ANY, rp_agent_on_push},
    {RP_KIND_PUSH_PIECE, ANY, rp_agent_on_push_piece},
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
    {RP_KIND_RECORD, PAUSED, rp_agent_on_record},
    {RP_KIND_COPY, BETWEEN, rp_agent_on_copy},
    {RP_KIND_FETCH, HELLO, rp_agent_on_fetch},
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

/* Whether the message is of a run that has ended or stopped here, which the host does not know yet.
 * An orphan handles only messages of its own term that end it. */
static bool is_of_lost_run(const rp_agent *agent, const rp_Frame *frame) {
    const bool is_orphan = agent->state == RP_AGENT_ORPHAN;
    const rp_run_identity *lost = is_orphan ? &agent->run->identity : &agent->ended;
    const rp_kind kind = rp_frame_kind(frame);
    return (is_orphan || agent->state == RP_AGENT_HELLO) && lost->id != 0 &&
           frame->run_id == lost->id && frame->term == lost->term && kind != RP_KIND_BYE &&
           kind != RP_KIND_FAULT;
}

/* A controller that was replaced is told the newest term; the present run continues. */
static rp_err refuse_term(rp_agent *agent, rp_run_identity run) {
    const uint32_t newest = rp_terms_newest(&agent->terms, run.id);
    rp_Frame frame = {.which_body = RP_KIND_FAULT,
                      .run_id = run.id,
                      .term = newest,
                      .body.fault = {.err = RP_ERR_PEER, .fault_class = RP_FAULT_FATAL}};
    rp_Fault *fault = &frame.body.fault;
    (void)snprintf(fault->text, sizeof fault->text,
                   newest > run.term
                       ? "this board knows a newer start of this run, with term %u; this "
                         "controller has term %u"
                       : "this board knows another start of this run with the same term, %u, so "
                         "the run folder has lost its newest files; resume the run once more",
                   newest, run.term);
    if (agent->refused.id != run.id || agent->refused.term != run.term) { /* logged once for each */
        rp_log_warn("a controller is refused: %s", fault->text);
        agent->refused = run;
    }
    return rp_link_send(agent->control, &frame, NULL, 0, true, NULL, NULL);
}

static rp_err on_message(rp_agent *agent, const rp_message *message) {
    const rp_kind kind = rp_frame_kind(&message->frame);
    if (kind != RP_KIND_TRIAL) {
        rp_agent_end_trial(agent);
    }
    const message_rule *rule = rule_of(agent->state, kind);
    const bool is_lost = is_of_lost_run(agent, &message->frame);
    if (is_lost && agent->state == RP_AGENT_ORPHAN && kind == RP_KIND_HELLO) {
        /* its own controller has already greeted this board, so this is a second controller with a
         * run folder that lost the newest term */
        return refuse_term(agent, agent->run->identity);
    }
    if (rule && !(is_lost && agent->state == RP_AGENT_ORPHAN)) {
        return rule->handle(agent, message);
    }
    return is_lost
               ? RP_OK
               : rp_fail(RP_ERR_PEER, "the host sent %s, which a board in state %s does not accept",
                         rp_kind_name(kind), rp_agent_state_name(agent->state));
}

/* The builder has one job at a time. */
static bool waits_for_builder(const rp_agent *agent, const rp_message *message) {
    const rp_kind kind = rp_frame_kind(&message->frame);
    return (kind == RP_KIND_ASSIGN || kind == RP_KIND_PROFILE) && rp_agent_builds(agent);
}

/* A later message of the host replaces its waiting request. */
static void drop_held(rp_agent *agent) {
    if (agent->held) {
        rp_link_release(agent->control, &agent->held);
    }
}

/* The assignment that waited for the builder, or the next message. */
static rp_err next_message(rp_agent *agent, rp_message **out) {
    if (agent->held && !rp_agent_builds(agent)) {
        *out = agent->held;
        agent->held = NULL;
        return RP_OK;
    }
    return rp_link_recv(agent->control, out);
}

rp_err rp_agent_take_messages(rp_agent *agent) {
    for (;;) {
        rp_message *message;
        rp_err err = next_message(agent, &message);
        if (err != RP_OK) {
            return err == RP_ERR_AGAIN ? RP_OK : err;
        }
        const rp_run_identity run = {message->frame.run_id, message->frame.term};
        const bool is_older = !rp_terms_admit(&agent->terms, run);
        if (!is_older) {
            drop_held(agent);
        }
        if (!is_older && waits_for_builder(agent, message)) {
            /* the result of the present build is not needed */
            rp_agent_end_run(agent, "the host has sent another assignment");
            agent->held = message;
            continue;
        }
        err = is_older ? refuse_term(agent, run) : on_message(agent, message);
        rp_link_release(agent->control, &message);
        if (err != RP_OK) {
            rp_agent_report_fault(agent, err);
        }
    }
}
