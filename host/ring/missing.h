/* Why boards of a roster do not come. */
#ifndef RP_RING_MISSING_H
#define RP_RING_MISSING_H

#include "ring/ring.h"
#include "run/cause.h"

/* Facts that these functions use; all pointers are borrowed. */
typedef struct {
    /* Returns the cause for a board, or NULL. May itself be NULL: causes are not looked up. */
    const rp_cause *(*find_cause)(void *self, const rp_roster_entry *board, const rp_keypair *keys);
    void *find_self;
    const rp_runfile *run;
    const rp_ring *ring;
    uint32_t spares; /* spares not yet tried in this recovery */
    bool is_return;  /* the run had its boards before, so it keeps waiting whatever the cause */
    bool warms;      /* `boards warm`: the boards that come are warmed, so the wait goes on */
} rp_missing;

bool rp_missing_ends_wait(const rp_missing *m);
/* The first missing board for which waiting does not help; else `otherwise`. */
uint32_t rp_missing_first(const rp_missing *m, uint32_t otherwise);
/* Logs each cause once; `ring` (the same as m->ring) stores that. `longest_ns`: how long the run
 * waits for the board. */
void rp_missing_say(const rp_missing *m, rp_ring *ring, int64_t longest_ns);
/* Returns the error for a board that has not come. errors REFUSED, TIMEOUT, FAULT */
rp_err rp_missing_fail(const rp_missing *m, uint32_t board, int64_t waited_ns) RP_MUST_CHECK;

#endif
