/* Explains to the user why nothing answers at an address. */
#ifndef RP_GREET_EXPLAIN_H
#define RP_GREET_EXPLAIN_H

#include <stddef.h>

enum { RP_EXPLAIN_BYTES = 768 };

typedef enum {
    RP_EXPLAINED_CONNECTS, /* something accepts connections there */
    RP_EXPLAINED_NO_NAME,  /* the name is unknown, or the text is not an address */
    RP_EXPLAINED_AWAY      /* any other reason: the board may still answer */
} rp_explained;

/* Looks up the name, asks the kernel which interface leads there, and tries to connect, up to a
 * second per address. `endpoint`: tcp://HOST:PORT. `out` ends with advice. */
rp_explained rp_explain_address(const char *endpoint, char *out, size_t bytes);

#endif
