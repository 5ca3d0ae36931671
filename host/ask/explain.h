/* Why nobody answers at an address, in words for whoever has to go there. */
#ifndef RP_ASK_EXPLAIN_H
#define RP_ASK_EXPLAIN_H

#include <stddef.h>

enum { RP_EXPLAIN_BYTES = 768 };

/* Looks up the name, asks the kernel which interface leads there, and tries to connect, a second an
 * address. `endpoint`: tcp://HOST:PORT. `out` ends with what can be done. */
void rp_ask_explain(const char *endpoint, char *out, size_t bytes);

#endif
