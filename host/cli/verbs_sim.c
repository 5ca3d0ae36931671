#include <string.h>

#include "cli/cli.h"
#include "sim/sim.h"

rp_err rp_verb_sim(const rp_cli_args *args) {
    const rp_sim_options options = {
        .run_path = args->word[0],
        .set = args->set,
        .set_count = args->set_count,
        .executor = args->executor,
        .plan = args->plan,
        .profile = args->profile,
        .out = args->out,
        .resume = args->resume,
        .quiet = args->quiet,
        .once = args->once,
        .faults = args->faults,
        .seed_first = args->seed_first,
        .seed_last = args->seed_last,
        .jobs = args->jobs,
        .trace = args->trace,
        .format = strcmp(args->format, "json") == 0 ? RP_FORMAT_JSON : RP_FORMAT_TEXT,
    };
    return rp_sim(&options);
}
