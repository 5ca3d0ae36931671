/* One recovery: when it began, what is done again, which boards are lost, and when training
 * resumed. */
#ifndef RP_CONTROL_RECOVERY_PROGRESS_H
#define RP_CONTROL_RECOVERY_PROGRESS_H

#include "control/machine.h"
#include "record/summary.h"
#include "record/words.h"
#include "ring/greeting.h"

/* Recoveries listed in the summary; the log has all. */
enum { RP_RECOVERIES_TOLD = 64 };

typedef struct {
    bool is_on;
    rp_controller_fault fault;   /* the fault that began it */
    int64_t since_ns;            /* when that fault was noticed */
    int64_t assign_ns;           /* when ASSIGN began; 0: not yet */
    uint64_t step, microbatches; /* step at the fault, and microbatches to be done again */
    uint32_t spares_tried;       /* in this recovery; only `hurried` ones are tried twice */
    uint32_t hurried;    /* boards that were replaced before ring.wait, as their agents had ended */
    bool second_round;   /* the hurried boards have become spares again */
    uint32_t on_the_way; /* faults in this recovery */
    uint32_t ports_lacked; /* how many of them were a board without a port */
    int64_t port_since_ns; /* time of the first of those */
    int64_t not_before_ns; /* boards are greeted no earlier than this; 0: at once */
    uint32_t in_a_row;     /* recoveries since a checkpoint was written in this life */
    int64_t row_since_ns;  /* when the first of those began */
    rp_summary_recovery done[RP_RECOVERIES_TOLD]; /* completed recoveries */
    uint32_t done_count;
} rp_recovery;

/* Begins a recovery; a fault during one extends it. */
typedef struct {
    const rp_runfile *run;
    const rp_controller_fault *fault;
    uint64_t from; /* step at the fault */
    uint64_t to;   /* step of the checkpoint or copies */
    int64_t now_ns;
} rp_recovery_order;

void rp_recovery_begin(rp_recovery *recovery, const rp_recovery_order *order);
/* The fault is that another process uses a port of a board: delays the next greeting, so that the
 * process may release it. */
void rp_recovery_wait_for_port(rp_recovery *recovery, int64_t wait_ns, int64_t now_ns);
/* In this recovery boards have lacked ports for longer than `wait_ns`. */
bool rp_recovery_had_time_for_port(const rp_recovery *recovery, int64_t wait_ns, int64_t now_ns);
/* The boards are loaded with the checkpoint of `step`. Returns whether this ended a recovery; then
 * `event` describes it for the log. */
bool rp_recovery_note_work(rp_recovery *recovery, uint64_t step, int64_t now_ns,
                           rp_run_event *event) RP_MUST_CHECK;
/* A checkpoint was written; it includes what the boards have counted so far. */
void rp_recovery_note_checkpoint(rp_recovery *recovery, rp_ring *ring);
/* Earlier recoveries since the last new checkpoint; 0 once copies became a checkpoint in this
 * recovery. */
uint32_t rp_recovery_ways_before(const rp_recovery *recovery);
/* Spares not yet tried in this recovery. */
uint32_t rp_recovery_spares(const rp_recovery *recovery, const rp_runfile *run);

/* Before the run stops for want of boards: whether there are boards that were replaced early and
 * may be back since. They then count as untried. Returns true at most once in a recovery. */
bool rp_recovery_try_again(rp_recovery *recovery);

/* Which boards count as lost because of the current fault. */
rp_lost_boards rp_recovery_lost(const rp_recovery *recovery, const rp_machine *machine,
                                const rp_runfile *run, int64_t now_ns);

#endif
