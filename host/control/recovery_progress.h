/* The way back to work after a fault: when it began, what is done again, which boards it has to do
 * without, and when the run is at work again. */
#ifndef RP_CONTROL_RECOVERY_PROGRESS_H
#define RP_CONTROL_RECOVERY_PROGRESS_H

#include "control/machine.h"
#include "record/summary.h"
#include "ring/greeting.h"

/* Recoveries that the summary has; more are only in the log. */
enum { RP_RECOVERIES_TOLD = 64 };

typedef struct {
    bool is_on;
    rp_controller_fault fault;   /* that began it */
    int64_t since_ns;            /* when that was noticed */
    int64_t assign_ns;           /* when the boards could get their stages again; 0: not yet */
    uint64_t step, microbatches; /* where the run was, and what it does again */
    uint32_t spares_tried;       /* on this way: a board that has not come is not tried again */
    uint32_t on_the_way;         /* faults since it began */
    uint32_t ports_lacked;       /* of them: a board lacked a port, */
    int64_t port_since_ns;       /* first then; */
    int64_t not_before_ns;       /* the boards are asked again; 0: at once */
    uint32_t in_a_row;           /* ways back since the last checkpoint that was written here, */
    int64_t row_since_ns;        /* the first of which began then */
    rp_summary_recovery done[RP_RECOVERIES_TOLD]; /* that have led back to work */
    uint32_t done_count;
} rp_recovery;

/* The way back begins, or a fault on the way lengthens it. */
typedef struct {
    const rp_runfile *run;
    const rp_controller_fault *fault;
    uint64_t from; /* step at which the run was */
    uint64_t to;   /* step of the position to go on from */
    int64_t now_ns;
} rp_recovery_order;

void rp_recovery_begin(rp_recovery *recovery, const rp_recovery_order *order);
/* The fault at hand is that a board lacks a port, which another process has: boards are asked again
 * later, so that it may let go of it. */
void rp_recovery_wait_for_port(rp_recovery *recovery, int64_t wait_ns, int64_t now_ns);
/* On this way boards have lacked ports for longer than `wait_ns`. */
bool rp_recovery_had_time_for_port(const rp_recovery *recovery, int64_t wait_ns, int64_t now_ns);
/* The boards hold the checkpoint of `step`. True: the run was being recovered, and is at work
 * again; *text says so for the log. */
enum { RP_RECOVERY_TEXT = 200 };
bool rp_recovery_note_work(rp_recovery *recovery, uint64_t step, int64_t now_ns,
                           char text[static RP_RECOVERY_TEXT]) RP_MUST_CHECK;
/* A checkpoint has been written: what boards have counted so far is in it. */
void rp_recovery_note_checkpoint(rp_recovery *recovery, rp_ring *ring);
/* Ways back without a new checkpoint before the one at hand; 0 after copies have become a
 * checkpoint on a way back. */
uint32_t rp_recovery_ways_before(const rp_recovery *recovery);
/* Spares that have not been tried on this way. */
uint32_t rp_recovery_spares(const rp_recovery *recovery, const rp_runfile *run);

/* Which boards count as lost at the fault at hand. */
rp_lost_boards rp_recovery_lost(const rp_recovery *recovery, const rp_machine *machine,
                                const rp_runfile *run, int64_t now_ns);

#endif
