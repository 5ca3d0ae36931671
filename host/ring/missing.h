/* Why boards of a roster do not come. */
#ifndef RP_RING_MISSING_H
#define RP_RING_MISSING_H

#include "ring/ring.h"
#include "run/cause.h"

/* What these functions look at; the pointers are borrowed. */
typedef struct {
    /* Finds the cause of a board, or NULL; itself NULL: causes are not found out. */
    const rp_cause *(*find_cause)(void *self, const rp_roster_entry *board, const rp_keypair *keys);
    void *find_self;
    const rp_runfile *run;
    const rp_ring *ring;
    uint32_t spares; /* not tried yet on this way back */
    bool is_return;  /* the run has had its boards, so it waits for them whatever the cause */
    bool warms;      /* boards are warmed: all that come are warmed, so the wait goes on */
} rp_missing;

bool rp_missing_ends_wait(const rp_missing *m);
/* A missing board for which waiting does not help, else `otherwise`. */
uint32_t rp_missing_first(const rp_missing *m, uint32_t otherwise);
/* Logs each cause once: `ring`, the same one, remembers that. `longest_ns`: how long the board is
 * waited for. */
void rp_missing_say(const rp_missing *m, rp_ring *ring, int64_t longest_ns);
/* What is known of a board that has not come. errors  REFUSED, TIMEOUT, FAULT */
rp_err rp_missing_fail(const rp_missing *m, uint32_t board, int64_t waited_ns) RP_MUST_CHECK;

#endif
