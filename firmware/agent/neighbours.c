/* Links to neighbours during a run: messages move, silence ends the run, use is reported. */
#include <inttypes.h>

#include "agent/agent_own.h"

void rp_agent_begin_watching(rp_agent *agent) {
    agent_run *run = agent->run;
    const int64_t now_ns = rp_clock_now_ns(agent->clock);
    for (uint32_t i = 0; i < run->neighbour_count; i++) {
        run->neighbour[i].is_silent = false;
        rp_link_watch_begin(&run->neighbour[i].watch, run->neighbour[i].link, now_ns);
        run->neighbour[i].watch.meet_ns = run->meet_ns;
    }
}

/* Only this board can report the loss of a hop: the host may still reach both neighbours. A hop is
 * named by its dialling end. */
static rp_err watch_neighbour(rp_agent *agent, agent_neighbour *at) {
    const agent_run *run = agent->run;
    const char *own = rp_plan_node_name(run->plan, run->node);
    const char *far = rp_plan_node_name(run->plan, at->node);
    const bool dials = rp_plan_dials(run->plan, run->node, at->node);
    const char *from = dials ? own : far;
    const char *to = dials ? far : own;
    const int64_t now_ns = rp_clock_now_ns(agent->clock);
    const rp_watch_state watched = rp_link_look(&at->watch, at->link, now_ns);
    const bool is_silent = watched == RP_WATCH_SILENT || watched == RP_WATCH_LOST;
    agent->run->silence_changed = agent->run->silence_changed || is_silent != at->is_silent;
    at->is_silent = is_silent;
    if (dials && rp_link_health_of(at->link).auth_failed) {
        return rp_fail(RP_ERR_REFUSED, "hop %s -> %s: board %s at %s refused the handshake", from,
                       to, far, rp_link_endpoint(at->link));
    }
    if (watched == RP_WATCH_LOST) {
        return rp_fail(RP_ERR_FAULT,
                       "hop %s -> %s: no answer from board %s %s %s for %" PRId64 " s", from, to,
                       far, dials ? "at" : "to", rp_link_endpoint(at->link),
                       at->watch.silent_ns / RP_NS_PER_S);
    }
    if (watched == RP_WATCH_STUCK) {
        return rp_fail(RP_ERR_FAULT,
                       "hop %s -> %s: a message from board %s to board %s was sent %d times and "
                       "never arrived intact: the network damages or drops large messages",
                       from, to, own, far, RP_LINK_REPLAYS_MAX);
    }
    return RP_OK;
}

rp_err rp_agent_step_links(rp_agent *agent) {
    agent_run *run = agent->run;
    rp_err err = RP_OK;
    for (uint32_t i = 0; i < run->neighbour_count; i++) {
        RP_TRY(run->neighbour[i].link ? rp_link_step(run->neighbour[i].link) : RP_OK);
    }
    RP_TRY(run->feed ? rp_link_step(run->feed) : RP_OK);
    rp_agent_note_neighbours(agent);
    for (uint32_t i = 0; agent->state == RP_AGENT_RUNNING && i < run->neighbour_count; i++) {
        RP_TRY(watch_neighbour(agent, &run->neighbour[i]));
    }
fail:
    return err;
}

void rp_agent_report_links(const rp_agent *agent, rp_Finished *report) {
    const agent_run *run = agent->run;
    for (uint32_t i = 0; i < run->neighbour_count; i++) {
        report->link[report->link_count++] =
            rp_link_use_of(run->neighbour[i].link, run->neighbour[i].node);
    }
    report->has_feed = run->feed != NULL;
    if (run->feed) {
        report->feed = rp_link_use_of(run->feed, 0);
    }
    report->has_control = true;
    report->control = rp_link_use_of(agent->control, 0);
}
