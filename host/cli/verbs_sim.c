#include <string.h>

#include "cli/cli.h"
#include "run/form.h"
#include "sim/sim.h"
#include "simsites/simsites.h"

rp_err rp_verb_sim(rp_arena *arena, const rp_cli_args *args) {
    rp_run_form form;
    rp_err err;
    (void)arena;
    const rp_sim_options options = {
        .run_path = args->words.item[0],
        .set = args->set.item,
        .set_count = args->set.count,
        .executor = args->sim.executor,
        .plan = args->run.plan,
        .profile = args->run.profile,
        .out = args->out,
        .resume = args->run.resume,
        .quiet = args->quiet,
        .once = args->sim.once,
        .faults = args->sim.faults,
        .seed_first = args->sim.seeds.first,
        .seed_last = args->sim.seeds.last,
        .jobs = args->jobs,
        .trace = args->sim.trace,
        .format = rp_cli_is_json(args) ? RP_FORMAT_JSON : RP_FORMAT_TEXT,
    };
    RP_TRY(rp_run_find_form(options.run_path, options.set, options.set_count, &form));
    err = form == RP_FORM_SITES ? rp_sim_sites(&options) : rp_sim(&options);
fail:
    return err;
}
