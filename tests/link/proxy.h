/* A TCP proxy in a thread: forwards until it is told to cut every connection with an RST, to hold
 * everything back (a black hole), to forward nothing more over the connections that there are
 * (`stick`), to be slow, or to flip a bit. */
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
    bool stuck;
    struct {
        uint8_t bytes[PROXY_CHUNK];
        ssize_t count, done;
    } way[2]; /* to the server, to the client */
} proxied;

typedef struct {
    pthread_t thread;
    int listener;
    uint16_t port, target;
    _Atomic bool stop, cut, hold, stick;
    _Atomic uint32_t cuts;      /* connections that were cut */
    _Atomic uint32_t trickle;   /* bytes each way in a millisecond; 0: as they come */
    /* In the next bytes to the server, and to the client, the bit of this number less 1, modulo
     * theirs; 0: none. */
    _Atomic uint32_t flip, flip_back;
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
static inline bool proxy_forward(proxy *x, proxied *two, int way) {
    const uint32_t trickle = atomic_load(&x->trickle);
    const size_t most = trickle && trickle < PROXY_CHUNK ? trickle : PROXY_CHUNK;
    int from = way ? two->server : two->client;
    int to = way ? two->client : two->server;
    if (two->way[way].done == two->way[way].count) {
        two->way[way].done = 0;
        two->way[way].count = recv(from, two->way[way].bytes, most, MSG_DONTWAIT);
        if (two->way[way].count <= 0) {
            bool later = two->way[way].count < 0 && (errno == EAGAIN || errno == EINTR);
            two->way[way].count = 0;
            return later;
        }
        const uint32_t flip = atomic_exchange(way ? &x->flip_back : &x->flip, 0);
        if (flip) {
            const size_t bit = (flip - 1) % (8 * (size_t)two->way[way].count);
            two->way[way].bytes[bit / 8] ^= (uint8_t)(1u << (bit % 8));
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
        bool stick = atomic_exchange(&x->stick, false);
        bool slow = atomic_load(&x->trickle) > 0;
        nfds_t count = 1;
        for (int i = 0; i < PROXY_PAIRS; i++) {
            proxied *two = &x->pair[i];
            bool alive = two->client >= 0;
            two->stuck = two->stuck || (alive && stick);
            if (alive && cut) {
                proxy_drop(two, true);
                atomic_fetch_add(&x->cuts, 1);
            } else if (alive && !hold && !two->stuck) {
                alive = proxy_forward(x, two, 0) && proxy_forward(x, two, 1);
                if (!alive) {
                    proxy_drop(two, false);
                }
            }
            if (two->client >= 0 && !hold && !two->stuck && !slow) {
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
