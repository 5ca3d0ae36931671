/* Asks a board a question, even while it works for another host. */
#ifndef RP_ASK_ASK_H
#define RP_ASK_ASK_H

#include "greet/cause.h"
#include "transport/transport.h"

typedef struct {
    const rp_roster_entry *board; /* borrowed */
    const char *listen;           /* where boards that dial find this host; NULL: nowhere */
    const rp_keypair *keys;
    const rp_clock *clock;
    rp_transport *transport;        /* borrowed; NULL: ZeroMQ over TCP */
    rp_loop *loop;                  /* borrowed; NULL: a poll */
    bool (*stopped)(void *context); /* polled */
    void *context;
} rp_ask_options;

typedef struct rp_asker rp_asker;

/* Its memory is in `arena`. errors those of rp_port_open() */
rp_err rp_asker_open(rp_arena *arena, const rp_ask_options *options, rp_asker **out) RP_MUST_CHECK;
void rp_asker_close(rp_asker **asker); /* accepts NULL */

/* Asks and waits for an answer. `ask`: without its id. *out: CONDITION, LINES or ORDERED with DONE.
 * *round_trip_ns (may be NULL): of the answered question; 0: it was sent more than once.
 * errors FAULT: no answer within wait_ns, or not now, with the reason; REFUSED: keys, or the board
 * accepts no client; PEER: it does not know the question; INTERRUPTED */
rp_err rp_asker_ask(rp_asker *asker, const rp_Ask *ask, int64_t wait_ns, rp_Frame *out,
                    int64_t *round_trip_ns) RP_MUST_CHECK;
/* Like rp_asker_ask(), but silence is not an error: for callers that wait for a board. errors of a
 * port; INTERRUPTED */
rp_err rp_asker_try(rp_asker *asker, const rp_Ask *ask, int64_t wait_ns, rp_Frame *out,
                    int64_t *round_trip_ns, rp_greet_state *came) RP_MUST_CHECK;

#endif
