/* A TCP proxy in a thread: forwards until it is told to cut every connection with an RST or to hold
 * everything back (a black hole). */
#ifndef RP_TESTS_LINK_PROXY_H
#define RP_TESTS_LINK_PROXY_H

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

#include "expect.h"

enum { PROXY_PAIRS = 8, PROXY_CHUNK = 16384 };

typedef struct {
    int client, server; /* -1: free */
    struct {
        uint8_t bytes[PROXY_CHUNK];
        ssize_t count, done;
    } way[2]; /* to the server, to the client */
} proxied;

typedef struct {
    pthread_t thread;
    int listener;
    uint16_t port, target;
    _Atomic bool stop, cut, hold;
    _Atomic uint32_t cuts; /* connections that were cut */
    proxied pair[PROXY_PAIRS];
} proxy;

static inline void proxy_drop(proxied *two, bool reset) {
    struct linger hard = {.l_onoff = 1, .l_linger = 0};
    int *fds[2] = {&two->client, &two->server};
    for (int i = 0; i < 2; i++) {
        if (reset) {
            (void)setsockopt(*fds[i], SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
        }
        (void)close(*fds[i]);
        *fds[i] = -1;
    }
}

static inline void proxy_accept(proxy *x) {
    int client = accept4(x->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (client < 0) {
        return;
    }
    int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(x->target)};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    proxied *two = NULL;
    for (int i = 0; i < PROXY_PAIRS && !two; i++) {
        two = x->pair[i].client < 0 ? &x->pair[i] : NULL;
    }
    if (!two || connect(server, (struct sockaddr *)&to, sizeof to) != 0) {
        (void)close(client);
        (void)close(server);
        return;
    }
    memset(two, 0, sizeof *two);
    two->client = client;
    two->server = server;
}

/* One way, one piece; false when the connection has ended. */
static inline bool proxy_forward(proxied *two, int way) {
    int from = way ? two->server : two->client;
    int to = way ? two->client : two->server;
    if (two->way[way].done == two->way[way].count) {
        two->way[way].done = 0;
        two->way[way].count = recv(from, two->way[way].bytes, PROXY_CHUNK, MSG_DONTWAIT);
        if (two->way[way].count <= 0) {
            bool later = two->way[way].count < 0 && (errno == EAGAIN || errno == EINTR);
            two->way[way].count = 0;
            return later;
        }
    }
    ssize_t left = two->way[way].count - two->way[way].done;
    ssize_t n = send(to, two->way[way].bytes + two->way[way].done, (size_t)left,
                     MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0) {
        return errno == EAGAIN || errno == EINTR;
    }
    two->way[way].done += n;
    return true;
}

static inline void *proxy_run(void *context) {
    proxy *x = context;
    while (!atomic_load(&x->stop)) {
        struct pollfd fds[1 + 2 * PROXY_PAIRS] = {{.fd = x->listener, .events = POLLIN}};
        bool hold = atomic_load(&x->hold);
        bool cut = atomic_exchange(&x->cut, false);
        nfds_t count = 1;
        for (int i = 0; i < PROXY_PAIRS; i++) {
            proxied *two = &x->pair[i];
            bool alive = two->client >= 0;
            if (alive && cut) {
                proxy_drop(two, true);
                atomic_fetch_add(&x->cuts, 1);
            } else if (alive && !hold) {
                alive = proxy_forward(two, 0) && proxy_forward(two, 1);
                if (!alive) {
                    proxy_drop(two, false);
                }
            }
            if (two->client >= 0 && !hold) {
                bool waiting =
                    two->way[0].done < two->way[0].count || two->way[1].done < two->way[1].count;
                short events = (short)(waiting ? POLLIN | POLLOUT : POLLIN);
                fds[count++] = (struct pollfd){.fd = two->client, .events = events};
                fds[count++] = (struct pollfd){.fd = two->server, .events = events};
            }
        }
        (void)poll(fds, count, 1);
        if (fds[0].revents && !hold) {
            proxy_accept(x);
        }
    }
    return NULL;
}

static inline void proxy_open(proxy *x, const char *endpoint) {
    memset(x, 0, sizeof *x);
    struct sockaddr_in at = {.sin_family = AF_INET};
    socklen_t size = sizeof at;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    x->target = (uint16_t)strtoul(strrchr(endpoint, ':') + 1, NULL, 10);
    x->listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(x->listener, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(x->listener, 8), 0);
    assert_int_equal(getsockname(x->listener, (struct sockaddr *)&at, &size), 0);
    x->port = ntohs(at.sin_port);
    for (int i = 0; i < PROXY_PAIRS; i++) {
        x->pair[i].client = x->pair[i].server = -1;
    }
    assert_int_equal(pthread_create(&x->thread, NULL, proxy_run, x), 0);
}

static inline void proxy_close(proxy *x) {
    atomic_store(&x->stop, true);
    assert_int_equal(pthread_join(x->thread, NULL), 0);
    for (int i = 0; i < PROXY_PAIRS; i++) {
        if (x->pair[i].client >= 0) {
            proxy_drop(&x->pair[i], false);
        }
    }
    (void)close(x->listener);
}

#endif
