/* The HTTP server: GET only, one thread, stepped by a loop that waits for its descriptor. */
#ifndef RP_VIEW_SERVER_H
#define RP_VIEW_SERVER_H

#include "view/access.h"
#include "view/feeds.h"

enum { RP_VIEW_CLIENTS_MAX = 64 };

typedef struct rp_view_server rp_view_server;

typedef struct {
    const rp_view_listen *listen;
    const char *listen_text; /* for messages */
    const char *token;       /* NULL: none is needed */
    rp_view_feeds *feeds;
} rp_view_server_needs;

/* errors IO: the address cannot be used; MEMORY */
rp_err rp_view_server_open(rp_arena *arena, const rp_view_server_needs *needs,
                           rp_view_server **out) RP_MUST_CHECK;
/* "http://127.0.0.1:7180/" */
const char *rp_view_server_url(const rp_view_server *server);
/* Readable when rp_view_server_step() has something to do. */
int rp_view_server_fd(const rp_view_server *server);
/* Serves what has arrived, and sends news to readers. Returns the time of the next call. */
int64_t rp_view_server_step(rp_view_server *server, int64_t now_ns);
void rp_view_server_close(rp_view_server *server);

#endif
