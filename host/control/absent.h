/* Boards that have had their time to come and have not: spares take their places, or the ring goes
 * on without them, with a new cut over fewer boards. And boards that have come back join it. */
#ifndef RP_CONTROL_ABSENT_H
#define RP_CONTROL_ABSENT_H

#include "control/recovery.h"
#include "setup/arrangement.h"

/* The ring whose boards change; all borrowed for one call. */
typedef struct {
    const rp_runfile *run; /* as it runs: of `setup` */
    rp_ring *ring;
    rp_arrangement *setup;
    rp_recovery *recovery;
    rp_record *record;
    uint64_t step; /* where the run stands, for the log */
    rp_lost_boards lost;
} rp_absent_ring;

/* Spares that have not been tried take the places of lost boards, as many as there are.
 * errors  IO */
rp_err rp_absent_take_spares(const rp_absent_ring *of) RP_MUST_CHECK;
/* Boards that are left if so many are absent, and so many spares may come for them. */
uint32_t rp_absent_left(const rp_runfile *run, uint32_t absent, uint32_t spares);
/* NULL: this run file lets boards leave, so that `left` of them go on; else what in it does not. */
const char *rp_absent_why_stay(const rp_arrangement *setup, uint32_t left);

/* Who has left, for the log. */
typedef struct {
    char names[200];
    uint32_t count;
    const char *why; /* of the first of them */
    const char *odd; /* a board that is a spare now, as each stage has two boards; NULL: none is */
} rp_absent_left_boards;

/* Lost boards leave the ring, after spares have come for as many as possible. errors IO */
rp_err rp_absent_leave(const rp_absent_ring *of, rp_absent_left_boards *left) RP_MUST_CHECK;
/* errors  IO */
rp_err rp_absent_say_left(const rp_absent_ring *of,
                          const rp_absent_left_boards *left) RP_MUST_CHECK;
/* `names`: the boards that have come back. errors IO */
rp_err rp_absent_say_joined(const rp_absent_ring *of, const char *names) RP_MUST_CHECK;
/* The run has as many stages as its boards can hold now. errors USAGE: the cut */
rp_err rp_absent_count_stages(rp_arrangement *setup, rp_measure *measure) RP_MUST_CHECK;
/* The board that computed wrong is the last of the spares now, and is tried no more. */
void rp_absent_forget_wrong(const rp_absent_ring *of);

#endif
