/* What many seeds came to, for people and as JSON. */
#ifndef RP_SIM_TALLY_H
#define RP_SIM_TALLY_H

#include <jansson.h>

#include "sim/options.h"
#include "sim/seeds.h"

/* Prints it on standard output; as text with the command that repeats the first bad seed. `more`:
 * further marks for the JSON form, taken; NULL: none. errors IO */
rp_err rp_sim_print_tally(const rp_sim_options *options, const rp_sim_tally *tally,
                          json_t *more) RP_MUST_CHECK;
/* errors  FAULT: a run hung or ended wrong */
rp_err rp_sim_check_tally(const rp_sim_tally *tally) RP_MUST_CHECK;

#endif
