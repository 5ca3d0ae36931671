/* The struct of this room, for its own files. */
#ifndef RP_WARM_WARM_OWN_H
#define RP_WARM_WARM_OWN_H

#include "warm/warm.h"

typedef struct {
    const char *name;
    rp_board_building built;
    uint8_t *took;       /* for spares, by place: it has built what is needed there */
    const char *missing; /* for spares: why it has not built everything; NULL: it has */
} rp_warm_row;

struct rp_warm {
    rp_warm_needs needs;
    rp_arena *arena;
    int64_t end_ns, said_ns; /* 0: not yet */
    uint64_t said_ready;
    rp_warm_row *row;        /* the ring's boards by place, then the spares; NULL: not yet */
    rp_roster_entry *roster; /* the original roster, in the same order; NULL: local boards */
    uint32_t places, spares; /* their numbers */
    uint32_t round;          /* number of the round */
    bool waits;              /* a board was lost, and may come back until end_ns */
};

/* show.c. errors FORMAT, IO */
rp_err rp_warm_show(const rp_warm *warm) RP_MUST_CHECK;

#endif
