#include "view/server.h"

#include <errno.h>
#include <microhttpd.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "view/page.h"
#include "view/stream.h"

enum {
    SLOTS = RP_VIEW_CLIENTS_MAX + 16, /* more than served, so that those get an answer */
    REQUEST_BYTES = 16384,
    IDLE_S = 5,  /* a connection without a request */
    SLOW_S = 60, /* a reader that takes nothing of what is sent */
    BLOCK_BYTES = 16384,
    PATH_BYTES = 4096
};
static const int64_t REQUEST_NS = 5 * RP_NS_PER_S;
static const int64_t TICK_NS = RP_NS_PER_S / 10;
static const int64_t REST_NS = RP_NS_PER_S;

/* A connection. */
typedef struct {
    rp_view_server *server;
    bool used, served;
    int fd;
    int64_t since_ns; /* start of the request that is being received; 0: none */
} slot;

/* A connection that follows a run. */
typedef struct {
    rp_view_server *server;
    struct MHD_Connection *connection;
    rp_view_stream *stream; /* NULL: unused */
    bool suspended;
} reader;

struct rp_view_server {
    rp_view_server_needs needs;
    struct MHD_Daemon *daemon;
    int epoll_fd;
    char url[128], machine[256];
    rp_clock clock;
    bool ending;
    uint32_t served;
    slot slots[SLOTS];
    reader readers[RP_VIEW_CLIENTS_MAX];
};

/* ---- answers --------------------------------------------------------------------------------- */

static void add_header(struct MHD_Response *response, const char *name, const char *value) {
    (void)MHD_add_response_header(response, name, value);
}

static void add_headers(struct MHD_Response *response, const char *type) {
    add_header(response, "Content-Type", type);
    add_header(response, "Content-Security-Policy",
               "default-src 'none'; connect-src 'self'; style-src 'self'; script-src 'self'; "
               "base-uri 'none'; form-action 'none'; frame-ancestors 'none'");
    add_header(response, "X-Content-Type-Options", "nosniff");
    add_header(response, "Referrer-Policy", "no-referrer");
    add_header(response, "Cross-Origin-Resource-Policy", "same-origin");
    add_header(response, "Cache-Control", "no-store");
}

/* Queues and releases the response. */
static enum MHD_Result queue_response(struct MHD_Connection *connection, unsigned status,
                                      struct MHD_Response *response) {
    if (!response) {
        return MHD_NO;
    }
    const enum MHD_Result queued = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return queued;
}

static enum MHD_Result answer_bytes(struct MHD_Connection *connection, unsigned status,
                                    const char *type, const char *bytes, size_t count) {
    struct MHD_Response *response =
        MHD_create_response_from_buffer(count, (void *)(uintptr_t)bytes, MHD_RESPMEM_MUST_COPY);
    if (response) {
        add_headers(response, type);
        if (status == MHD_HTTP_METHOD_NOT_ALLOWED) {
            add_header(response, "Allow", "GET");
        } else if (status == MHD_HTTP_UNAUTHORIZED) {
            add_header(response, "WWW-Authenticate", "Bearer");
        } else if (status == MHD_HTTP_SERVICE_UNAVAILABLE) {
            add_header(response, "Retry-After", "10");
        }
        if (status >= 400) {
            add_header(response, "Connection", "close");
        }
    }
    return queue_response(connection, status, response);
}

static enum MHD_Result answer_text(struct MHD_Connection *connection, unsigned status,
                                   const char *text) {
    return answer_bytes(connection, status, "text/plain; charset=utf-8", text, strlen(text));
}

/* ---- who may read ---------------------------------------------------------------------------- */

static const char *header_of(struct MHD_Connection *connection, const char *name) {
    return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

static bool is_own_host(const rp_view_server *server, struct MHD_Connection *connection) {
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    struct sockaddr_storage own;
    socklen_t bytes = sizeof own;
    return info && getsockname(info->connect_fd, (struct sockaddr *)&own, &bytes) == 0 &&
           rp_view_host_is_own(header_of(connection, "Host"), (const struct sockaddr *)&own,
                               server->machine);
}

/* The token of a program is in a header, that of a browser in a cookie. */
static bool has_token(const rp_view_server *server, struct MHD_Connection *connection) {
    static const char scheme[] = "Bearer ";
    const char *header = header_of(connection, "Authorization");
    const char *cookie = MHD_lookup_connection_value(connection, MHD_COOKIE_KIND, "ringpipe-token");
    const char *given = header && strncmp(header, scheme, sizeof scheme - 1) == 0
                            ? header + sizeof scheme - 1
                            : NULL;
    return !server->needs.token || rp_view_token_is(server->needs.token, given) ||
           rp_view_token_is(server->needs.token, cookie);
}

/* A browser opens /?token=TOKEN once; the cookie then replaces it in the address. */
static enum MHD_Result store_token(const rp_view_server *server,
                                   struct MHD_Connection *connection) {
    char cookie[RP_VIEW_TOKEN_MAX + 128];
    struct MHD_Response *response =
        MHD_create_response_from_buffer(0, (void *)(uintptr_t) "", MHD_RESPMEM_PERSISTENT);
    (void)snprintf(cookie, sizeof cookie,
                   "ringpipe-token=%s; HttpOnly; SameSite=Strict; Path=/; Max-Age=2592000",
                   server->needs.token);
    if (response) {
        add_headers(response, "text/plain");
        add_header(response, "Set-Cookie", cookie);
        add_header(response, "Location", "/");
    }
    return queue_response(connection, MHD_HTTP_SEE_OTHER, response);
}

/* ---- streams --------------------------------------------------------------------------------- */

static ssize_t read_stream(void *context, uint64_t position, char *to, size_t most) {
    reader *at = context;
    (void)position;
    if (at->server->ending) {
        return MHD_CONTENT_READER_END_OF_STREAM;
    }
    const size_t bytes =
        rp_view_stream_take(at->stream, rp_clock_now_ns(&at->server->clock), to, most);
    if (bytes == 0) {
        MHD_suspend_connection(at->connection);
        at->suspended = true;
    }
    return (ssize_t)bytes;
}

static void end_stream(void *context) {
    reader *at = context;
    rp_view_stream_close(at->stream);
    *at = (reader){.stream = NULL};
}

static reader *find_unused(rp_view_server *server) {
    for (uint32_t i = 0; i < RP_VIEW_CLIENTS_MAX; i++) {
        if (!server->readers[i].stream) {
            return &server->readers[i];
        }
    }
    return NULL;
}

/* The last line that the reader has, if this is a repeated request. */
static uint64_t last_id_of(struct MHD_Connection *connection) {
    const char *text = header_of(connection, "Last-Event-ID");
    const size_t digits = text ? strspn(text, "0123456789") : 0;
    return digits > 0 && digits < 19 && text[digits] == '\0' ? strtoull(text, NULL, 10) : 0;
}

static enum MHD_Result answer_events(rp_view_server *server, struct MHD_Connection *connection) {
    const char *name = MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "run");
    const int64_t now_ns = rp_clock_now_ns(&server->clock);
    rp_view_feeds_search(server->needs.feeds, now_ns);
    rp_view_feed *feed = rp_view_feeds_find(server->needs.feeds, name);
    reader *at = find_unused(server);
    rp_view_stream *stream;
    if (!feed) {
        return answer_text(connection, MHD_HTTP_NOT_FOUND, "there is no run of this name\n");
    }
    rp_view_feed_update(feed, now_ns);
    if (!at || rp_view_stream_open(feed, last_id_of(connection), now_ns, &stream) != RP_OK) {
        return answer_text(connection, MHD_HTTP_SERVICE_UNAVAILABLE, "too many readers\n");
    }
    *at = (reader){.server = server, .connection = connection, .stream = stream};
    struct MHD_Response *response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK_BYTES,
                                                                      read_stream, at, end_stream);
    if (!response) {
        end_stream(at);
        return MHD_NO;
    }
    add_headers(response, "text/event-stream");
    (void)MHD_set_connection_option(connection, MHD_CONNECTION_OPTION_TIMEOUT, SLOW_S);
    return queue_response(connection, MHD_HTTP_OK, response);
}

/* ---- routes ---------------------------------------------------------------------------------- */

static enum MHD_Result answer_made(rp_view_server *server, struct MHD_Connection *connection,
                                   bool metrics) {
    const int64_t now_ns = rp_clock_now_ns(&server->clock);
    rp_arena arena;
    rp_arena_init(&arena, "answer", 0);
    rp_view_text text = {.arena = &arena};
    if (metrics) {
        const rp_err err = rp_view_feeds_metrics(server->needs.feeds, &arena, now_ns, &text);
        text.err = err;
    } else {
        rp_view_feeds_json(server->needs.feeds, now_ns, &text);
    }
    const char *type = metrics ? "text/plain; version=0.0.4; charset=utf-8" : "application/json";
    const enum MHD_Result result =
        text.err == RP_OK
            ? answer_bytes(connection, MHD_HTTP_OK, type, text.data, text.used)
            : answer_text(connection, MHD_HTTP_INTERNAL_SERVER_ERROR, "memory is short\n");
    rp_arena_finish(&arena);
    return result;
}

static enum MHD_Result answer_route(rp_view_server *server, struct MHD_Connection *connection,
                                    const char *path) {
    for (size_t i = 0; i < rp_view_page_file_count; i++) {
        const rp_view_page_file *file = &rp_view_page_files[i];
        if (strcmp(path, file->path) == 0) {
            return answer_bytes(connection, MHD_HTTP_OK, file->type, file->bytes, file->count);
        }
    }
    if (strcmp(path, "/events") == 0) {
        return answer_events(server, connection);
    }
    if (strcmp(path, "/runs.json") == 0 || strcmp(path, "/metrics") == 0) {
        return answer_made(server, connection, path[1] == 'm');
    }
    if (strcmp(path, "/healthz") == 0) {
        return answer_text(connection, MHD_HTTP_OK, "ok\n");
    }
    return answer_text(connection, MHD_HTTP_NOT_FOUND, "there is no such page\n");
}

static slot *slot_of(struct MHD_Connection *connection) {
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info ? info->socket_context : NULL;
}

/* The answer is made when the header has arrived; a body is not read. */
static enum MHD_Result answer_request(void *context, struct MHD_Connection *connection,
                                      const char *path, const char *method, const char *version,
                                      const char *body, size_t *body_bytes, void **state) {
    rp_view_server *server = context;
    slot *at = slot_of(connection);
    (void)version;
    (void)body;
    (void)body_bytes;
    (void)state;
    if (at) {
        at->since_ns = 0;
    }
    if (!at || !at->served) {
        return answer_text(connection, MHD_HTTP_SERVICE_UNAVAILABLE,
                           "too many connections; try again later\n");
    }
    if (!is_own_host(server, connection)) {
        return answer_text(connection, MHD_HTTP_FORBIDDEN,
                           "the Host header differs from the addresses of this server\n");
    }
    if (strcmp(method, "GET") != 0) {
        return answer_text(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET is allowed\n");
    }
    const char *token = MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "token");
    if (server->needs.token && strcmp(path, "/") == 0 &&
        rp_view_token_is(server->needs.token, token)) {
        return store_token(server, connection);
    }
    if (!has_token(server, connection)) {
        return answer_text(connection, MHD_HTTP_UNAUTHORIZED,
                           "a token is needed: open /?token=TOKEN, or send it as Authorization: "
                           "Bearer TOKEN\n");
    }
    return answer_route(server, connection, path);
}

/* ---- connections ----------------------------------------------------------------------------- */

static void note_connection(void *context, struct MHD_Connection *connection, void **socket_context,
                            enum MHD_ConnectionNotificationCode code) {
    rp_view_server *server = context;
    if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
        slot *at = *socket_context;
        if (at) {
            server->served -= at->served;
            *at = (slot){.used = false};
        }
        return;
    }
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    for (uint32_t i = 0; i < SLOTS; i++) {
        if (!server->slots[i].used && info) {
            const bool served = server->served < RP_VIEW_CLIENTS_MAX;
            server->slots[i] = (slot){.server = server,
                                      .used = true,
                                      .served = served,
                                      .fd = info->connect_fd,
                                      .since_ns = rp_clock_now_ns(&server->clock)};
            server->served += served;
            *socket_context = &server->slots[i];
            return;
        }
    }
    *socket_context = NULL;
}

/* The connection stays open, and may send the next request. */
static void note_completed(void *context, struct MHD_Connection *connection, void **state,
                           enum MHD_RequestTerminationCode code) {
    rp_view_server *server = context;
    slot *at = slot_of(connection);
    (void)state;
    (void)code;
    if (at && at->used) {
        at->since_ns = rp_clock_now_ns(&server->clock);
    }
}

/* Ends connections whose request takes too long, also if a byte comes now and then. */
static void end_late(rp_view_server *server, int64_t now_ns) {
    for (uint32_t i = 0; i < SLOTS; i++) {
        const slot *at = &server->slots[i];
        if (at->used && at->since_ns != 0 && now_ns - at->since_ns > REQUEST_NS) {
            (void)shutdown(at->fd, SHUT_RDWR);
        }
    }
}

/* ---- the loop -------------------------------------------------------------------------------- */

/* Reads what is new of the runs that are followed. Returns whether there are readers. */
static bool follow_runs(rp_view_server *server, int64_t now_ns) {
    const rp_view_feeds *feeds = server->needs.feeds;
    bool any = false;
    for (uint32_t i = 0; i < feeds->count; i++) {
        if (feeds->feed[i]->readers > 0) {
            rp_view_feed_follow(feeds->feed[i]);
            rp_view_feed_update(feeds->feed[i], now_ns);
            any = true;
        }
    }
    return any;
}

static void wake_readers(rp_view_server *server, int64_t now_ns) {
    for (uint32_t i = 0; i < RP_VIEW_CLIENTS_MAX; i++) {
        reader *at = &server->readers[i];
        if (at->stream && at->suspended &&
            (server->ending || rp_view_stream_has_news(at->stream, now_ns))) {
            at->suspended = false;
            MHD_resume_connection(at->connection);
        }
    }
}

int64_t rp_view_server_step(rp_view_server *server, int64_t now_ns) {
    end_late(server, now_ns);
    const bool any = follow_runs(server, now_ns);
    wake_readers(server, now_ns);
    (void)MHD_run(server->daemon);
    const int64_t rest_ns = any ? TICK_NS : REST_NS;
    MHD_UNSIGNED_LONG_LONG own_ms;
    if (MHD_get_timeout(server->daemon, &own_ms) == MHD_YES &&
        own_ms < (MHD_UNSIGNED_LONG_LONG)(rest_ns / RP_NS_PER_MS)) {
        return now_ns + (int64_t)own_ms * RP_NS_PER_MS;
    }
    return now_ns + rest_ns;
}

int rp_view_server_fd(const rp_view_server *server) {
    return server->epoll_fd;
}

const char *rp_view_server_url(const rp_view_server *server) {
    return server->url;
}

/* ---- opening and closing --------------------------------------------------------------------- */

static rp_err open_socket(const rp_view_server_needs *needs, int *out) {
    const struct sockaddr *address = (const struct sockaddr *)&needs->listen->address;
    const int yes = 1;
    const int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0 ||
        bind(fd, address, needs->listen->bytes) != 0 || listen(fd, SLOTS) != 0) {
        const int code = errno;
        if (fd >= 0) {
            (void)close(fd);
        }
        return rp_fail(RP_ERR_IO, "--listen %s: %s", needs->listen_text, strerror(code));
    }
    *out = fd;
    return RP_OK;
}

static void name_url(rp_view_server *server, int fd) {
    struct sockaddr_storage own;
    socklen_t bytes = sizeof own;
    char host[64] = "?";
    char port[16] = "?";
    if (getsockname(fd, (struct sockaddr *)&own, &bytes) == 0) {
        (void)getnameinfo((struct sockaddr *)&own, bytes, host, sizeof host, port, sizeof port,
                          NI_NUMERICHOST | NI_NUMERICSERV);
    }
    (void)snprintf(server->url, sizeof server->url,
                   own.ss_family == AF_INET6 ? "http://[%s]:%s/" : "http://%s:%s/", host, port);
}

rp_err rp_view_server_open(rp_arena *arena, const rp_view_server_needs *needs,
                           rp_view_server **out) {
    rp_view_server *server;
    int fd = -1;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(arena, 1, &server));
    server->needs = *needs;
    server->clock = rp_clock_real();
    (void)gethostname(server->machine, sizeof server->machine - 1);
    RP_TRY(open_socket(needs, &fd));
    name_url(server, fd);
    const unsigned version = needs->listen->address.ss_family == AF_INET6 ? MHD_USE_IPv6 : 0;
    server->daemon = MHD_start_daemon(
        MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | version, 0, NULL, NULL, answer_request, server,
        MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT, (unsigned)SLOTS,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)REQUEST_BYTES, MHD_OPTION_CONNECTION_TIMEOUT,
        (unsigned)IDLE_S, MHD_OPTION_NOTIFY_CONNECTION, note_connection, server,
        MHD_OPTION_NOTIFY_COMPLETED, note_completed, server, MHD_OPTION_END);
    if (!server->daemon) {
        (void)close(fd);
        return rp_fail(RP_ERR_IO, "--listen %s: the HTTP server does not start: %s",
                       needs->listen_text, strerror(errno));
    }
    server->epoll_fd = MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
    *out = server;
fail:
    return err;
}

/* Suspended connections have to be resumed before the daemon stops. */
void rp_view_server_close(rp_view_server *server) {
    if (server && server->daemon) {
        server->ending = true;
        wake_readers(server, rp_clock_now_ns(&server->clock));
        (void)MHD_run(server->daemon);
        MHD_stop_daemon(server->daemon);
        server->daemon = NULL;
    }
}
