/* Talks to the boards of a roster about their software, in no run. */
#ifndef RP_PUSH_PUSH_H
#define RP_PUSH_PUSH_H

#include "link/link.h"
#include "run/roster.h"

typedef enum {
    RP_PUSH_SENDS,   /* `bytes` of `of` have been sent, or were there */
    RP_PUSH_CHECKS,  /* the board has all and checks it */
    RP_PUSH_TRIES,   /* `release` is on trial; the board restarts its agent */
    RP_PUSH_INSTALLS /* the board writes a whole system and reboots */
} rp_push_phase;

typedef struct {
    const char *board; /* its name */
    rp_push_phase phase;
    uint64_t bytes, of, release;
    bool begins; /* of this phase */
} rp_push_progress;

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
    /* BUNDLE: what is being done, at each change and after each piece. */
    void (*progress)(void *context, const rp_push_progress *progress);
    void *context;
} rp_push_options;

/* What the board said last; *said.outcome is STATE or, of a BUNDLE without wait_ns, INSTALLED.
 * errors  FAULT: it is silent, has a run, or its software knows no PUSH; or the new software did
 * not become good, which `said` then shows; REFUSED: it says why, or the keys do not fit;
 * INTERRUPTED; IO: the file; those of a link */
rp_err rp_push_to(const rp_push_options *options, rp_Pushed *said) RP_MUST_CHECK;

#endif
