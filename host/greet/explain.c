#include "greet/explain.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/attributes.h"
#include "transport/reach.h"

enum { HOST_BYTES = RP_REACH_HOST_BYTES, ADDRESSES_MAX = 3, TRY_MS = 1000 };

typedef struct {
    char *out;
    size_t bytes, used;
} text;

static void append(text *t, const char *format, ...) RP_PRINTF(2, 3);
static void append(text *t, const char *format, ...) {
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(t->out + t->used, t->bytes - t->used, format, args);
    va_end(args);
    t->used += n < 0 ? 0 : (size_t)n < t->bytes - t->used ? (size_t)n : t->bytes - t->used - 1;
}

static void write_address(const struct sockaddr *address, socklen_t bytes, char out[HOST_BYTES]) {
    if (getnameinfo(address, bytes, out, HOST_BYTES, NULL, 0, NI_NUMERICHOST) != 0) {
        (void)snprintf(out, HOST_BYTES, "?");
    }
}

/* Compares IPv4 addresses; no others are looked up here. */
static bool is_same(const struct sockaddr *a, const struct sockaddr *b) {
    return a && a->sa_family == AF_INET &&
           memcmp(&((const struct sockaddr_in *)a)->sin_addr,
                  &((const struct sockaddr_in *)b)->sin_addr, sizeof(struct in_addr)) == 0;
}

/* Names the interface that has this address of ours. */
static void name_interface(const struct sockaddr *own, char out[HOST_BYTES]) {
    struct ifaddrs *all = NULL;
    (void)snprintf(out, HOST_BYTES, "an interface");
    if (getifaddrs(&all) != 0) {
        return;
    }
    for (const struct ifaddrs *at = all; at; at = at->ifa_next) {
        if (is_same(at->ifa_addr, own)) {
            (void)snprintf(out, HOST_BYTES, "%s", at->ifa_name);
            break;
        }
    }
    freeifaddrs(all);
}

/* Writes the interface that a packet would take; connecting a UDP socket sends nothing. */
static bool say_route(text *t, const char *host, const struct addrinfo *to) {
    struct sockaddr_storage own;
    socklen_t bytes = sizeof own;
    char address[HOST_BYTES];
    char interface[HOST_BYTES];
    const int fd = socket(to->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    const bool leads = fd >= 0 && connect(fd, to->ai_addr, to->ai_addrlen) == 0 &&
                       getsockname(fd, (struct sockaddr *)&own, &bytes) == 0;
    if (fd >= 0) {
        (void)close(fd);
    }
    write_address(to->ai_addr, to->ai_addrlen, address);
    if (strcmp(host, address) != 0) {
        append(t, "%s is ", host);
    }
    if (!leads) {
        append(t, "%s: no interface of this host leads there: is the network up?", address);
        return false;
    }
    append(t, "%s, tried through ", address);
    name_interface((const struct sockaddr *)&own, interface);
    write_address((const struct sockaddr *)&own, bytes, address);
    append(t, "%s (%s): ", interface, address);
    return true;
}

/* The kernel's ARP requests for this address have not been answered so far. The kernel reports
 * EHOSTUNREACH only after three seconds, longer than we wait. */
static bool has_no_arp_answer(const struct addrinfo *to) {
    char address[HOST_BYTES];
    char line[256];
    bool pending = false;
    FILE *file = fopen("/proc/net/arp", "re");
    write_address(to->ai_addr, to->ai_addrlen, address);
    while (file && !pending && fgets(line, sizeof line, file)) {
        char *rest;
        const char *own = strtok_r(line, " ", &rest);
        const char *kind = strtok_r(NULL, " ", &rest);
        const char *flags = kind ? strtok_r(NULL, " ", &rest) : NULL;
        pending = flags && strcmp(own, address) == 0 && strcmp(flags, "0x0") == 0;
    }
    if (file) {
        (void)fclose(file);
    }
    return pending;
}

static rp_explained say_try(text *t, const struct addrinfo *to, const char *port) {
    const int code = rp_reach_connect(to, TRY_MS);
    switch (code == ETIMEDOUT && has_no_arp_answer(to) ? EHOSTUNREACH : code) {
    case 0:
        append(t,
               "something listens at port %s, but no handshake completes: the agent is stopped or "
               "overloaded, or it is another program",
               port);
        return RP_EXPLAINED_CONNECTS;
    case ECONNREFUSED:
        append(t,
               "the machine is there, and nothing listens at port %s: does the agent run? "
               "`systemctl status ringpipe-agent` there",
               port);
        break;
    case ETIMEDOUT:
        append(
            t,
            "no answer: is the board on and in this network? Does a firewall drop packets to port "
            "%s?",
            port);
        break;
    case EHOSTUNREACH:
        append(t,
               "no machine there has that address: is the board on? Does it have another address "
               "now? `avahi-browse -rt _ringpipe._tcp` lists those that are near");
        break;
    default:
        append(t, "%s", strerror(code));
    }
    return RP_EXPLAINED_AWAY;
}

/* A board that is off has no name in mDNS, and a name server may be away for a while. */
static rp_explained say_unknown(text *t, const char *host, int code) {
    const size_t length = strlen(host);
    const bool is_local = length > 6 && strcmp(host + length - 6, ".local") == 0;
    append(t, "the name '%s' is not known here (%s)%s", host, gai_strerror(code),
           is_local
               ? ": names with .local are found by mDNS, within one network only: do "
                 "avahi-daemon, or systemd-resolved with MulticastDNS, run here and there, and "
                 "libnss-mdns here? An address in the roster needs no name"
               : ": is it right, and does this network's DNS know it? An address in the roster "
                 "needs no name");
    return is_local || code == EAI_AGAIN ? RP_EXPLAINED_AWAY : RP_EXPLAINED_NO_NAME;
}

rp_explained rp_explain_address(const char *endpoint, char *out, size_t bytes) {
    const struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
    struct addrinfo *all = NULL;
    char host[HOST_BYTES];
    char port[RP_REACH_PORT_BYTES];
    text t = {.out = out, .bytes = bytes};
    out[0] = '\0';
    if (!rp_reach_split(endpoint, host, port)) {
        append(&t, "'%s' is not tcp://HOST:PORT", endpoint);
        return RP_EXPLAINED_NO_NAME;
    }
    const int code = getaddrinfo(host, port, &hints, &all);
    if (code != 0) {
        return say_unknown(&t, host, code);
    }
    uint32_t count = 0;
    rp_explained found = RP_EXPLAINED_AWAY;
    for (const struct addrinfo *at = all; at && count < ADDRESSES_MAX; at = at->ai_next, count++) {
        append(&t, "%s", count ? "; " : "");
        if (say_route(&t, host, at) && say_try(&t, at, port) == RP_EXPLAINED_CONNECTS) {
            found = RP_EXPLAINED_CONNECTS;
        }
    }
    freeaddrinfo(all);
    return found;
}
