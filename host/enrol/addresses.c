#include "enrol/addresses.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

typedef struct {
    rp_arena *arena;
    const char *port; /* with the colon */
    const char **out;
    uint32_t count;
} gathering;

static rp_err add_address(gathering *g, const char *address) {
    char *text;
    if (g->count == RP_ENROL_ADDRESSES_MAX) {
        return RP_OK;
    }
    const rp_err err = rp_arena_printf(g->arena, &text, "%s%s", address, g->port);
    if (err == RP_OK) {
        g->out[g->count++] = text;
    }
    return err;
}

static bool write_numeric(const struct sockaddr *address, char out[NI_MAXHOST]) {
    const socklen_t bytes =
        address->sa_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
    return getnameinfo(address, bytes, out, NI_MAXHOST, NULL, 0, NI_NUMERICHOST) == 0;
}

/* Finds the source address of packets to further networks, by connecting a UDP socket, which sends
 * nothing. 192.0.2.1 is reserved (RFC 5737). */
static bool find_main_address(char out[NI_MAXHOST]) {
    const struct sockaddr_in far = {
        .sin_family = AF_INET, .sin_port = htons(9), .sin_addr.s_addr = htonl(0xc0000201)};
    struct sockaddr_storage own = {0};
    socklen_t bytes = sizeof own;
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    const bool found = fd >= 0 && connect(fd, (const struct sockaddr *)&far, sizeof far) == 0 &&
                       getsockname(fd, (struct sockaddr *)&own, &bytes) == 0 &&
                       write_numeric((const struct sockaddr *)&own, out);
    if (fd >= 0) {
        (void)close(fd);
    }
    return found;
}

static bool is_usable(const struct ifaddrs *at) {
    return at->ifa_addr && at->ifa_addr->sa_family == AF_INET && (at->ifa_flags & IFF_UP) &&
           !(at->ifa_flags & IFF_LOOPBACK);
}

/* `interface` NULL: all interfaces. */
static rp_err add_interfaces(gathering *g, const char *interface) {
    struct ifaddrs *all = NULL;
    char first[NI_MAXHOST] = "";
    char address[NI_MAXHOST];
    rp_err err = RP_OK;
    if (getifaddrs(&all) != 0) {
        return RP_OK;
    }
    const bool has_first = find_main_address(first);
    for (int round = has_first ? 0 : 1; round < 2; round++) {
        for (const struct ifaddrs *at = all; at && err == RP_OK; at = at->ifa_next) {
            if (is_usable(at) && (!interface || strcmp(at->ifa_name, interface) == 0) &&
                write_numeric(at->ifa_addr, address) &&
                (round == 0) == (strcmp(address, first) == 0)) {
                err = add_address(g, address);
            }
        }
    }
    freeifaddrs(all);
    return err;
}

rp_err rp_enrol_addresses(rp_arena *arena, const char *listen,
                          const char *out[RP_ENROL_ADDRESSES_MAX], uint32_t *count) {
    const char *host = strncmp(listen, "tcp://", 6) == 0 ? listen + 6 : listen;
    gathering g = {.arena = arena, .port = strrchr(listen, ':'), .out = out};
    char *name;
    rp_err err;
    RP_ASSERT(g.port && g.port > host);
    RP_TRY(rp_arena_text(arena, host, (size_t)(g.port - host), &name));
    const bool all = strcmp(name, "*") == 0 || strcmp(name, "0.0.0.0") == 0;
    if (all || if_nametoindex(name) > 0) {
        RP_TRY(add_interfaces(&g, all ? NULL : name));
        RP_TRY(g.count > 0 ? RP_OK : add_address(&g, "127.0.0.1"));
    } else {
        out[g.count++] = host;
    }
    *count = g.count;
fail:
    return err;
}
