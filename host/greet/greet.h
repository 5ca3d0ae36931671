/* Greets boards over separate links, outside any run, to find out which are there; then they can be
 * asked over the same links. Uses one thread. */
#ifndef RP_GREET_GREET_H
#define RP_GREET_GREET_H

#include "link/link.h"
#include "run/entry.h"

/* What a host knows about a board that it has greeted or asked (ask/ask.h). */
typedef enum {
    RP_GREET_THERE,       /* it answered */
    RP_GREET_BUSY,        /* it has a run */
    RP_GREET_OLD,         /* it answered, but its software lacks required features */
    RP_GREET_SILENT,      /* nothing answers at its address */
    RP_GREET_REFUSED,     /* it refuses our key, or its key is not the one in the roster */
    RP_GREET_NOT_DIALLED, /* it dials, and has not done so */
    RP_GREET_MUTE, /* the keys are right but it sends nothing: it serves another host, or it hangs
                    */
    RP_GREET_STATES = RP_GREET_MUTE /* states with a word of their own; MUTE uses that of BUSY */
} rp_greet_state;

/* "there", "busy", .. */
const char *rp_greet_state_word(rp_greet_state state);

/* ---- one link -------------------------------------------------------------------------------- */

/* The first message of a host to a board. `origin`: this machine and run folder; NULL: no run. */
rp_Frame rp_greet_hello(int64_t now_ns, const char *origin);
/* Opens a control link. `dials`: the board dials `endpoint`, an address of this host. `name`: for
 * logs. errors of rp_link_open() */
rp_err rp_greet_open_link(rp_links *links, const char *name, bool dials, const char *endpoint,
                          const char *public_text, rp_link **out) RP_MUST_CHECK;

/* ---- many boards ----------------------------------------------------------------------------- */

typedef struct {
    const rp_roster_entry *board; /* [count], borrowed */
    uint32_t count;
    const char *listen; /* where boards that dial find this host; NULL: nowhere */
    const rp_keypair *keys;
    const rp_clock *clock;
    rp_transport *transport; /* as in rp_links_options */
    rp_loop *loop;
    const char *link;               /* name of the links in logs */
    const char *who;                /* named in the message of INTERRUPTED */
    bool (*stopped)(void *context); /* polled in each round; NULL: never */
    void *context;
    uint64_t features; /* a board that lacks one of these is OLD */
    rp_kind answer;    /* kind of message that answers rp_greet_ask() */
    int64_t mute_ns;   /* a connected board that is silent for this long is MUTE; 0: it may answer
                          until the end of the wait */
} rp_greet_options;

typedef struct rp_greet rp_greet;

/* Opens a link to each board and sends HELLO; a restarted process is greeted again. Memory is in
 * `arena`. errors of rp_links_open(), rp_link_open() */
rp_err rp_greet_open(rp_arena *arena, const rp_greet_options *options,
                     rp_greet **out) RP_MUST_CHECK;
void rp_greet_close(rp_greet **greet); /* accepts NULL */
/* Opens a new link to the board and greets it again. errors of rp_link_open() */
rp_err rp_greet_again(rp_greet *greet, uint32_t board) RP_MUST_CHECK;

/* Runs one round of all links, sleeping for a moment at most. errors INTERRUPTED; of a link */
rp_err rp_greet_round(rp_greet *greet) RP_MUST_CHECK;
/* Runs rounds until each board has answered, refused the keys, or is mute; *all is false if wait_ns
 * ends first. errors of rp_greet_round() */
rp_err rp_greet_wait(rp_greet *greet, int64_t wait_ns, bool *all) RP_MUST_CHECK;

typedef struct {
    rp_greet_state state;
    const rp_Hello *hello; /* NULL: not received */
    int64_t round_trip_ns; /* of the last ping; 0: unknown */
    uint32_t restarts;     /* number of restarted processes that were greeted over this link */
    uint64_t strangers;    /* handshakes with keys that are not in the roster */
} rp_greet_found;
rp_greet_found rp_greet_look(const rp_greet *greet, uint32_t board);
rp_link *rp_greet_link(const rp_greet *greet, uint32_t board);

/* Drops the last answer and sends a question. errors of rp_link_send() */
rp_err rp_greet_ask(rp_greet *greet, uint32_t board, rp_Frame *question) RP_MUST_CHECK;
/* Returns the answer to the last question, once; NULL: none yet. Valid until the next round. */
const rp_Frame *rp_greet_take_answer(rp_greet *greet, uint32_t board);

#endif
