/* Access control: ZeroMQ asks about every CURVE handshake, and we answer from our own thread.
 *
 * source  ZeroMQ RFC 27 (ZAP): request {version, id, domain, address, identity, mechanism, key},
 *         reply {version, id, status, text, user, metadata}; status 300 closes the connection
 *         silently, and the client retries
 *
 * Trap: without a handler CURVE admits every client key. */
#include <string.h>

#include "base/log.h"
#include "transport/zmq_own.h"

enum { ZAP_FRAMES = 7, ZAP_FRAME_BYTES = 256 };
/* Interval of log lines about a client that uses a new key for every handshake. */
#define REFUSED_TELL_NS (10 * RP_NS_PER_S)

typedef struct {
    uint8_t bytes[ZAP_FRAME_BYTES];
    size_t count; /* real size, may be larger than what was stored */
} field;

enum { VERSION, ID, DOMAIN, ADDRESS, IDENTITY, MECHANISM, KEY };

rp_err zap_open(zmq_transport *transport) {
    transport->zap = zmq_socket(transport->context, ZMQ_REP);
    int linger = 0;
    if (!transport->zap ||
        zmq_setsockopt(transport->zap, ZMQ_LINGER, &linger, sizeof linger) != 0 ||
        zmq_bind(transport->zap, "inproc://zeromq.zap.01") != 0) {
        return rp_fail(RP_ERR_IO, "zmq: no ZAP handler: %s", zmq_strerror(zmq_errno()));
    }
    transport->zap_ready = true;
    return zmq_socket_fd(transport->zap, &transport->zap_fd);
}

/* Returns false if no request is waiting. Reads a request that is too long to its end. */
static bool receive_request(void *socket, field fields[ZAP_FRAMES], uint32_t *count) {
    *count = 0;
    for (;;) {
        field spare;
        field *at = *count < ZAP_FRAMES ? &fields[*count] : &spare;
        int n = zmq_recv(socket, at->bytes, sizeof at->bytes, ZMQ_DONTWAIT);
        if (n < 0) {
            return false;
        }
        at->count = (size_t)n;
        ++*count;
        int more = 0;
        size_t size = sizeof more;
        if (zmq_getsockopt(socket, ZMQ_RCVMORE, &more, &size) != 0 || !more) {
            return true;
        }
    }
}

static bool field_equals(const field *f, const char *text) {
    return f->count == strlen(text) && memcmp(f->bytes, text, f->count) == 0;
}

static zmq_port *find_port(const zmq_transport *transport, const field *domain) {
    for (zmq_port *port = transport->first; port; port = port->next) {
        if (port->end && field_equals(domain, port->end->domain)) {
            return port;
        }
    }
    return NULL;
}

/* A client retries every second, so each key is logged once; further keys than the table holds are
 * logged at intervals. */
static bool is_news(zmq_transport *transport, const uint8_t *key) {
    const int64_t now = rp_clock_now_ns(transport->transport.clock);
    const bool full = transport->refused_count >= ZMQ_REFUSED_KEYS_MAX;
    const uint32_t known = full ? ZMQ_REFUSED_KEYS_MAX : transport->refused_count;
    for (uint32_t i = 0; i < known; i++) {
        if (memcmp(transport->refused[i], key, RP_KEY_BYTES) == 0) {
            return false;
        }
    }
    if (full && now - transport->refused_told_ns < REFUSED_TELL_NS) {
        return false;
    }
    transport->refused_told_ns = now;
    memcpy(transport->refused[transport->refused_count++ % ZMQ_REFUSED_KEYS_MAX], key,
           RP_KEY_BYTES);
    return true;
}

static void log_refused(zmq_transport *transport, const zmq_port *port, const field *address,
                        const uint8_t *key) {
    if (!is_news(transport, key)) {
        return;
    }
    char text[RP_KEY_TEXT];
    char word[RP_KEY_WORD];
    char fingerprint[RP_KEY_FINGERPRINT];
    rp_key_write(zmq_z85_encode(text, key, RP_KEY_BYTES), word);
    rp_key_fingerprint(text, fingerprint);
    int length = (int)(address->count < ZAP_FRAME_BYTES ? address->count : 0);
    if (port->port.has_one_key) {
        rp_log_warn("link %s: refused %.*s, because only another key may connect here than its key "
                    "%s (fingerprint %s)",
                    port->port.name, length, (const char *)address->bytes, word, fingerprint);
        return;
    }
    rp_log_warn("link %s: refused %.*s, whose key (fingerprint %s) is not on the list of trusted "
                "keys; `ringpipe keys trust NAME %s` adds it",
                port->port.name, length, (const char *)address->bytes, fingerprint, word);
}

static uint32_t count_connections(const void *port) {
    return zmq_traffic_connections(port);
}

static void log_too_many(zmq_port *port, const field *address, const uint8_t *key, int64_t now) {
    char text[RP_KEY_TEXT];
    char fingerprint[RP_KEY_FINGERPRINT];
    if (!rp_callers_is_news(&port->end->callers, key, now)) {
        return;
    }
    rp_key_fingerprint(zmq_z85_encode(text, key, RP_KEY_BYTES), fingerprint);
    int length = (int)(address->count < ZAP_FRAME_BYTES ? address->count : 0);
    rp_log_warn(
        "link %s: the trusted key with fingerprint %s connects too often, last from %.*s: at most "
        "%d connections at once and %d new ones a second are allowed; further ones are closed",
        port->port.name, fingerprint, length, (const char *)address->bytes, RP_CALLER_CONNECTIONS,
        RP_CALLER_A_SECOND);
}

/* Admits a listed key unless it fills this end with connections. */
static bool admit_key(zmq_port *port, const field *address, const uint8_t *key) {
    const int64_t now = rp_clock_now_ns(port->port.transport->clock);
    const bool admitted = rp_callers_admit(&port->end->callers, key, now, count_connections, port);
    if (!admitted) {
        log_too_many(port, address, key, now);
    }
    return admitted;
}

typedef enum { LET_IN, TRY_LATER, NOT_ON_LIST } answer;

/* `user`: attached by ZeroMQ to every message of the connection, see zmq_end_sort(). */
static void answer_request(void *socket, const field *id, answer what, const char *user) {
    static const char *const statuses[] = {"200", "300", "400"};
    static const char *const texts[] = {"OK", "too many connections", "key not on the list"};
    const char *status = statuses[what];
    const char *text = texts[what];
    (void)zmq_send(socket, "1.0", 3, ZMQ_SNDMORE | ZMQ_DONTWAIT);
    (void)zmq_send(socket, id->bytes, id->count, ZMQ_SNDMORE | ZMQ_DONTWAIT);
    (void)zmq_send(socket, status, 3, ZMQ_SNDMORE | ZMQ_DONTWAIT);
    (void)zmq_send(socket, text, strlen(text), ZMQ_SNDMORE | ZMQ_DONTWAIT);
    (void)zmq_send(socket, user, strlen(user), ZMQ_SNDMORE | ZMQ_DONTWAIT);
    (void)zmq_send(socket, "", 0, ZMQ_DONTWAIT);
}

void zap_serve(zmq_transport *transport) {
    field fields[ZAP_FRAMES];
    uint32_t count;
    if (!transport->zap_ready) {
        return;
    }
    transport->zap_ready = false;
    while (receive_request(transport->zap, fields, &count)) {
        bool sound = count == ZAP_FRAMES && field_equals(&fields[VERSION], "1.0") &&
                     fields[ID].count <= ZAP_FRAME_BYTES &&
                     field_equals(&fields[MECHANISM], "CURVE") && fields[KEY].count == RP_KEY_BYTES;
        zmq_port *port = sound ? find_port(transport, &fields[DOMAIN]) : NULL;
        zmq_port *of = port ? zmq_end_find(transport, port->end, fields[KEY].bytes) : NULL;
        char user[RP_KEY_TEXT] = "";
        answer what = NOT_ON_LIST;
        if (of) {
            what = admit_key(of, &fields[ADDRESS], fields[KEY].bytes) ? LET_IN : TRY_LATER;
            (void)zmq_z85_encode(user, fields[KEY].bytes, RP_KEY_BYTES);
        } else if (port) {
            const field *address = &fields[ADDRESS];
            char stranger[RP_KEY_TEXT];
            rp_port_note_stranger(&port->port,
                                  zmq_z85_encode(stranger, fields[KEY].bytes, RP_KEY_BYTES),
                                  (const char *)address->bytes,
                                  address->count < ZAP_FRAME_BYTES ? address->count : 0);
            log_refused(transport, port, &fields[ADDRESS], fields[KEY].bytes);
        }
        if (count < 2 || fields[ID].count > ZAP_FRAME_BYTES) {
            fields[ID].count = 0;
        }
        answer_request(transport->zap, &fields[ID], what, user);
    }
}
