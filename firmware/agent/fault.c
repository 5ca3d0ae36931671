/* An error on a board ends its run and is reported to the host. */
#include <stdio.h>

#include "agent/agent_own.h"
#include "base/log.h"

static rp_FaultClass fault_class_of(rp_err err) {
    switch (err) {
    case RP_ERR_AGAIN:
    case RP_ERR_TIMEOUT:
        return RP_FAULT_TRANSIENT;
    case RP_ERR_MEMORY:
    case RP_ERR_IO:
    case RP_ERR_DATA:
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

void rp_agent_tell_fault(rp_agent *agent, rp_err code) {
    rp_Frame frame = {.which_body = RP_KIND_FAULT};
    rp_Fault *fault = &frame.body.fault;
    fault->err = (uint32_t)code;
    fault->fault_class = fault_class_of(code);
    (void)snprintf(fault->text, sizeof fault->text, "%s", rp_err_message());
    if (rp_agent_answer(agent, &frame, NULL, 0) != RP_OK) {
        rp_log_warn("the fault could not be reported to the host");
    }
}

void rp_agent_report_fault(rp_agent *agent, rp_err code) {
    char why[RP_ERR_MESSAGE_BYTES]; /* copied, because reporting may fail as well */
    (void)snprintf(why, sizeof why, "%s", rp_err_message());
    rp_agent_tell_fault(agent, code);
    rp_agent_end_run(agent, why);
}
