/* `ringpipe boards warm`: the ring comes up to its kernels, and spares in every place of it. */
#ifndef RP_CONTROL_OWN_WARM_H
#define RP_CONTROL_OWN_WARM_H

#include "ring/ring.h"

typedef struct rp_controller rp_controller;

/* warm.c, warm_spares.c */
typedef struct {
    const char *name;
    rp_board_building built;
    uint8_t *took;       /* of a spare: by place, whether it has built what is needed there */
    const char *missing; /* of a spare: why it has not built all of that; NULL */
} rp_warm_row;

typedef struct {
    int64_t end_ns, said_ns; /* 0: not yet */
    uint64_t said_ready;
    rp_warm_row *row;        /* the ring's boards by place, then the spares; NULL: not yet */
    rp_roster_entry *roster; /* the same, as it was */
    uint32_t places, spares; /* how many */
    uint32_t round;          /* of spares in places */
    bool again;              /* a board was lost, and is waited for until end_ns */
} rp_warm;

/* warm.c: nothing of it but with WARM. The state is one in which boards build, until the deadline;
 * what of it is left for an order, 0: it is none ahead of a run; progress; the result. errors
 * FORMAT
 */
void rp_warm_begin(rp_controller *c);
uint32_t rp_warm_order_s(const rp_controller *c);
void rp_warm_say(rp_controller *c);
rp_err rp_warm_show(const rp_controller *c) RP_MUST_CHECK;
/* warm_spares.c: behind the ring, each spare builds what every place of the ring needs. All boards
 * are ready: the next round of that, or the result and the end. errors MEMORY, IO, FORMAT */
rp_err rp_warm_go_on(rp_controller *c) RP_MUST_CHECK;
/* This place is none of the round: its board has nothing to do. */
bool rp_warm_rests(const rp_controller *c, uint32_t board);
/* The fault at hand ends the part of some spares, and not more. */
bool rp_warm_may_leave(const rp_controller *c);
/* A board was lost while there is time left: it is waited for, and warming goes on. */
bool rp_warm_may_go_again(const rp_controller *c);
rp_err rp_warm_go_again(rp_controller *c) RP_MUST_CHECK;
/* How long a lost board may take, from its first greeting on; 0: none was lost. */
int64_t rp_warm_patience_ns(const rp_controller *c);
rp_err rp_warm_leave(rp_controller *c) RP_MUST_CHECK;

#endif
