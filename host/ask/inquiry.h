/* Causes for a loop that must not block: each board is asked by a thread of its own. */
#ifndef RP_ASK_INQUIRY_H
#define RP_ASK_INQUIRY_H

#include "ask/find_cause.h"

enum { RP_INQUIRIES_MAX = 64 };

typedef struct rp_inquiry rp_inquiry;

/* errors  MEMORY */
rp_err rp_inquiry_open(rp_inquiry **out) RP_MUST_CHECK;
/* Threads that still wait, for a name server say, end by themselves later. NULL is accepted. */
void rp_inquiry_close(rp_inquiry **inquiry);

/* Why the board does not answer: what is known, or NULL. Begins to ask about a board that was not
 * asked about for some seconds. Everything is copied. The result lives until the next call for this
 * board. A board that dials is not asked: the port where it dials is the run's. */
const rp_cause *rp_inquiry_look(rp_inquiry *inquiry, const rp_roster_entry *entry,
                                const rp_keypair *keys);

#endif
