#include "sim/options.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

rp_err rp_sim_check_options(const rp_sim_options *options) {
    if ((options->out || options->resume || options->once) &&
        options->seed_first != options->seed_last) {
        return rp_fail(RP_ERR_USAGE, "--%s is for one run, --seeds are many",
                       options->out      ? "out"
                       : options->resume ? "resume"
                                         : "once");
    }
    if (options->out && access(options->out, F_OK) == 0) {
        return rp_fail(RP_ERR_USAGE, "--out: %s exists; name a folder that does not", options->out);
    }
    if (strcmp(options->faults, "none") != 0 && strcmp(options->faults, "all") != 0 &&
        access(options->faults, R_OK) != 0) {
        return rp_fail(RP_ERR_USAGE, "--faults: expected none, all or a file, found '%s': %s",
                       options->faults, strerror(errno));
    }
    return RP_OK;
}
