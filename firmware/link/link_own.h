/* Private to links.c, link.c and link_*.c: the state shared by the links of one process part, and
 * the state of one link. */
#ifndef RP_LINK_LINK_OWN_H
#define RP_LINK_LINK_OWN_H

#include "link/flood.h"
#include "link/link.h"
#include "link/sender.h"
#include "link/session.h"

struct rp_links {
    const rp_clock *clock;
    rp_loop own_loop;
    rp_loop *loop;
    rp_transport *transport;
    rp_transport *own_transport; /* closed with the links, or NULL */
    uint64_t seed;
    const rp_media *media;
    rp_rng *sessions; /* NULL: the kernel's random numbers */
    rp_link *first;
    uint32_t opened; /* number of links ever opened */
};

/* A longer gap is not counted as a stall: the process was stopped, or its clock has jumped. */
#define RP_LINK_STALL_MAX_NS (60 * RP_NS_PER_S)

struct rp_link {
    rp_links *links;
    rp_link *next;
    rp_arena arena; /* holds this struct and its pools; freed at close */
    char name[RP_PORT_NAME_BYTES];
    uint32_t number; /* index among its links, in the order of opening */
    bool bound;
    uint32_t absences; /* connecting: times in a row that nothing listened at the peer's address */
    bool broken_off;   /* as in rp_link_health */
    bool has_met;      /* connecting: a handshake has succeeded; bound: the peer was heard */
    size_t part_bytes_max;
    rp_run_identity run;
    uint32_t wire;

    rp_link_profile far; /* as in the options */
    rp_port *port;
    rp_port *line; /* equals `port` if it is an emulated line, else NULL */
    uint64_t peer; /* bound: the connection that is answered, 0 = none yet */
    bool blocked;  /* the port had no room in this round */
    rp_session session;
    uint64_t served_session; /* bound: session of the peer at the address `served` */
    char served[RP_PORT_ADDRESS_BYTES], before[RP_PORT_ADDRESS_BYTES];
    struct { /* bound: another session that names ours while the peer is served */
        uint64_t session;
        int64_t since_ns;
        bool counted;
        uint32_t count;
        char address[RP_PORT_ADDRESS_BYTES];
    } twin;
    rp_flood flood[2]; /* of the served peer; bound: of all other peers */
    uint32_t drained;  /* drains in this round */

    rp_sender *sender;
    rp_receiver *receiver;
    rp_link_stats stats;
    struct { /* counters when the present peer's session began, and the time */
        uint64_t bytes_sent, resent, resets;
        int64_t since_ns;
    } met;
    struct { /* counters at rp_link_begin_use() */
        uint64_t bytes_sent;
        double line_s;
    } late;
    int64_t last_step_ns;
    /* longest recent stall of this end, and when it was measured */
    int64_t stall_ns, stall_since_ns;
    int64_t peer_stall_ns;
    rp_link_answer answer; /* NULL: questions are refused */
    void *answer_context;
};

static inline int64_t rp_link_now_ns(const rp_link *link) {
    return rp_clock_now_ns(link->links->clock);
}

/* link_send.c: fills in the link's fields of a frame: ack, credit, sessions, run. */
void rp_link_stamp(const rp_link *link, rp_Frame *frame);
/* Sends a frame of the link's own kinds. errors AGAIN; PEER: there is no known peer to send to */
rp_err rp_link_post_bare(rp_link *link, rp_Frame *frame);
/* An ack that cannot be sent now stays due; an "again" then waits for the peer's probe. */
void rp_link_send_ack(rp_link *link, bool again, uint64_t generation);
void rp_link_send_due_ack(rp_link *link);
void rp_link_send_due_probe(rp_link *link);
void rp_link_transmit(rp_link *link); /* sends messages while the port accepts them */

/* link_questions.c: answers a valid ASK from connection `from`; false: no answer. */
bool rp_link_take_question(rp_link *link, const rp_Frame *frame, uint64_t from);

/* link_receive.c: processes incoming packets, a bounded number. */
void rp_link_drain_port(rp_link *link);

#endif
