/* Talks to the boards of a roster about their software, in no run. */
#ifndef RP_PUSH_PUSH_H
#define RP_PUSH_PUSH_H

#include "link/link.h"
#include "run/roster.h"

typedef struct {
    const rp_roster_entry *board; /* borrowed */
    const char *listen;           /* where boards that dial find this host; NULL: none does */
    const rp_keypair *keys;
    const rp_clock *clock;
    rp_push_action action;
    const char *bundle; /* BUNDLE: the file */
    double bytes_per_s; /* 0: as fast as the way is */
    int64_t wait_ns;    /* BUNDLE: for the board to say that it is good; 0: do not wait */
    bool (*stopped)(void *context);
    /* How many bytes the board has, now and then. */
    void (*progress)(void *context, const char *board, uint64_t bytes, uint64_t of);
    void *context;
} rp_push_options;

/* What the board said last; *said.outcome is STATE or, of a BUNDLE without wait_ns, INSTALLED.
 * errors  FAULT: it is silent, has a run, or its software knows no PUSH; or the new software did
 * not become good, which `said` then shows; REFUSED: it says why, or the keys do not fit;
 * INTERRUPTED; IO: the file; those of a link */
rp_err rp_push_to(const rp_push_options *options, rp_Pushed *said) RP_MUST_CHECK;

#endif
