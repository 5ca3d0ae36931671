/* Looks up causes for an event loop that must not block: each board is asked by its own thread. */
#ifndef RP_ASK_INQUIRY_H
#define RP_ASK_INQUIRY_H

#include "ask/find_cause.h"

enum { RP_INQUIRIES_MAX = 64 };

typedef struct rp_inquiry rp_inquiry;

/* errors  MEMORY */
rp_err rp_inquiry_open(rp_inquiry **out) RP_MUST_CHECK;
/* Threads that still wait, for example for a name server, end later by themselves. Accepts NULL. */
void rp_inquiry_close(rp_inquiry **inquiry);

/* Returns why the board does not answer, as far as known, or NULL. Starts an inquiry if the board
 * was not asked for some seconds. All arguments are copied. The result is valid until the next call
 * for this board. A board that dials is not asked, because its port belongs to the run. */
const rp_cause *rp_inquiry_look(rp_inquiry *inquiry, const rp_roster_entry *entry,
                                const rp_keypair *keys);

#endif
