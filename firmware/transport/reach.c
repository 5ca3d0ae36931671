#include "transport/reach.h"

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ADDRESSES_MAX = 3 };

bool rp_reach_split(const char *endpoint, char host[RP_REACH_HOST_BYTES],
                    char port[RP_REACH_PORT_BYTES]) {
    const char *at = strncmp(endpoint, "tcp://", 6) == 0 ? endpoint + 6 : endpoint;
    const char *colon = strrchr(at, ':');
    if (!colon || colon == at) {
        return false;
    }
    const bool bracket = at[0] == '[' && colon[-1] == ']';
    const int length = (int)(colon - at) - (bracket ? 2 : 0);
    const int h = snprintf(host, RP_REACH_HOST_BYTES, "%.*s", length, at + (bracket ? 1 : 0));
    const int p = snprintf(port, RP_REACH_PORT_BYTES, "%s", colon + 1);
    return h > 0 && h < RP_REACH_HOST_BYTES && p > 0 && p < RP_REACH_PORT_BYTES;
}

int rp_reach_connect(const struct addrinfo *to, int wait_ms) {
    int code = 0;
    socklen_t bytes = sizeof code;
    const int fd = socket(to->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return errno;
    }
    if (connect(fd, to->ai_addr, to->ai_addrlen) != 0) {
        struct pollfd wait = {.fd = fd, .events = POLLOUT};
        code = errno;
        if (code == EINPROGRESS) {
            const bool answered = poll(&wait, 1, wait_ms) == 1 &&
                                  getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &bytes) == 0;
            code = answered ? code : ETIMEDOUT;
        }
    }
    (void)close(fd);
    return code;
}

static rp_reach describe_code(int code, const char *port, char *out, size_t bytes) {
    switch (code) {
    case 0:
        out[0] = '\0';
        return RP_REACH_LISTENS;
    case ECONNREFUSED:
        (void)snprintf(out, bytes, "the machine is there, and nothing listens at port %s", port);
        return RP_REACH_CLOSED;
    case ETIMEDOUT:
        (void)snprintf(out, bytes,
                       "no answer: check that the machine is on and in this network, and that no "
                       "firewall drops connections to port %s",
                       port);
        return RP_REACH_SILENT;
    default:
        (void)snprintf(out, bytes, "%s", strerror(code));
        return RP_REACH_FAILED;
    }
}

rp_reach rp_reach_try(const char *endpoint, int wait_ms, char *out, size_t bytes) {
    const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *all = NULL;
    char host[RP_REACH_HOST_BYTES];
    char port[RP_REACH_PORT_BYTES];
    rp_reach result = RP_REACH_FAILED;
    if (!rp_reach_split(endpoint, host, port)) {
        (void)snprintf(out, bytes, "expected tcp://HOST:PORT");
        return RP_REACH_FAILED;
    }
    const int code = getaddrinfo(host, port, &hints, &all);
    if (code != 0) {
        (void)snprintf(out, bytes, "the name '%s' is not known here (%s)", host,
                       gai_strerror(code));
        return RP_REACH_UNKNOWN;
    }
    uint32_t tries = 0;
    for (const struct addrinfo *to = all; to && tries < ADDRESSES_MAX; to = to->ai_next, tries++) {
        result = describe_code(rp_reach_connect(to, wait_ms), port, out, bytes);
        if (result == RP_REACH_LISTENS) {
            break;
        }
    }
    freeaddrinfo(all);
    return result;
}
