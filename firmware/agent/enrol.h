/* Enrols a new board in a host's roster, by a token (transport/token.h).
 *
 * The board makes its pair of keys, sends its public key over a link that the token's own pair
 * opens, and adds the host to its list once the host has confirmed that the roster is written. If
 * the process is killed at any point, the next start continues; after success it does nothing. */
#ifndef RP_AGENT_ENROL_H
#define RP_AGENT_ENROL_H

#include "base/arena.h"
#include "base/clock.h"

typedef struct {
    const char *token; /* "TOKEN@[tcp://]ADDRESS:PORT", or "@FILE" with that */
    const char *keys;  /* folder */
    uint32_t port;     /* port where it will listen; 0: it dials */
    const char *board; /* name of its profile */
    const rp_clock *clock;
    bool (*stopped)(void *context);                     /* polled continuously */
    void (*waiting)(void *context, const char *status); /* called every few seconds; may be NULL */
    void *context;
    bool patient; /* retry after a refusal, because the host may open the token later */
} rp_agent_enrolment;

/* Waits for the host without a time limit. Prints this board's fingerprint and the host that has
 * enrolled it. Logs every few seconds which address is tried and why that has failed.
 * errors  USAGE: the text or its file; REFUSED: the token has expired, is unknown (unless
 *         `patient`), or another board has used it; INTERRUPTED; IO */
rp_err rp_agent_enrol(rp_arena *arena, const rp_agent_enrolment *enrolment) RP_MUST_CHECK;

#endif
