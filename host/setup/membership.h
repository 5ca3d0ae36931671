/* Boards that have had their time to come and have not: spares take their places, or the ring goes
 * on without them, with a new cut over fewer boards. And boards that have come back join it. Each
 * event goes to the record of the run.
 *
 * `tried`: spares that have taken a place on this way back, or have left; it is counted up here. */
#ifndef RP_SETUP_MEMBERSHIP_H
#define RP_SETUP_MEMBERSHIP_H

#include "ring/greeting.h"
#include "setup/arrangement.h"

/* Spares that have not been tried take the places of lost boards, as many as there are.
 * errors  IO */
rp_err rp_membership_take_spares(rp_arrangement *a, const rp_lost_boards *lost,
                                 uint32_t *tried) RP_MUST_CHECK;
/* Boards that are left if so many are absent, and so many spares may come for them. */
uint32_t rp_membership_count_left(const rp_runfile *run, uint32_t absent, uint32_t spares);
/* NULL: this run file lets boards leave, so that `left` of them go on; else what in it does not. */
const char *rp_membership_why_fixed(const rp_arrangement *a, uint32_t left);

/* Who has left, for the log. */
typedef struct {
    char names[200];
    uint32_t count;
    const char *why; /* of the first of them */
    const char *odd; /* a board that is a spare now, as each stage has two boards; NULL: none is */
} rp_membership_left;

/* Lost boards leave the ring, after spares have come for as many as possible. errors IO */
rp_err rp_membership_remove_lost(rp_arrangement *a, const rp_lost_boards *lost, uint32_t *tried,
                                 rp_membership_left *left) RP_MUST_CHECK;
/* errors  IO */
rp_err rp_membership_log_left(const rp_arrangement *a,
                              const rp_membership_left *left) RP_MUST_CHECK;
/* The run has as many stages as its boards can hold now. errors USAGE: the cut */
rp_err rp_membership_count_stages(rp_arrangement *a) RP_MUST_CHECK;
/* The board that computed wrong is the last of the spares now, and is tried no more. */
void rp_membership_forget_wrong(rp_arrangement *a, uint32_t *tried);

enum { RP_MEMBERSHIP_NAMES_BYTES = 200 };
/* At a pause: boards that were away and answer are in the ring from now on, which has no stages for
 * them yet. `names`: of them. False: there are none, or it is too early. */
bool rp_membership_join(rp_arrangement *a,
                        char names[static RP_MEMBERSHIP_NAMES_BYTES]) RP_MUST_CHECK;
/* errors  IO */
rp_err rp_membership_log_joined(const rp_arrangement *a, const char *names) RP_MUST_CHECK;

#endif
