/* Installs, accepts or reverts software on the boards of a roster, outside of runs. */
#ifndef RP_PUSH_PUSH_H
#define RP_PUSH_PUSH_H

#include "link/link.h"
#include "run/roster.h"

typedef enum {
    RP_PUSH_SENDS,   /* the board has `bytes` of `of` */
    RP_PUSH_CHECKS,  /* the board has all bytes and verifies them */
    RP_PUSH_TRIES,   /* `release` is on trial; the board restarts its agent */
    RP_PUSH_INSTALLS /* the board writes a whole system and reboots */
} rp_push_phase;

typedef struct {
    const char *board; /* its name */
    rp_push_phase phase;
    uint64_t bytes, of, release;
    bool begins; /* first report of this phase */
} rp_push_progress;

typedef struct {
    const rp_roster_entry *board; /* borrowed */
    const char *listen;           /* address for boards that dial this host; NULL: no board dials */
    const rp_keypair *keys;
    const rp_clock *clock;
    rp_push_action action;
    const char *bundle; /* for BUNDLE: path of the file */
    double bytes_per_s; /* rate limit; 0: no limit */
    int64_t wait_ns;    /* for BUNDLE: timeout for the end of the trial; 0: do not wait */
    bool (*stopped)(void *context);
    /* For BUNDLE: is called at each change of phase and after each piece. */
    void (*progress)(void *context, const rp_push_progress *progress);
    void *context;
} rp_push_options;

/* Runs the action on one board. *said: its last answer, with the outcome STATE or, for a BUNDLE
 * without wait_ns, INSTALLED. errors  FAULT: the board is silent, has a run, its software is too
 * old, or the new software failed its trial, which `said` shows; REFUSED, with the board's reason,
 * or keys do not match; INTERRUPTED; IO: the file; those of a link */
rp_err rp_push_to(const rp_push_options *options, rp_Pushed *said) RP_MUST_CHECK;

#endif
