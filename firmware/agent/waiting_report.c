/* Reports waiting, so that a ring without progress shows which board waits for which. */
#include "agent/agent_own.h"

static const int64_t TELL_AFTER_NS = 1 * RP_NS_PER_S; /* and again after the same time */

static uint32_t list_silent(const agent_run *run, rp_Waiting *out) {
    uint32_t silent = 0;
    for (uint32_t i = 0; i < run->neighbour_count; i++) {
        const agent_neighbour *at = &run->neighbour[i];
        if (at->is_silent) {
            out->silent[out->silent_count++] =
                (rp_SilentHop){.peer = at->node, .silent_ns = at->watch.silent_ns};
            silent |= UINT32_C(1) << i;
        }
    }
    return silent;
}

static rp_Waiting describe_wait(agent_run *run, int64_t now_ns) {
    const rp_runner_wait wait = rp_runner_wait_of(run->runner);
    const int64_t for_ns = now_ns - wait.since_ns;
    if (wait.what == RP_WAITING_NOTHING || for_ns < TELL_AFTER_NS) {
        return (rp_Waiting){.what = RP_WAITING_NOTHING, .longest_ns = wait.longest_ns};
    }
    return (rp_Waiting){.what = wait.what,
                        .peer = wait.peer == RP_PLAN_HOST ? 0 : wait.peer,
                        .step = wait.op.step,
                        .first = wait.op.samples.first,
                        .count = wait.op.samples.count,
                        .stage = wait.op.stage,
                        .for_ns = for_ns,
                        .longest_ns = wait.longest_ns};
}

_Static_assert(RP_PLAN_NEIGHBOURS_MAX <= 32, "a bit for each neighbour");
_Static_assert(RP_PLAN_NEIGHBOURS_MAX <=
                   sizeof(((rp_Waiting *)0)->silent) / sizeof(((rp_Waiting *)0)->silent[0]),
               "a place for each neighbour");

/* Sends nothing while the control link is full. */
rp_err rp_agent_tell_waiting(rp_agent *agent) {
    agent_run *run = agent->run;
    const int64_t now_ns = rp_clock_now_ns(agent->clock);
    rp_link_stats stats;
    rp_Frame frame = {.which_body = RP_KIND_WAITING};
    rp_Waiting *waiting = &frame.body.waiting;
    const bool is_due = now_ns - run->waiting_told_ns >= TELL_AFTER_NS;
    if (!(agent->host_features & RP_WIRE_FEATURE_WAITING) || !(is_due || run->silence_changed)) {
        return RP_OK;
    }
    *waiting = describe_wait(run, now_ns);
    const uint32_t silent = list_silent(run, waiting);
    const bool is_news =
        waiting->what != RP_WAITING_NOTHING || silent != 0 || run->has_told_waiting;
    rp_link_stats_of(agent->control, &stats);
    if (!is_news || stats.unacked >= RP_LINK_CONTROL_MAX / 2) {
        return RP_OK;
    }
    const rp_err err = rp_agent_answer(agent, &frame, NULL, 0);
    if (err == RP_OK) {
        run->waiting_told_ns = now_ns;
        run->silence_changed = false;
        run->has_told_waiting = waiting->what != RP_WAITING_NOTHING || silent != 0;
    }
    return err == RP_ERR_AGAIN ? RP_OK : err;
}
