/* Private to the room: what a link is made of.
 *
 * A frame goes  outgoing.c (numbered, kept) -> post() -> [emulate.c] -> socket.c -> ZeroMQ, and
 * comes socket.c -> incoming.c (checked, ordered) -> the caller. zap.c decides who may connect. */
#ifndef RP_LINK_INSIDE_H
#define RP_LINK_INSIDE_H

#include <stdatomic.h>
#include <zmq.h>

#include "link/link.h"

enum {
    FRAMES_MAX = 1 + RP_PARTS_MAX, /* frame 0 and parts */
    ROUTE_BYTES_MAX = 256,         /* of ZeroMQ's routing id */
    ALLOWED_MAX = 64,
    RETIRED_MAX = 8,
    REFUSED_KEYS_MAX = 16,
    NAME_BYTES = 48,
    ENDPOINT_BYTES = 256,
    EAGER_REPLAYS = 3, /* ended with a probe at once; then with the usual pause */
    QUEUE_SLACK = 64   /* room for acks and control in queues that are sized by the window */
};

#define PROBE_FIRST_NS (200 * RP_NS_PER_MS)
#define PROBE_LAST_NS (2 * RP_NS_PER_S)
#define ANY_GENERATION UINT64_MAX
#define PEER_SILENT_NS (3 * RP_NS_PER_S)

/* A numbered message, kept until the peer has acked it and ZeroMQ has let its memory go. */
typedef struct {
    rp_Frame header;
    zmq_msg_t part[RP_PARTS_MAX]; /* our reference; each transmission takes another */
    uint32_t part_count;
    bool data;
    bool transmitted;
    bool finished;         /* done() was called */
    _Atomic uint32_t lent; /* parts that ZeroMQ may still read; counted down by its thread */
    void (*done)(void *context);
    void *context;
} outgoing;

/* Positions count all messages since open; seq counts from the stream's base. All ordered:
 * finished <= acked <= sent <= sent_high <= next. */
typedef struct {
    outgoing *ring;
    uint32_t capacity;
    uint64_t finished, acked, sent, sent_high, next;
    uint64_t base;       /* position of seq 1 of the stream to this peer */
    uint32_t data_held;  /* in the ring */
    uint64_t data_count; /* data parcels numbered in this stream */
    uint64_t credit;     /* the peer takes this many of them */
    uint64_t generation; /* of the replay: an older request for one is out of date */
    uint32_t replays;    /* since the last progress */
    int64_t probe_ns, probe_wait_ns;
} sender;

typedef struct incoming {
    rp_message message; /* first: a message is found again by its address */
    zmq_msg_t part[RP_PARTS_MAX];
    bool data;
    bool used;
    struct incoming *next;
} incoming;

typedef struct {
    incoming *pool;
    uint32_t capacity;
    incoming *free, *first, *last;
    bool news;            /* a message came since the last wait */
    uint32_t data_held;   /* accepted, not released */
    uint64_t data_count;  /* accepted in this stream */
    uint64_t expected;    /* seq */
    uint64_t asked_again; /* expected when a replay was last asked for */
    bool starved;         /* dropped a message because the pool was used up */
    bool ack_due, ack_overdue;
} receiver;

typedef struct {
    zmq_msg_t frame[FRAMES_MAX];
    uint32_t frame_count;
    int64_t due_ns;
} parked;

typedef struct {
    bool on;
    rp_link_profile profile;
    rp_rng rng;
    parked *ring;
    uint32_t capacity, count;
    uint64_t head;
    int64_t opened_ns, free_ns, last_due_ns;
} emulation;

struct rp_link {
    rp_links *links;
    rp_link *next;
    rp_arena arena; /* holds this struct and its pools; freed at close */
    uint32_t id;
    char name[NAME_BYTES];
    char domain[NAME_BYTES]; /* ZAP */
    char endpoint[ENDPOINT_BYTES];
    bool bound;
    bool copies; /* inproc: the peer would keep our memory beyond close */
    uint32_t window, send_window;
    size_t part_bytes_max;
    rp_run_identity run;
    uint32_t wire; /* version in which we send */
    uint8_t allowed[ALLOWED_MAX][RP_KEY_BYTES];
    uint32_t allowed_count;

    void *socket;  /* ROUTER when bound, else DEALER */
    void *monitor; /* of our handshakes, when connecting */
    uint8_t route[ROUTE_BYTES_MAX];
    size_t route_bytes;
    bool want_write;            /* ZeroMQ had no room */
    uint32_t failed_handshakes; /* in a row */

    int64_t reconnect_ns; /* when connecting: after the end of a connection; 0 = none */

    uint64_t session, peer_session;
    uint64_t retired[RETIRED_MAX];
    uint32_t retired_count;
    uint64_t warned_session;
    bool probe_now; /* after a new connection, and after a replay */

    sender out;
    receiver in;
    emulation emulate;
    rp_link_stats stats;
    int64_t last_step_ns;
};

struct rp_links {
    const rp_clock *clock;
    uint64_t seed;
    void *context;
    void *zap;
    char public_text[RP_KEY_TEXT];
    char secret_text[RP_KEY_TEXT];
    rp_link *first;
    uint32_t next_id;
    uint8_t refused[REFUSED_KEYS_MAX][RP_KEY_BYTES]; /* already logged */
    uint32_t refused_count;
};

/* ---- links.c ---- */

rp_err key_decode(const char *text, uint8_t *out) RP_MUST_CHECK;
int64_t link_now_ns(const rp_link *link);

/* ---- zap.c ---- */

rp_err zap_open(rp_links *links) RP_MUST_CHECK;
void zap_serve(rp_links *links);

/* ---- socket.c ---- */

typedef enum {
    SENT, /* ZeroMQ has the frames (or lost them with a connection) */
    FULL, /* no room or no connection; the frames stay the caller's */
    GONE  /* nobody known to send to; the frames stay the caller's */
} sent;

rp_err socket_open(rp_link *link, const rp_link_options *options) RP_MUST_CHECK;
void socket_close(rp_link *link);
void socket_monitor(rp_link *link);
sent socket_send(rp_link *link, zmq_msg_t *frames, uint32_t count);

/* One message: at most FRAMES_MAX frames, opened; 0 when there is none, or a longer one: that is
 * read to its end and counted as refused. */
uint32_t socket_recv(rp_link *link, zmq_msg_t *frames, uint8_t *route, size_t *route_bytes);
void close_frames(zmq_msg_t *frames, uint32_t count);

/* ---- emulate.c ---- */

void emulate_close(rp_link *link);
bool emulate_full(const rp_link *link);
void emulate_park(rp_link *link, zmq_msg_t *frames, uint32_t count, size_t bytes);
void emulate_flush(rp_link *link);

/* ---- outgoing.c ---- */

rp_err sender_open(rp_link *link) RP_MUST_CHECK;
void sender_close(rp_link *link); /* after socket_close() */
void sender_reset(rp_link *link); /* the peer is another one: what it has not acked is given up */
bool sender_ack(rp_link *link, uint64_t ack); /* false: acks what was never sent */
void sender_again(rp_link *link, uint64_t generation);
void sender_transmit(rp_link *link);
void sender_finish(rp_link *link);
void sender_probe(rp_link *link);
void sender_credit(rp_link *link, uint64_t credit);
bool sender_waits(const rp_link *link); /* for an ack, for credit, or to be known */
bool sender_ready(const rp_link *link); /* has something that could go now */

/* Stamps what the link owns into the header and sends; `parts` are copied by reference. */
sent post(rp_link *link, rp_Frame *header, zmq_msg_t *parts, uint32_t part_count);
/* An unnumbered kind. */
sent post_bare(rp_link *link, rp_Frame *header);

/* ---- incoming.c ---- */

rp_err receiver_open(rp_link *link) RP_MUST_CHECK;
void receiver_close(rp_link *link);
void receiver_reset(rp_link *link);
void receiver_drain(rp_link *link);
void receiver_ack(rp_link *link); /* sends one when due */
uint64_t receiver_credit(const rp_link *link);

#endif
