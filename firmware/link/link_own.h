/* Private to links.c, link.c and link_*.c: what the links of one process part share, and a link. */
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
    rp_transport *own_transport; /* to be finished with the links, or NULL */
    uint64_t seed;
    const rp_media *media;
    rp_rng *sessions; /* NULL: from the kernel */
    rp_link *first;
    uint32_t opened; /* links, ever */
};

/* A longer one is no stall: the process was stopped, or its clock has jumped. */
#define RP_LINK_STALL_MAX_NS (60 * RP_NS_PER_S)

struct rp_link {
    rp_links *links;
    rp_link *next;
    rp_arena arena; /* holds this struct and its pools; freed at close */
    char name[RP_PORT_NAME_BYTES];
    uint32_t number; /* of its links, in the order in which they were opened */
    bool bound;
    uint32_t absences; /* connecting: so often in a row nobody listened at the peer's address */
    bool broken_off;   /* as in rp_link_health */
    bool has_met;      /* connecting: a handshake has succeeded; bound: the peer was heard */
    size_t part_bytes_max;
    rp_run_identity run;
    uint32_t wire;

    rp_link_profile far; /* as in the options */
    rp_port *port;
    rp_port *line; /* the same when a line stands in front, else NULL */
    uint64_t peer; /* bound: the connection that we answer, 0 = none yet */
    bool blocked;  /* the port had no room in this round */
    rp_session session;
    uint64_t served_session; /* bound: of the peer whose address `served` is */
    char served[RP_PORT_ADDRESS_BYTES], before[RP_PORT_ADDRESS_BYTES];
    struct { /* bound: another life that names our session while the peer is served */
        uint64_t session;
        int64_t since_ns;
        bool counted;
        uint32_t count;
        char address[RP_PORT_ADDRESS_BYTES];
    } twin;
    rp_flood flood[2]; /* of the peer that is served; bound: of all others */
    uint32_t drained;  /* times in this round */

    rp_sender *sender;
    rp_receiver *receiver;
    rp_link_stats stats;
    struct { /* what was counted when this peer's life began here, and when that was */
        uint64_t bytes_sent, resent, resets;
        int64_t since_ns;
    } met;
    struct { /* the same of rp_link_begin_use() */
        uint64_t bytes_sent;
        double line_s;
    } late;
    int64_t last_step_ns;
    int64_t stall_ns, stall_since_ns; /* of this end: the longest of late, and since when */
    int64_t peer_stall_ns;
    rp_link_answer answer; /* NULL: questions are refused */
    void *answer_context;
};

static inline int64_t rp_link_now_ns(const rp_link *link) {
    return rp_clock_now_ns(link->links->clock);
}

/* link_send.c: what the link owns in every frame: the latest ack and credit, the sessions, the run.
 */
void rp_link_stamp(const rp_link *link, rp_Frame *frame);
/* A frame of the link's own kinds. errors  AGAIN; PEER: nobody known to send to */
rp_err rp_link_post_bare(rp_link *link, rp_Frame *frame);
/* An ack that can not be sent now stays due; an "again" then waits for the peer's probe. */
void rp_link_send_ack(rp_link *link, bool again, uint64_t generation);
void rp_link_send_due_ack(rp_link *link);
void rp_link_send_due_probe(rp_link *link);
void rp_link_transmit(rp_link *link); /* messages, as far as the port takes them */

/* link_questions.c: a sound ASK that came over connection `from`. False: nothing is answered. */
bool rp_link_take_question(rp_link *link, const rp_Frame *frame, uint64_t from);

/* link_receive.c: takes packets that have come, a bounded number. */
void rp_link_drain_port(rp_link *link);

#endif
