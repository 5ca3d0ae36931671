/* Tries a link to another board while there is no run: whether the two reach each other, and from
 * which side. One at a time, for a few seconds at most. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent_own.h"

static const int64_t TRIAL_LISTEN_NS = 15 * RP_NS_PER_S;

static rp_err send_answer(rp_agent *agent, rp_Frame *frame) {
    const rp_err err = rp_link_send(agent->control, frame, NULL, 0, true, NULL, NULL);
    return err == RP_ERR_AGAIN ? RP_OK : err; /* the host has a timeout */
}

static rp_err send_trial_done(rp_agent *agent, rp_trial_outcome outcome, uint32_t port,
                              const char *text) {
    rp_Frame frame = {.which_body = RP_KIND_TRIAL_DONE,
                      .body.trial_done = {.outcome = (uint32_t)outcome, .port = port}};
    char *to = frame.body.trial_done.text;
    (void)snprintf(to, sizeof frame.body.trial_done.text, "%s", text);
    return send_answer(agent, &frame);
}

void rp_agent_end_trial(rp_agent *agent) {
    rp_link_close(&agent->trial); /* the link may still read the measurement's memory */
    rp_wire_rate_end(&agent->rate);
    agent->trial_reached = false;
}

static rp_err listen_for(rp_agent *agent, const char *key) {
    char endpoint[160];
    rp_agent_bind_text(agent, 1, endpoint, sizeof endpoint);
    const rp_link_options options = {.name = "trial",
                                     .bind = endpoint,
                                     .peer_public = key,
                                     .window = 1,
                                     .send_window = 1,
                                     .part_bytes_max = RP_WIRE_BYTES_MAX};
    if (agent->options.dial) {
        return send_trial_done(agent, RP_TRIAL_FAILED, 0,
                               "this board dials its host and does not listen");
    }
    if (rp_link_open(agent->links, &options, &agent->trial) != RP_OK) {
        return send_trial_done(agent, RP_TRIAL_FAILED, 0, rp_err_message());
    }
    const char *colon = strrchr(rp_link_endpoint(agent->trial), ':');
    return send_trial_done(agent, RP_TRIAL_LISTENS,
                           colon ? (uint32_t)strtoul(colon + 1, NULL, 10) : 0, "");
}

static rp_err dial_board(rp_agent *agent, const rp_Trial *trial) {
    const rp_link_options options = {.name = "trial",
                                     .connect = trial->endpoint,
                                     .peer_public = trial->public_key,
                                     .window = 1,
                                     .send_window = 1,
                                     .part_bytes_max = RP_WIRE_BYTES_MAX};
    return rp_link_open(agent->links, &options, &agent->trial) == RP_OK
               ? RP_OK
               : send_trial_done(agent, RP_TRIAL_FAILED, 0, rp_err_message());
}

static rp_err measure_link(rp_agent *agent) {
    const rp_Trial *asked = &agent->trial_asked;
    if (!agent->trial || !rp_link_health_of(agent->trial).last_heard_ns) {
        return send_trial_done(agent, RP_TRIAL_FAILED, 0,
                               "the link for the measurement is not connected");
    }
    return rp_wire_rate_begin(&agent->rate, agent->clock, asked->bytes, asked->bytes_count,
                              asked->row) == RP_OK
               ? RP_OK
               : send_trial_done(agent, RP_TRIAL_FAILED, 0, rp_err_message());
}

/* Measures the control link, whose messages may be in flight for longer than a trial lasts. */
static rp_err measure_home(rp_agent *agent, const rp_Trial *trial) {
    if (rp_wire_rate_is_on(&agent->home)) {
        return send_trial_done(agent, RP_TRIAL_FAILED, 0, "the control link is being measured");
    }
    return rp_wire_rate_begin(&agent->home, agent->clock, trial->bytes, trial->bytes_count,
                              trial->row) == RP_OK
               ? RP_OK
               : send_trial_done(agent, RP_TRIAL_FAILED, 0, rp_err_message());
}

rp_err rp_agent_on_trial(rp_agent *agent, const rp_message *message) {
    const rp_Trial *trial = &message->frame.body.trial;
    if (trial->control) {
        return measure_home(agent, trial);
    }
    const bool has_key = trial->public_key[0] != '\0';
    const bool measures = trial->bytes_count > 0;
    agent->trial_since_ns = rp_clock_now_ns(agent->clock);
    agent->trial_asked = *trial;
    if (measures && !has_key) {
        return measure_link(agent);
    }
    rp_agent_end_trial(agent);
    agent->trial_dials = trial->endpoint[0] != '\0';
    if (!has_key) {
        return RP_OK;
    }
    return agent->trial_dials ? dial_board(agent, trial) : listen_for(agent, trial->public_key);
}

static void drop_bytes(rp_link *link) {
    rp_message *message;
    while (rp_link_recv(link, &message) == RP_OK) {
        rp_link_release(link, &message);
    }
}

static rp_err step_dial(rp_agent *agent) {
    const int64_t spent_ns = rp_clock_now_ns(agent->clock) - agent->trial_since_ns;
    const rp_link_health health = rp_link_health_of(agent->trial);
    const rp_trial_outcome outcome = health.last_heard_ns      ? RP_TRIAL_REACHED
                                     : health.auth_failed      ? RP_TRIAL_REFUSED
                                     : spent_ns >= RP_TRIAL_NS ? RP_TRIAL_SILENT
                                                               : RP_TRIAL_OUTCOMES;
    if (outcome == RP_TRIAL_OUTCOMES) {
        return RP_OK;
    }
    agent->trial_reached = outcome == RP_TRIAL_REACHED && agent->trial_asked.bytes_count > 0;
    if (agent->trial_reached) {
        return measure_link(agent);
    }
    rp_agent_end_trial(agent);
    return send_trial_done(agent, outcome, 0, "");
}

static rp_err answer_rate(rp_agent *agent, rp_wire_rate *rate, uint32_t sizes) {
    rp_Frame frame = {.which_body = RP_KIND_TRIAL_DONE};
    rp_TrialDone *done = &frame.body.trial_done;
    done->outcome = RP_TRIAL_MEASURED;
    done->seconds_count = done->spread_count = (pb_size_t)sizes;
    rp_wire_rate_result(rate, done->seconds, done->spread);
    rp_wire_rate_end(rate);
    return send_answer(agent, &frame);
}

static rp_err step_home(rp_agent *agent) {
    const uint32_t sizes = agent->home.sizes_asked;
    bool over = false;
    rp_err err = RP_OK;
    if (rp_wire_rate_is_on(&agent->home)) {
        RP_TRY(rp_wire_rate_step(&agent->home, agent->control, &over));
        RP_TRY(over ? answer_rate(agent, &agent->home, sizes) : RP_OK);
    }
fail:
    return err;
}

static rp_err step_rate(rp_agent *agent) {
    bool over;
    if (rp_wire_rate_step(&agent->rate, agent->trial, &over) != RP_OK) {
        rp_agent_end_trial(agent);
        return send_trial_done(agent, RP_TRIAL_FAILED, 0, rp_err_message());
    }
    return over ? answer_rate(agent, &agent->rate, agent->trial_asked.bytes_count) : RP_OK;
}

/* Ends a trial after the time for which this board lets another connect. */
rp_err rp_agent_step_trial(rp_agent *agent) {
    rp_err err;
    RP_TRY(step_home(agent));
    if (!agent->trial) {
        return RP_OK;
    }
    RP_TRY(rp_link_step(agent->trial));
    drop_bytes(agent->trial);
    if (agent->trial_dials && !agent->trial_reached) {
        return step_dial(agent);
    }
    if (rp_clock_now_ns(agent->clock) - agent->trial_since_ns >= TRIAL_LISTEN_NS) {
        rp_agent_end_trial(agent);
    } else if (rp_wire_rate_is_on(&agent->rate)) {
        RP_TRY(step_rate(agent));
    }
fail:
    return err;
}
