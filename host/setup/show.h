/* Writes the results of `ringpipe plan` and `profile`, and a run folder's files before the first
 * step. */
#ifndef RP_SETUP_SHOW_H
#define RP_SETUP_SHOW_H

#include "setup/arrangement.h"

typedef struct {
    bool profile;    /* write the profile; else the plan */
    const char *out; /* JSON file to write; NULL: none */
    FILE *result;    /* receives it in `format`; NULL: none */
    rp_format format;
} rp_show_order;

/* Checks that order->out may be overwritten. errors USAGE: it is a file of another kind */
rp_err rp_show_check_out(const rp_show_order *order) RP_MUST_CHECK;
rp_err rp_show_result(rp_arrangement *a, const rp_show_order *order) RP_MUST_CHECK;
/* Writes run.yaml with every --set, plan.json and all other files of the run folder. `command`:
 * command line that started the run; NULL: unknown. */
rp_err rp_show_write_folder(rp_arrangement *a, const char *command) RP_MUST_CHECK;

#endif
