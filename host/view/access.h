/* Who may read: the address that is listened on, the Host header, the token. */
#ifndef RP_VIEW_ACCESS_H
#define RP_VIEW_ACCESS_H

#include <stdint.h>
#include <sys/socket.h>

#include "base/err.h"

enum { RP_VIEW_TOKEN_MIN = 16, RP_VIEW_TOKEN_MAX = 256, RP_VIEW_HOST_BYTES = 256 };

typedef struct {
    struct sockaddr_storage address;
    socklen_t bytes;
    bool is_loopback;
} rp_view_listen;

/* Reads "127.0.0.1:7180", "[::1]:7180" or "localhost:7180"; port 0: any free one.
 * errors USAGE naming --listen */
rp_err rp_view_listen_parse(const char *text, rp_view_listen *out) RP_MUST_CHECK;

/* Reads the token: the first line of a file that only its owner may read. errors USAGE */
rp_err rp_view_token_read(const char *path, char token[static RP_VIEW_TOKEN_MAX + 1]) RP_MUST_CHECK;
/* Compares in a time that does not depend on where they differ. `given` may be NULL. */
bool rp_view_token_is(const char *token, const char *given);

/* Is `host`, of a request, an address of this end of the connection? A page of another site, whose
 * name was made to lead here, has that site's name there. `machine`: this machine's name, or "". */
bool rp_view_host_is_own(const char *host, const struct sockaddr *own, const char *machine);

#endif
