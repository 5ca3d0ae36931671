/* Inside of an agent; only for agent.c, assign.c and tensors.c. */
#ifndef RP_AGENT_AGENT_OWN_H
#define RP_AGENT_AGENT_OWN_H

#include "agent/agent.h"
#include "agent/runner.h"

/* One run, from ASSIGN to BYE; everything lies in its own arena. */
typedef struct {
    bool assigned;
    rp_run_identity identity;
    uint32_t wire; /* version of the wire that its ring speaks */
    rp_arena arena;
    rp_links *links;
    rp_link *in, *out, *feed;
    rp_job job;
    rp_stage *stage;
    rp_runner *runner;
    rp_link_profile emulate;
    bool active;
    int64_t connected_ns;
    bool saving;
    uint32_t save_index;
    size_t save_first, save_flight; /* next element of the tensor, next byte of what is in flight */
} agent_run;

struct rp_agent {
    rp_agent_options options;
    rp_device *device;
    const rp_clock *clock;
    rp_links *links;
    rp_link *control;
    char host[128];
    uint32_t port;
    bool over;
    uint32_t wire; /* version of the wire that the host and this board have */
    rp_terms terms;
    int64_t born_ns;
    int alarm; /* timerfd: an emulated pace ends between two milliseconds, which a poll can not */
    agent_run run;
};

/* agent.c: where a socket binds, `plus` ports behind the control link's. */
void rp_agent_bind_text(const rp_agent *agent, uint32_t plus, char *out, size_t bytes);
rp_err rp_agent_answer(rp_agent *agent, rp_Frame *frame, const rp_part *parts,
                       uint32_t count) RP_MUST_CHECK;
void rp_agent_end_run(rp_agent *agent);

/* assign.c: messages that make a run. */
rp_err rp_agent_on_assign(rp_agent *agent, const rp_message *message) RP_MUST_CHECK;
rp_err rp_agent_on_connect(rp_agent *agent, const rp_message *message) RP_MUST_CHECK;
rp_err rp_agent_on_profile(rp_agent *agent, const rp_message *message) RP_MUST_CHECK;

/* tensors.c: messages that bring what the stage holds. */
rp_err rp_agent_on_tensor(rp_agent *agent, const rp_message *message) RP_MUST_CHECK;
rp_err rp_agent_on_tensors_end(rp_agent *agent, const rp_message *message) RP_MUST_CHECK;
rp_err rp_agent_on_in_flight(rp_agent *agent, const rp_message *message) RP_MUST_CHECK;
rp_err rp_agent_on_prediction_gain(rp_agent *agent, const rp_message *message) RP_MUST_CHECK;
/* Sends it to the host: a few pieces a round, so that heartbeats pass between them. */
void rp_agent_start_save(rp_agent *agent);
rp_err rp_agent_continue_save(rp_agent *agent) RP_MUST_CHECK;

#endif
