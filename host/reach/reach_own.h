/* Shared by reach.c, trials.c and fleet.c. */
#ifndef RP_REACH_REACH_OWN_H
#define RP_REACH_REACH_OWN_H

#include "reach/reach.h"

/* The entry of a board that has not been greeted yet. */
rp_reach_board reach_board(const rp_roster_entry *entry);
/* Takes what the greeting has found. */
void reach_note(const rp_greet *greet, uint32_t board, rp_reach_board *out);

/* trials.c: neighbours that are there try links to each other. errors of a link */
rp_err reach_try_pairs(rp_greet *greet, const rp_reach_options *options,
                       rp_reach_result *out) RP_MUST_CHECK;

#endif
