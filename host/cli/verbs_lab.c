/* lab: compares methods. */
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/signals.h"
#include "lab/lab.h"

rp_err rp_verb_lab(rp_arena *arena, const rp_cli_args *args) {
    (void)arena;
    rp_lab_options options = {
        .path = args->words.item[0],
        .out = args->out,
        .jobs = args->jobs,
        .keys = args->keys,
        .quiet = args->quiet,
        .json = rp_cli_is_json(args),
        .dry_run = args->dry_run,
    };
    rp_err err = rp_cli_open_signals(&options.signal_fd);
    if (err == RP_OK) {
        err = rp_lab(&options);
        (void)close(options.signal_fd);
    }
    return err;
}
