/* The controller of one ring, a state machine driven by rp_controller_step(). It plans the cut,
 * starts the boards, feeds them, decides on every step, saves, and ends the run.
 *
 *   start -> hello -> profile -> plan -> assign -> load -> [train, evaluate, statistics, save]*
 *         -> close -> ended;  at a pause plan -> drain -> save -> hello when links have changed;
 *   any state -- fault --> recover -> hello | close
 *
 * `wire/PROTOCOL.md` draws it; states.c is the table. Nothing here blocks or reads a clock, and no
 * state is process-wide: one thread may step several controllers.
 *
 *   rp_controller_open(&env, &options, &c)
 *   while (!rp_controller_has_ended(c)) {
 *       deadline = rp_controller_step(c, now);
 *       rp_controller_add_waits(c, &list); wait for the list until the deadline;
 *   }
 *   err = rp_controller_close(&c); */
#ifndef RP_CONTROL_CONTROLLER_H
#define RP_CONTROL_CONTROLLER_H

#include "control/env.h"
#include "control/options.h"
#include "ring/waits.h"

typedef struct rp_controller rp_controller;

/* Reads and checks the run file and the state that the run starts from; starts nothing. `env` is
 * copied. errors USAGE, SHAPE, IO, FORMAT: exit code 2 */
rp_err rp_controller_open(const rp_controller_env *env, const rp_controller_options *options,
                          rp_controller **out) RP_MUST_CHECK;

/* Handles received messages, acts on timeouts, and sends what the links can take. Returns the
 * latest time of the next call; INT64_MAX when the run has ended. The deadlines of its links are
 * not included: rp_link_wait() heeds them, other loops use rp_controller_before_wait(). */
int64_t rp_controller_step(rp_controller *controller, int64_t now_ns);

bool rp_controller_has_ended(const rp_controller *controller);

/* Appends the links and descriptors that can wake this controller. Those for which the list has no
 * room are checked at the next deadline. */
void rp_controller_add_waits(const rp_controller *controller, rp_wait_list *list);
/* For event loops that do not use rp_wait_list: prepares all links for a wait and returns the
 * earliest of their deadlines; INT64_MAX without links. */
int64_t rp_controller_before_wait(const rp_controller *controller, int64_t now_ns);

/* Events from the program. The first interrupt ends the run in an orderly way, the second at once.
 * `child_ended`: a child process of this process has ended. */
void rp_controller_interrupt(rp_controller *controller);
/* Like the first interrupt, but calling it repeatedly never counts as the second. */
void rp_controller_ask_to_stop(rp_controller *controller);
void rp_controller_child_ended(rp_controller *controller);

/* What the controller waits for: in `state` since `since_ns` it waits for `what` from `board`. */
typedef struct {
    const char *state;
    const char *what;
    const char *board; /* NULL: from no board, or from any board */
    uint64_t step;     /* the next step to train */
    int64_t since_ns;
} rp_controller_waiting;
void rp_controller_waiting_of(const rp_controller *controller, rp_controller_waiting *out);

/* Returns the result of the run, from which the exit code follows; a run with FAULT or INTERRUPTED
 * can be resumed. If the run has not ended, this ends it at once. */
rp_err rp_controller_close(rp_controller **controller);
/* For simulations: leaves everything as a killed process would. Writes and frees nothing; only
 * releases the lock of the run folder. */
void rp_controller_crash(rp_controller **controller);

#endif
