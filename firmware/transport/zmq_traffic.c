/* The kernel's byte counters of a port's connection. ZeroMQ itself reports nothing about a message
 * in flight, and a large one is in flight for a long time.
 *
 * source  tcp(7), TCP_INFO: bytes_acked and bytes_received since Linux 4.1; socket(7), SO_COOKIE: a
 *         number that no other socket of this machine has had */
#include <dirent.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "transport/zmq_own.h"

/* Returns 0 if it is no longer a socket. */
static uint64_t read_cookie(int fd) {
    uint64_t cookie = 0;
    socklen_t size = sizeof cookie;
    return getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &size) == 0 ? cookie : 0;
}

void zmq_traffic_begin(zmq_port *port, int fd) {
    port->connection_fd = fd;
    port->connection_cookie = read_cookie(fd);
}

bool zmq_traffic_read(const zmq_port *port, rp_port_traffic *out) {
    struct tcp_info info = {0};
    socklen_t size = sizeof info;
    int waiting = 0;
    const int fd = port->connection_fd;
    const socklen_t least = offsetof(struct tcp_info, tcpi_bytes_received) + sizeof(uint64_t);
    /* ZeroMQ may have closed it, and another socket may have its number. */
    if (!port->connection_cookie || read_cookie(fd) != port->connection_cookie ||
        getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0 || size < least ||
        ioctl(fd, SIOCOUTQ, &waiting) != 0) {
        return false;
    }
    *out = (rp_port_traffic){.sent = info.tcpi_bytes_acked,
                             .received = info.tcpi_bytes_received,
                             .waiting = waiting > 0 ? (uint64_t)waiting : 0};
    return true;
}

void zmq_traffic_from(int fd, char out[RP_PORT_ADDRESS_BYTES]) {
    struct sockaddr_storage far;
    socklen_t size = sizeof far;
    char host[RP_PORT_ADDRESS_BYTES - 8];
    char port[8];
    out[0] = '\0';
    if (fd >= 0 && getpeername(fd, (struct sockaddr *)&far, &size) == 0 &&
        getnameinfo((struct sockaddr *)&far, size, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV) == 0) {
        (void)snprintf(out, RP_PORT_ADDRESS_BYTES, "%s:%s", host, port);
    }
}

/* ---- how many ------------------------------------------------------------------------------- */

/* Local port of a socket; 0 if it has no internet address. */
static uint32_t port_number(int fd) {
    struct sockaddr_storage own;
    socklen_t size = sizeof own;
    if (getsockname(fd, (struct sockaddr *)&own, &size) != 0) {
        return 0;
    }
    return own.ss_family == AF_INET    ? ntohs(((struct sockaddr_in *)&own)->sin_port)
           : own.ss_family == AF_INET6 ? ntohs(((struct sockaddr_in6 *)&own)->sin6_port)
                                       : 0;
}

static bool is_connected(int fd) {
    struct sockaddr_storage far;
    socklen_t size = sizeof far;
    return getpeername(fd, (struct sockaddr *)&far, &size) == 0;
}

uint32_t zmq_traffic_connections(const zmq_port *port) {
    const char *colon = strrchr(port->port.endpoint, ':');
    const uint32_t number = colon ? (uint32_t)strtoul(colon + 1, NULL, 10) : 0;
    DIR *folder = opendir("/proc/self/fd");
    uint32_t count = 0;
    if (!folder) {
        return 0; /* not known: then only their rate is limited */
    }
    for (const struct dirent *entry = readdir(folder); entry; entry = readdir(folder)) {
        /* "." and ".." give 0, which is not one of our sockets */
        const int fd = (int)strtol(entry->d_name, NULL, 10);
        count += number > 0 && port_number(fd) == number && is_connected(fd);
    }
    (void)closedir(folder);
    return count;
}
