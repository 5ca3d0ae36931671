/* What `ringpipe plan` and `profile` answer, and what a run folder is told before the first step.
 */
#ifndef RP_CONTROL_SHOW_H
#define RP_CONTROL_SHOW_H

#include "control/view.h"

/* Checks that a plan or a profile may be written to --out. errors USAGE: another file is there */
rp_err rp_show_check_out(const rp_controller_options *options) RP_MUST_CHECK;
/* Writes the plan or the profile to the file that the options name, and to the result in its
 * format. */
rp_err rp_show_result(const rp_run_view *view, bool profile) RP_MUST_CHECK;
/* Writes run.yaml with every --set, plan.json and the rest of the run folder. */
rp_err rp_show_write_folder(const rp_run_view *view) RP_MUST_CHECK;

#endif
