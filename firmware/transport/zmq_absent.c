/* Probes whether anything listens where a connection has ended. A machine whose agent has exited
 * refuses a new connection at once; one that is off or disconnected does not answer. ZeroMQ
 * retries without saying why that fails, so a separate socket probes.
 *
 * source  connect(2), ECONNREFUSED; the address is that of the connection that has ended */
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "transport/zmq_own.h"

static const int64_t ASK_NS = 150 * RP_NS_PER_MS;   /* interval of probes */
static const int64_t LOOK_NS = 5 * RP_NS_PER_MS;    /* interval of checks for an answer */
static const int64_t PATIENCE_NS = 1 * RP_NS_PER_S; /* timeout of a probe */

void zmq_absent_note(zmq_port *port, int fd) {
    struct sockaddr_storage address;
    socklen_t bytes = sizeof address;
    if (getpeername(fd, (struct sockaddr *)&address, &bytes) == 0) {
        port->absent.address = address;
        port->absent.bytes = bytes;
    }
}

void zmq_absent_end(zmq_port *port) {
    if (port->absent.asking) {
        (void)close(port->absent.fd);
        port->absent.asking = false;
    }
    port->absent.due_ns = 0;
}

void zmq_absent_begin(zmq_port *port, int64_t now) {
    zmq_absent_end(port);
    port->absent.due_ns = port->absent.bytes > 0 ? now : 0;
}

/* Returns true if refused at once. If the probe succeeds, probing stops until a connection to that
 * peer has ended; otherwise the peer would get endless connections. */
static bool probe_address(zmq_absent *absent, int64_t now) {
    absent->fd = socket(absent->address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    absent->due_ns = now + ASK_NS;
    if (absent->fd < 0) {
        return false;
    }
    const int done = connect(absent->fd, (const struct sockaddr *)&absent->address, absent->bytes);
    const bool is_refused = done != 0 && errno == ECONNREFUSED;
    absent->asking = done != 0 && errno == EINPROGRESS;
    if (absent->asking) {
        absent->asked_ns = now;
        absent->due_ns = now + LOOK_NS;
    } else {
        (void)close(absent->fd);
        absent->due_ns = done == 0 ? 0 : absent->due_ns;
    }
    return is_refused;
}

static bool read_answer(zmq_absent *absent, int64_t now) {
    struct pollfd ready = {.fd = absent->fd, .events = POLLOUT};
    int error = 0;
    socklen_t size = sizeof error;
    const bool has_answer = poll(&ready, 1, 0) != 0;
    if (!has_answer && now - absent->asked_ns < PATIENCE_NS) {
        absent->due_ns = now + LOOK_NS;
        return false;
    }
    if (has_answer && getsockopt(absent->fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0) {
        error = errno;
    }
    (void)close(absent->fd);
    absent->asking = false;
    absent->due_ns = has_answer && error == 0 ? 0 : now + ASK_NS;
    return error == ECONNREFUSED;
}

bool zmq_absent_look(zmq_port *port, int64_t now) {
    zmq_absent *absent = &port->absent;
    if (absent->due_ns == 0 || now < absent->due_ns) {
        return false;
    }
    return absent->asking ? read_answer(absent, now) : probe_address(absent, now);
}
