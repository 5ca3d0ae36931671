#include "transport/listen.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#define EXPECTED                                                                                   \
    "expected the IPv4 address of this machine, a name that has one, or a network interface; "     \
    "0.0.0.0 listens at all of them"

static const char scheme[] = "tcp://";

/* The colon before the port; NULL if `endpoint` is not tcp://HOST:PORT. */
static const char *find_port(const char *endpoint) {
    const bool is_tcp = strncmp(endpoint, scheme, sizeof scheme - 1) == 0;
    return is_tcp ? strrchr(endpoint + sizeof scheme - 1, ':') : NULL;
}

/* All our sockets use IPv4. */
static bool is_ipv6(const char *endpoint) {
    const char *host = endpoint + sizeof scheme - 1;
    const char *port = find_port(endpoint);
    return port && (host[0] == '[' || memchr(host, ':', (size_t)(port - host)) != NULL);
}

/* Whether ZeroMQ accepts the host without a lookup. */
static bool is_bindable(const char *host) {
    struct in_addr address;
    return strcmp(host, "*") == 0 || inet_pton(AF_INET, host, &address) == 1 ||
           if_nametoindex(host) != 0;
}

static rp_err look_up(const char *endpoint, const char *host, char out[INET_ADDRSTRLEN]) {
    const struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    struct sockaddr_in address;
    const int code = getaddrinfo(host, NULL, &hints, &found);
    if (code != 0) {
        return rp_fail(RP_ERR_USAGE, "%s: the name '%s' is unknown here (%s): " EXPECTED, endpoint,
                       host, gai_strerror(code));
    }
    memcpy(&address, found->ai_addr, sizeof address);
    freeaddrinfo(found);
    (void)inet_ntop(AF_INET, &address.sin_addr, out, INET_ADDRSTRLEN);
    return RP_OK;
}

rp_err rp_listen_resolve(const char *endpoint, char *out, size_t bytes) {
    const char *port = find_port(endpoint);
    const char *from = endpoint + sizeof scheme - 1;
    char host[RP_LISTEN_HOST_MAX + 1];
    char address[INET_ADDRSTRLEN];
    const char *shown = host;
    rp_err err = RP_OK;
    if (!port || (size_t)(port - from) >= sizeof host) {
        return rp_fail(RP_ERR_USAGE, "%s: " EXPECTED, endpoint);
    }
    if (is_ipv6(endpoint)) {
        return rp_fail(RP_ERR_USAGE, "%s: IPv6 is not supported: " EXPECTED, endpoint);
    }
    (void)snprintf(host, sizeof host, "%.*s", (int)(port - from), from);
    if (!is_bindable(host)) {
        err = look_up(endpoint, host, address);
        shown = address;
    }
    if (err == RP_OK && snprintf(out, bytes, "%s%s%s", scheme, shown, port) >= (int)bytes) {
        err = rp_fail(RP_ERR_USAGE, "%s: is too long", endpoint);
    }
    return err;
}
