/* The boards as the controller sees them: what each has said, its control link, and the messages
 * that wait for room in it. Nothing here waits or decides. */
#ifndef RP_RING_RING_H
#define RP_RING_RING_H

#include "checkpoint/position.h"
#include "link/watch.h"
#include "plan/plan.h"
#include "planning/profile.h"

/* Messages that may wait for a board when its link is full. At most this many are due between two
 * of its answers: one HELLO or CONNECT, one START, EVALUATE, SAVE or RECORD, one STOP, the decision
 * on one step (it does not go on without), and the gains that may still take effect
 * (RP_GAIN_HISTORY). Longer streams (tensors, texts) are not queued: their state offers them again.
 */
enum { RP_RING_PENDING_MAX = 12 };

/* What boards report at the end of a segment. */
typedef struct {
    uint32_t peer;  /* board at the other end */
    uint64_t bytes; /* sent */
    double busy_s;
    double rate;             /* bytes a second, of late; 0: not known */
    double delay_s[2];       /* to the ack: of half of the messages, of 95 %, at most */
    uint64_t resent, resets; /* all of these by the sender */
} rp_board_link;
typedef struct {
    int64_t busy_ns;
    uint64_t microbatches;
    uint32_t in_flight_max, staleness_max;
    uint64_t device_bytes_max, flash_bytes;
    uint32_t link_count;
    rp_board_link link[RP_PLAN_NEIGHBOURS_MAX];
    rp_board_link feed[2], control[2]; /* to the host, and back */
} rp_board_facts;

/* What building has cost a board, as its last BUILDING says. */
typedef struct {
    uint32_t kernels, ready, built;
    int64_t build_ns, read_ns;
    uint32_t layers, layers_timed;
} rp_board_building;

typedef struct {
    rp_Frame frame;
    rp_part part;
    uint32_t part_count; /* 0 or 1 */
    uint8_t *bytes;      /* of the part */
    size_t room;         /* for it, at most ring->pending_bytes */
} rp_pending_message;

typedef struct {
    const char *name;
    const char *device; /* from its hello; NULL: not greeted yet, or lost since */
    char device_text[sizeof(((rp_Hello *)0)->device)];
    char kind[sizeof(((rp_Hello *)0)->kind)]; /* of device, driver and tuning; "": not known */
    char endpoint[128];
    bool has_ended; /* nothing listened at its address any more, and it was not heard since */
    bool dials;     /* it dials ring->run->listen, where `control` and `feed` are bound */
    char public_text[RP_KEY_TEXT];
    rp_link *control, *feed;
    uint32_t twins;           /* of its control link, as looked at last: rp_link_peers */
    int64_t twins_said_ns;    /* when; 0: never */
    uint64_t strangers;       /* refused where it dials, as looked at last */
    rp_link_watch feed_watch; /* while ring->feeding */
    bool feed_is_silent;      /* as the watch saw it last */
    bool feed_silence_said;
    rp_Waiting waiting; /* as it said last in this segment */
    int64_t waiting_ns; /* when */
    rp_pending_message pending[RP_RING_PENDING_MAX];
    uint32_t pending_first, pending_count;
    int64_t pending_since_ns;
    bool asked; /* it has got what the state at hand asks of it */
    bool hello, ready, profiled, finished, saved, copied;
    uint32_t sends;  /* node whose state comes from it: its own, or one that it has a copy of */
    bool has_built;  /* it has been ready for some assignment of this run */
    bool refuses;    /* the handshake, where that is no error: it is awaited as if it were away */
    bool unanswered; /* its machine accepts connections, as rp_link_health says: it is stopped */
    bool broken_off; /* handshakes at its address, as rp_link_health says: another key, perhaps */
    bool refusal_said, cause_said;
    bool hung; /* it was lost: not heard for RP_RING_SILENT_NS, or hang.c found it */
    uint32_t hop_port[RP_PLAN_NEIGHBOURS_MAX]; /* of the neighbours that dial it, in order */
    uint32_t feed_port;
    int64_t clock_offset_ns; /* host time = board time + offset */
    rp_gemm_choice gemm;
    uint64_t memory_bytes; /* of its device, as it says */
    rp_device_memory device_memory;
    uint64_t device_bytes, weight_bytes, slots, resident_bytes;
    uint64_t copy_bytes;   /* of its copy, without what is in flight */
    uint64_t parcel_bytes; /* of what its links may hold */
    uint64_t stash_bytes;  /* .. and of offloaded stashes, in the same memory: where copies lie */
    uint64_t limit_bytes;  /* that it may take of that; 0 = not known */
    bool own_memory;       /* the device has it: device_bytes lie apart from the three */
    int64_t prepare_ns;
    rp_board_building building;      /* of the profile or the stages that it builds now */
    rp_board_building built;         /* of all before */
    rp_board_facts facts;            /* of all assignments */
    rp_board_facts facts_before;     /* of those before this one */
    rp_run_ledger ledger;            /* of its last segment */
    uint64_t microbatches_kept;      /* of the facts: those that the newest checkpoint has */
    uint64_t microbatches_copied[2]; /* .. that the copies have, by rp_control_copies.set */
    /* Updates done, of the last checkpoint or segment: by replica, or by stage of the board. */
    uint64_t applied[RP_REPLICAS_MAX];
    uint64_t in_flight_bytes;   /* of microbatches in flight at the last pause */
    uint64_t skipped_step;      /* that it left out last; of board 0: or the host, for all */
    uint32_t skipped_row;       /* steps in a row up to that one */
    uint32_t weight_copies;     /* versions of the weights that its memory holds */
    uint32_t weight_copies_max; /* in any assignment */
    uint32_t probe_copies;      /* and those of a probe */
} rp_board_state;

/* away.c: boards that have left the ring. */
enum { RP_AWAY_MAX = 8 }; /* that are tried at a time */

typedef struct {
    const char *name;   /* of its roster entry; NULL: none is tried */
    rp_link *control;   /* NULL: not just now */
    int64_t greeted_ns; /* last; 0: never */
    bool answers;       /* it could join */
    bool was_refused;   /* which has been said */
} rp_away_board;

typedef struct {
    uint32_t boards;       /* that the ring had at first */
    uint32_t left, joined; /* how often, in all */
    int64_t not_before_ns; /* the ring does not grow */
    char names[200];       /* of those that have joined just now */
    rp_away_board board[RP_AWAY_MAX];
} rp_away;

typedef struct {
    rp_arena *arena;
    const rp_runfile *run;
    const rp_clock *clock;
    rp_keypair keys;
    const rp_media *media; /* of emulated lines, borrowed; NULL: none */
    rp_links *links;
    bool owns_links;
    rp_board_state *board;
    uint32_t count;
    const char *origin;       /* this machine and run folder, for boards to tell; NULL: not told */
    size_t pending_bytes;     /* largest part that may wait */
    rp_run_identity identity; /* of the run, on every message; each assignment has its term */
    rp_wire_range wire;       /* versions that all ends speak */
    uint64_t features;        /* that all ends have */
    int64_t now_ns;           /* of this round */
    int64_t progress_ns; /* when something came that moves the run: time-outs count from here */
    int64_t last_ping_ns;
    int64_t awake_ns;  /* since when this host has looked at its links without a long pause: silence
                          counts from here */
    bool watching;     /* silence of a board is a fault */
    bool feeding;      /* a segment is on: silence of a feed link, too */
    bool knows_boards; /* the run has had them: one that refuses the handshake is no error, but as
                          good as away */
    bool spawned, boards_up; /* boards of this machine: started, and listening */
    int64_t lines_ns;        /* when the time of emulated lines began; 0: not yet */
    int64_t greeted_ns;      /* since when boards are greeted; 0: they are not */
    rp_away away;
    struct {
        char key[RP_KEY_TEXT];
        int64_t said_ns; /* 0: never */
    } stranger;          /* that dialled, and was said last */
} rp_ring;

/* Room for the boards of the run file. errors MEMORY */
rp_err rp_ring_open(rp_arena *arena, const rp_runfile *run, const rp_clock *clock,
                    rp_ring *out) RP_MUST_CHECK;
/* The board is from now on the one that the roster has at its place: it is not known yet, and has
 * no link. */
void rp_ring_take_entry(rp_ring *ring, uint32_t board);
/* The board leaves the ring, and those behind it move up. At least one has to stay. */
void rp_ring_leave(rp_ring *ring, uint32_t board);
/* Board k is the one that was at place at[k]; each comes once. errors MEMORY */
rp_err rp_ring_reorder(rp_ring *ring, const uint32_t *at) RP_MUST_CHECK;
/* The board that the roster has at this place now joins the ring, and those behind it move down.
 * There is room for as many as the ring had at first. */
void rp_ring_join(rp_ring *ring, uint32_t board);
/* Where a board listens and by which key it is known. */
void rp_ring_set_address(rp_ring *ring, uint32_t board, const char *endpoint,
                         const char *public_text);
/* Opens the links, unless `links` is lent, and the control link of each board that has none.
 * errors of rp_link_open() */
rp_err rp_ring_connect(rp_ring *ring, rp_links *links) RP_MUST_CHECK;
/* The control link to a board; `dials`: `endpoint` is this host's. errors of rp_link_open() */
rp_err rp_ring_open_control(const rp_ring *ring, bool dials, const char *endpoint,
                            const char *public_text, rp_link **out) RP_MUST_CHECK;
/* What this host says first to a board. */
rp_Frame rp_ring_greeting(const rp_ring *ring, int64_t now_ns);
/* What was under way is over: feed links close, what waits to be sent is dropped, and so is what
 * the boards have said of it. Boards that are lost (`lost`, those that have begun anew, and those
 * that are silent) also lose their control link: rp_ring_connect() opens it again. */
void rp_ring_reset(rp_ring *ring, uint32_t lost, int64_t now_ns);
/* Links are gone, and with them every message on its way. */
void rp_ring_disconnect(rp_ring *ring);

/* A message that must not be lost or wait for a state: goes out now, or with one of the next
 * rp_ring_step(). `part` is copied, at most ring->pending_bytes; NULL: none.
 * errors  FAULT: RP_RING_PENDING_MAX wait already; those of rp_link_send() */
rp_err rp_ring_post(rp_ring *ring, uint32_t board, const rp_Frame *frame,
                    const rp_part *part) RP_MUST_CHECK;
rp_err rp_ring_post_all(rp_ring *ring, const rp_Frame *frame) RP_MUST_CHECK;
/* Whether a text fits into a message to a board. `what`: "the plan". errors USAGE naming both sizes
 */
rp_err rp_ring_check_text(const char *what, const char *text) RP_MUST_CHECK;
/* Now or not at all: AGAIN when the link has no room, or others wait. Parts are copied. */
rp_err rp_ring_offer(rp_ring *ring, uint32_t board, rp_Frame *frame, const rp_part *parts,
                     uint32_t part_count) RP_MUST_CHECK;
/* Offers one piece of a long stream, of at most RP_RING_PIECE_BYTES; NULL: only the frame. It
 * counts as progress. errors  AGAIN: the link has no room, or too many pieces are not acknowledged
 * yet */
enum { RP_RING_PIECE_BYTES = 262144 };
rp_err rp_ring_offer_piece(rp_ring *ring, uint32_t board, rp_Frame *frame,
                           const rp_part *part) RP_MUST_CHECK;

/* Something came that moves the run: time-outs count from now. */
void rp_ring_note_progress(rp_ring *ring);

/* A round begins. A host that was asleep has heard nobody. Call it before rp_ring_step(). */
void rp_ring_begin_round(rp_ring *ring, int64_t now_ns);
/* Moves one board's links and what waits for room in them.
 * errors  TIMEOUT: a message waits for rp_ring_patience_ns(); those of the link */
rp_err rp_ring_step(rp_ring *ring, uint32_t board, int64_t now_ns) RP_MUST_CHECK;
/* When a heartbeat is due, or a message has waited for too long. */
int64_t rp_ring_deadline_ns(const rp_ring *ring);
/* Whether it is time for a heartbeat: then call rp_ring_watch() with `ping` for every board. */
bool rp_ring_ping_is_due(const rp_ring *ring, int64_t now_ns);
/* errors  REFUSED: the handshake, as rp_ring_refused() says, unless ring->knows_boards; FAULT:
 * restarted, or silent for RP_RING_SILENT_NS, on its feed link as rp_link_look() says */
rp_err rp_ring_watch(rp_ring *ring, uint32_t board, bool ping, int64_t now_ns) RP_MUST_CHECK;

/* What is wrong with the keys of a board that has refused the handshake. errors REFUSED */
rp_err rp_ring_refused(const rp_ring *ring, uint32_t board) RP_MUST_CHECK;

/* Of a board that we had and that breaks off one handshake after the other. errors REFUSED */
rp_err rp_ring_broken_off(const rp_ring *ring, uint32_t board) RP_MUST_CHECK;

/* Reports that the board's machine accepts connections but its agent does not answer. errors FAULT
 */
rp_err rp_ring_unanswered(const rp_ring *ring, uint32_t board) RP_MUST_CHECK;

/* Since when nothing was heard of a board, or since the host was awake; 0: it has no link. */
int64_t rp_ring_silence_ns(const rp_ring *ring, uint32_t board, int64_t now_ns);

/* tcp://HOST of a board's endpoint with another port. */
void rp_ring_endpoint_at(const rp_board_state *board, uint32_t port, char *out, size_t bytes);
/* Where the feed of a board that dials is bound: the port behind that of the control links. */
void rp_ring_feed_at(const rp_ring *ring, char *out, size_t bytes);
/* A board of whom nothing was heard since the ring began: what to look for. errors TIMEOUT */
rp_err rp_ring_never_came(const rp_ring *ring, uint32_t board, int64_t waited_ns) RP_MUST_CHECK;

#define RP_RING_SILENT_NS (10 * RP_NS_PER_S)
#define RP_RING_HELLO_NS (30 * RP_NS_PER_S)
#define RP_RING_BUILD_NS (1800 * RP_NS_PER_S) /* kernels are built on slow boards */

/* Time that a board has to answer, to be met over another link, or to take a message: ring.wait,
 * and at least RP_RING_HELLO_NS. Pure. */
int64_t rp_ring_patience_ns(const rp_runfile *run);

/* A board that is not heard is greeted over a new link again and again: it may have begun anew
 * behind the first greeting, and a board of this machine at another address. Time between two
 * greetings, of boards that are waited for so long: several fit into it, unless it is too short for
 * an answer over a new link. Pure. */
int64_t rp_ring_greet_ns(int64_t longest_ns);

#endif
