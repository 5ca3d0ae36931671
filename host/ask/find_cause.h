/* Finds out within a few seconds why a board does not answer. */
#ifndef RP_ASK_FIND_CAUSE_H
#define RP_ASK_FIND_CAUSE_H

#include "ask/ask.h"

/* Tries the board's address, then asks the board for its holder, for at most wait_ns. A board that
 * dials is not asked, because another socket of this process listens at options->listen. */
void rp_ask_find_cause(const rp_ask_options *options, int64_t wait_ns, rp_cause *out);

#endif
