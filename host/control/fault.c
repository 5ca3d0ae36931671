#include "control/fault.h"

rp_FaultClass rp_fault_classify(rp_err err, bool board, bool begun) {
    switch (err) {
    case RP_ERR_REFUSED:
        return RP_FAULT_SECURITY;
    case RP_ERR_INTERRUPTED:
    case RP_ERR_DATA:
        return RP_FAULT_USER;
    case RP_ERR_USAGE:
    case RP_ERR_FORMAT:
    case RP_ERR_SHAPE:
    case RP_ERR_LIMIT:
    case RP_ERR_IO:
        return begun ? RP_FAULT_FATAL : RP_FAULT_USER;
    default:
        return board                      ? RP_FAULT_BOARD
               : rp_err_is_transient(err) ? RP_FAULT_TRANSIENT
                                          : RP_FAULT_FATAL;
    }
}

const char *rp_fault_class_name(rp_FaultClass fault_class) {
    static const char *const names[] = {
        [RP_FAULT_UNKNOWN] = "unknown",   [RP_FAULT_TRANSIENT] = "transient",
        [RP_FAULT_BOARD] = "board",       [RP_FAULT_USER] = "user",
        [RP_FAULT_SECURITY] = "security", [RP_FAULT_FATAL] = "fatal"};
    return fault_class < sizeof names / sizeof *names ? names[fault_class] : names[0];
}

rp_err rp_fault_result(rp_err err, bool begun) {
    return begun && rp_err_exit_code(err) == 2 && err != RP_ERR_DATA ? RP_ERR_FAULT : err;
}
