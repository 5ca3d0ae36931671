/* Changes the boards of a ring when some did not come in time: spares take their places, or they
 * are removed and the model is cut for fewer boards. Also lets boards rejoin. Each change is logged
 * as an event.
 *
 * `tried`: number of spares that took a place, or left, during this recovery; updated here. */
#ifndef RP_SETUP_MEMBERSHIP_H
#define RP_SETUP_MEMBERSHIP_H

#include "ring/greeting.h"
#include "setup/arrangement.h"

/* Untried spares take the places of lost boards, as many as there are. errors IO */
rp_err rp_membership_take_spares(rp_arrangement *a, const rp_lost_boards *lost,
                                 uint32_t *tried) RP_MUST_CHECK;
/* Number of boards that remain if `absent` boards are lost and `spares` spares replace some of
 * them. */
uint32_t rp_membership_count_left(const rp_runfile *run, uint32_t absent, uint32_t spares);
/* Returns why the ring cannot go on with `left` boards: a key of the run file forbids it. NULL: it
 * can. */
const char *rp_membership_why_fixed(const rp_arrangement *a, uint32_t left);

/* Boards that have left, for the log. */
typedef struct {
    char names[200];
    uint32_t count;
    rp_event_kind why; /* reason of the first one */
    const char *odd;   /* a spare now, because each stage takes two boards; NULL: none */
} rp_membership_left;

/* Spares take as many places as possible; all remaining lost boards are removed. errors IO */
rp_err rp_membership_remove_lost(rp_arrangement *a, const rp_lost_boards *lost, uint32_t *tried,
                                 rp_membership_left *left) RP_MUST_CHECK;
/* errors IO */
rp_err rp_membership_log_left(const rp_arrangement *a,
                              const rp_membership_left *left) RP_MUST_CHECK;
/* Sets the number of stages for the current boards. errors USAGE: the cut does not fit */
rp_err rp_membership_count_stages(rp_arrangement *a) RP_MUST_CHECK;
/* Removes the board that computed wrong from the spares, where it is the last. */
void rp_membership_forget_wrong(rp_arrangement *a, uint32_t *tried);

enum { RP_MEMBERSHIP_NAMES_BYTES = 200 };
/* At a pause: boards that have left and answer again are added to the ring; they get stages later.
 * `names`: their names. False: no board was added, or it is too early. */
bool rp_membership_join(rp_arrangement *a,
                        char names[static RP_MEMBERSHIP_NAMES_BYTES]) RP_MUST_CHECK;
/* errors  IO */
rp_err rp_membership_log_joined(const rp_arrangement *a, const char *names) RP_MUST_CHECK;

#endif
