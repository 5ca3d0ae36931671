/* A board that nobody knows yet gets into a host's roster, by a token (transport/token.h).
 *
 * It makes its pair of keys, tells the host its public key over a link that the token's own pair
 * opens, and puts the host on its list once the host has said that the roster is written. Killed
 * anywhere, the same start goes on; done once, it does nothing. */
#ifndef RP_AGENT_ENROL_H
#define RP_AGENT_ENROL_H

#include "base/arena.h"
#include "base/clock.h"

typedef struct {
    const char *token; /* "TOKEN@[tcp://]ADDRESS:PORT", or "@FILE" with that */
    const char *keys;  /* folder */
    uint32_t port;     /* where it will listen; 0: it dials */
    const char *board; /* the name of its profile */
    const rp_clock *clock;
    bool (*stopped)(void *context);                     /* asked all the time */
    void (*waiting)(void *context, const char *status); /* told every few seconds; may be NULL */
    void *context;
    bool patient; /* a refusal is asked again, since who refuses may open the token later */
} rp_agent_enrolment;

/* Waits for the host for as long as it takes. Prints this board's fingerprint and which host has
 * enrolled it. The log says every few seconds which address is tried and why that has not worked.
 * errors  USAGE: the text or its file;
 * REFUSED: the token has ended, is unknown (unless `patient`), or another
 * board has used it; INTERRUPTED; IO */
rp_err rp_agent_enrol(rp_arena *arena, const rp_agent_enrolment *enrolment) RP_MUST_CHECK;

#endif
