/* The controller of one ring: a state machine that is stepped. It plans the cut, brings boards up,
 * feeds them, decides on every step, saves, and ends the run.
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
 *   err = rp_controller_close(&c);
 */
#ifndef RP_CONTROL_CONTROLLER_H
#define RP_CONTROL_CONTROLLER_H

#include "control/env.h"
#include "control/options.h"
#include "ring/waits.h"

typedef struct rp_controller rp_controller;

/* Reads and checks the run file and what the run starts from; starts nothing. `env` is copied.
 * errors  USAGE, SHAPE, IO, FORMAT: exit code 2 */
rp_err rp_controller_open(const rp_controller_env *env, const rp_controller_options *options,
                          rp_controller **out) RP_MUST_CHECK;

/* Takes what has come, does what is due, sends what there is room for. Returns the time at which it
 * has to be called again, however quiet it is until then; INT64_MAX when it has ended. Its links'
 * own deadlines come on top: rp_link_wait() heeds them, another loop asks them. */
int64_t rp_controller_step(rp_controller *controller, int64_t now_ns);

bool rp_controller_has_ended(const rp_controller *controller);

/* Appends what this controller waits for; what finds no place is found at the next deadline. */
void rp_controller_add_waits(const rp_controller *controller, rp_wait_list *list);
/* For loops of another kind, which have no use for the list: readies all links for a wait and
 * returns the earliest of their deadlines; INT64_MAX without links. */
int64_t rp_controller_before_wait(const rp_controller *controller, int64_t now_ns);

/* Events from the program. The first interrupt ends the run in an orderly way, the second at once;
 * `child_ended`: some child process of this process has. */
void rp_controller_interrupt(rp_controller *controller);
/* The first interrupt, however often it is asked for. */
void rp_controller_ask_to_stop(rp_controller *controller);
void rp_controller_child_ended(rp_controller *controller);

/* Why nothing happens: in `state` since `since_ns` it waits for `what` from `board`. */
typedef struct {
    const char *state;
    const char *what;
    const char *board; /* NULL: from no board, or from any */
    uint64_t step;     /* that is next to be trained */
    int64_t since_ns;
} rp_controller_waiting;
void rp_controller_waiting_of(const rp_controller *controller, rp_controller_waiting *out);

/* What the run came to, as its exit code says; a FAULT or INTERRUPTED run can be resumed. Before it
 * has ended: ends everything at once. */
rp_err rp_controller_close(rp_controller **controller);
/* For a simulation: as the end of its process would leave it. Nothing is written or freed; only the
 * lock of the run folder goes. */
void rp_controller_crash(rp_controller **controller);

#endif
