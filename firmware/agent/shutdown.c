/* An agent that ends soon: for other software, for a reboot, or because its device hangs and only a
 * new process can recover it. It greets no host any more, because that host would wait for answers
 * of a process that is gone. */
#include "agent/agent_own.h"

bool rp_agent_device_hangs(const rp_agent *agent) {
    const bool runs = agent->state == RP_AGENT_RUNNING; /* ops are only polled while running */
    return agent->hung || (runs && rp_runner_hangs(agent->run->runner));
}

bool rp_agent_leaves(const rp_agent *agent) {
    return agent->hung || agent->push.starts_again || agent->reboot_ns != 0;
}

rp_err rp_agent_check_device(const rp_agent *agent) {
    return agent->hung
               ? rp_fail(RP_ERR_DEVICE, "the device no longer ends an op: the agent ends, because "
                                        "only a new process can use the device again")
               : RP_OK;
}
