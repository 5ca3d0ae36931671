/* The verb that compares. */
#include <string.h>

#include "cli/cli.h"
#include "lab/lab.h"

rp_err rp_verb_lab(const rp_cli_args *args) {
    rp_lab_options options = {
        .path = args->word[0],
        .out = args->out,
        .jobs = args->jobs,
        .json = strcmp(args->format, "json") == 0,
        .dry_run = args->dry_run,
    };
    return rp_lab(&options);
}
