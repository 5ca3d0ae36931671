/* Boards are greeted over links of their own, in no run: which of them are there? Then they can be
 * asked over the same links. One thread. */
#ifndef RP_GREET_GREET_H
#define RP_GREET_GREET_H

#include "link/link.h"
#include "run/entry.h"

/* What a host knows of a board that it has greeted, or asked (ask/ask.h). */
typedef enum {
    RP_GREET_THERE,       /* it has answered */
    RP_GREET_BUSY,        /* it has a run */
    RP_GREET_OLD,         /* it has answered, and its software lacks what is needed */
    RP_GREET_SILENT,      /* nothing answers at its address */
    RP_GREET_REFUSED,     /* it refuses our key, or has another key than the roster says */
    RP_GREET_NOT_DIALLED, /* it dials, and has not */
    RP_GREET_MUTE, /* the keys fit, and it says nothing: it serves another host, or it hangs */
    RP_GREET_STATES = RP_GREET_MUTE /* those that have a word; MUTE has that of BUSY */
} rp_greet_state;

/* "there", "busy", .. */
const char *rp_greet_state_word(rp_greet_state state);

/* ---- one link -------------------------------------------------------------------------------- */

/* What a host says first to a board. `origin`: this machine and run folder; NULL: it has no run. */
rp_Frame rp_greet_hello(int64_t now_ns, const char *origin);
/* Opens a control link. `dials`: the board dials `endpoint`, which is this host's. `name`: in logs.
 * errors of rp_link_open() */
rp_err rp_greet_open_link(rp_links *links, const char *name, bool dials, const char *endpoint,
                          const char *public_text, rp_link **out) RP_MUST_CHECK;

/* ---- many boards ----------------------------------------------------------------------------- */

typedef struct {
    const rp_roster_entry *board; /* [count], borrowed */
    uint32_t count;
    const char *listen; /* where boards that dial find this host; NULL: none does */
    const rp_keypair *keys;
    const rp_clock *clock;
    rp_transport *transport; /* as those of rp_links_options */
    rp_loop *loop;
    const char *link;               /* name of the links, in logs */
    const char *who;                /* stands in the message of INTERRUPTED */
    bool (*stopped)(void *context); /* asked in each round; NULL: never */
    void *context;
    uint64_t features; /* a board without one of these is OLD */
    rp_kind answer;    /* the kind of message that answers rp_greet_ask() */
    int64_t mute_ns;   /* a board that is connected and silent for this long is MUTE; 0: it may
                          answer until the wait is over */
} rp_greet_options;

typedef struct rp_greet rp_greet;

/* Opens a link to each board and sends a HELLO; a process that restarts is greeted again. The
 * memory lies in `arena`. errors of rp_links_open(), rp_link_open() */
rp_err rp_greet_open(rp_arena *arena, const rp_greet_options *options,
                     rp_greet **out) RP_MUST_CHECK;
void rp_greet_close(rp_greet **greet); /* NULL is accepted */
/* A new link to the board, and a new greeting. errors of rp_link_open() */
rp_err rp_greet_again(rp_greet *greet, uint32_t board) RP_MUST_CHECK;

/* One round of all links, which sleeps for a moment at most. errors INTERRUPTED; of a link */
rp_err rp_greet_round(rp_greet *greet) RP_MUST_CHECK;
/* Rounds until each board has answered, or has refused the keys, or is mute; *all is false when
 * wait_ns is over first. errors of rp_greet_round() */
rp_err rp_greet_wait(rp_greet *greet, int64_t wait_ns, bool *all) RP_MUST_CHECK;

typedef struct {
    rp_greet_state state;
    const rp_Hello *hello; /* NULL: none has come */
    int64_t round_trip_ns; /* of the last ping; 0: not known */
    uint32_t restarts;     /* processes that were greeted after the first one, over this link */
    uint64_t strangers;    /* handshakes with keys that the roster does not have */
} rp_greet_found;
rp_greet_found rp_greet_look(const rp_greet *greet, uint32_t board);
rp_link *rp_greet_link(const rp_greet *greet, uint32_t board);

/* Forgets the last answer, and asks. errors of rp_link_send() */
rp_err rp_greet_ask(rp_greet *greet, uint32_t board, rp_Frame *question) RP_MUST_CHECK;
/* The answer since the last question, once; NULL: none has come. It is valid until the next
 * round. */
const rp_Frame *rp_greet_take_answer(rp_greet *greet, uint32_t board);

#endif
