/* An agent that ends soon: for other software, for a reboot, or because its device hangs, which
 * only a new process gets back. It greets no host any more, for that host would wait for answers of
 * a process that has gone. */
#include <inttypes.h>

#include "agent/agent_own.h"
#include "base/log.h"
#include "sched/op_limit.h"

bool rp_agent_device_hangs(const rp_agent *agent) {
    if (agent->hung) {
        return true;
    }
    if (agent->state != RP_AGENT_RUNNING) {
        return false; /* the ops are not polled */
    }
    const rp_runner_wait wait = rp_runner_wait_of(agent->run->runner);
    const int64_t for_ns = rp_clock_now_ns(agent->clock) - wait.since_ns;
    return wait.what == RP_WAITING_DEVICE && for_ns >= rp_op_limit_ns(wait.longest_ns);
}

bool rp_agent_leaves(const rp_agent *agent) {
    return agent->hung || agent->push.starts_again || agent->reboot_ns != 0;
}

rp_err rp_agent_check_device(const rp_agent *agent) {
    return agent->hung ? rp_fail(RP_ERR_DEVICE, "the device does not end an op any more: the agent "
                                                "ends, and a new process has to take the device")
                       : RP_OK;
}
