/* What `ringpipe plan` and `profile` answer, and what a run folder is told before the first step.
 */
#ifndef RP_SETUP_SHOW_H
#define RP_SETUP_SHOW_H

#include "setup/arrangement.h"

typedef struct {
    bool profile;     /* the profile; else the plan */
    const char *out;  /* file for it as JSON; NULL: none */
    FILE *result;     /* gets it in `format`; NULL: nothing is shown */
    rp_format format; /* of `result` */
} rp_show_order;

/* Checks that a plan or a profile may be written to order->out. errors USAGE: another file is there
 */
rp_err rp_show_check_out(const rp_show_order *order) RP_MUST_CHECK;
rp_err rp_show_result(rp_arrangement *a, const rp_show_order *order) RP_MUST_CHECK;
/* Writes run.yaml with every --set, plan.json and the rest of the run folder. `command`: that
 * started the run; NULL: not known. */
rp_err rp_show_write_folder(rp_arrangement *a, const char *command) RP_MUST_CHECK;

#endif
