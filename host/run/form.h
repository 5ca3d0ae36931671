/* Whether a run file describes one ring, several of them, or sites. */
#ifndef RP_RUN_FORM_H
#define RP_RUN_FORM_H

#include "base/config.h"

typedef enum { RP_FORM_RING, RP_FORM_LANES, RP_FORM_SITES } rp_run_form;

/* `path`: a run file, or the folder of a run; `set` as --set. A lane of a run with lanes has the
 * key `lanes` too, but is one ring. The other keys are not checked.
 * errors  those of rp_config_read_file(), of rp_config_set() and of the key `lanes` */
rp_err rp_run_find_form(const char *path, const char *const *set, uint32_t set_count,
                        rp_run_form *out) RP_MUST_CHECK;

#endif
