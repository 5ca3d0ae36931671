/* A link to another board that is tried while there is no run: whether the two reach each other,
 * and from which side. One at a time, and no longer than a few seconds. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent_own.h"

static const int64_t TRIAL_LISTEN_NS = 15 * RP_NS_PER_S;

static rp_err answer(rp_agent *agent, rp_trial_outcome outcome, uint32_t port, const char *text) {
    rp_Frame frame = {.which_body = RP_KIND_TRIAL_DONE,
                      .body.trial_done = {.outcome = (uint32_t)outcome, .port = port}};
    char *to = frame.body.trial_done.text;
    (void)snprintf(to, sizeof frame.body.trial_done.text, "%s", text);
    const rp_err err = rp_link_send(agent->control, &frame, NULL, 0, true, NULL, NULL);
    return err == RP_ERR_AGAIN ? RP_OK : err; /* who asks has a time limit */
}

void rp_agent_end_trial(rp_agent *agent) {
    rp_link_close(&agent->trial);
}

static rp_err listen_for(rp_agent *agent, const char *key) {
    char endpoint[160];
    rp_agent_bind_text(agent, 1, endpoint, sizeof endpoint);
    const rp_link_options options = {.name = "trial",
                                     .bind = endpoint,
                                     .peer_public = key,
                                     .window = 1,
                                     .send_window = 1,
                                     .part_bytes_max = RP_FRAME_BYTES_MAX};
    if (agent->options.dial) {
        return answer(agent, RP_TRIAL_FAILED, 0, "this board listens nowhere: it dials");
    }
    if (rp_link_open(agent->links, &options, &agent->trial) != RP_OK) {
        return answer(agent, RP_TRIAL_FAILED, 0, rp_err_message());
    }
    const char *colon = strrchr(rp_link_endpoint(agent->trial), ':');
    return answer(agent, RP_TRIAL_LISTENS, colon ? (uint32_t)strtoul(colon + 1, NULL, 10) : 0, "");
}

rp_err rp_agent_on_trial(rp_agent *agent, const rp_message *message) {
    const rp_Trial *trial = &message->frame.body.trial;
    const rp_link_options options = {.name = "trial",
                                     .connect = trial->endpoint,
                                     .peer_public = trial->public_key,
                                     .window = 1,
                                     .send_window = 1,
                                     .part_bytes_max = RP_FRAME_BYTES_MAX};
    rp_agent_end_trial(agent);
    agent->trial_since_ns = rp_clock_now_ns(agent->clock);
    agent->trial_dials = trial->endpoint[0] != '\0';
    if (!trial->public_key[0]) {
        return RP_OK;
    }
    if (!agent->trial_dials) {
        return listen_for(agent, trial->public_key);
    }
    return rp_link_open(agent->links, &options, &agent->trial) == RP_OK
               ? RP_OK
               : answer(agent, RP_TRIAL_FAILED, 0, rp_err_message());
}

rp_err rp_agent_step_trial(rp_agent *agent) {
    rp_err err;
    if (!agent->trial) {
        return RP_OK;
    }
    RP_TRY(rp_link_step(agent->trial));
    const int64_t spent_ns = rp_clock_now_ns(agent->clock) - agent->trial_since_ns;
    const rp_link_health health = rp_link_health_of(agent->trial);
    if (!agent->trial_dials) {
        if (spent_ns >= TRIAL_LISTEN_NS) {
            rp_agent_end_trial(agent);
        }
        return RP_OK;
    }
    const rp_trial_outcome outcome = health.last_heard_ns      ? RP_TRIAL_REACHED
                                     : health.auth_failed      ? RP_TRIAL_REFUSED
                                     : spent_ns >= RP_TRIAL_NS ? RP_TRIAL_SILENT
                                                               : RP_TRIAL_OUTCOMES;
    if (outcome != RP_TRIAL_OUTCOMES) {
        rp_agent_end_trial(agent);
        RP_TRY(answer(agent, outcome, 0, ""));
    }
fail:
    return err;
}
