/* The boards of a run as the controller's machine sees them: what each has said, its control link,
 * and the messages that wait for room in it. Nothing here waits, or decides what the run does.
 *
 * A round: rp_ring_begin_round(), then rp_ring_step() and rp_ring_watch() for each board. Others
 * read the fields of rp_ring, and change them with the functions below. */
#ifndef RP_RING_RING_H
#define RP_RING_RING_H

#include "record/sink.h"
#include "ring/board.h"
#include "ring/spawner.h"

/* Boards that have left the ring (rejoin.h). */
enum { RP_REJOIN_MAX = 8 }; /* boards that are greeted concurrently */

typedef struct {
    const char *name;   /* the roster's pointer; NULL: this place is unused */
    rp_link *control;   /* NULL: no link is open now */
    int64_t greeted_ns; /* time of the last greeting; 0: never */
    bool answers;       /* the board could join */
    bool was_refused;   /* a warning says that its software does not fit */
} rp_rejoin_board;

typedef struct {
    uint32_t boards;       /* size of the ring at first */
    uint32_t left, joined; /* boards that have left, and joined again, in this life of the run */
    int64_t not_before_ns; /* earliest time at which the ring grows */
    rp_rejoin_board board[RP_REJOIN_MAX];
} rp_rejoin;

typedef struct {
    rp_arena *arena;
    const rp_runfile *run;
    const rp_clock *clock;
    const rp_media *media; /* of emulated lines; NULL: none */
    const char *origin;    /* this machine and run folder, which boards are told; NULL: not told */
    rp_keypair keys;
    rp_links *links; /* NULL: not opened yet, or closed */
    bool owns_links;
    rp_board_state *board; /* [count]; NULL: the ring is not open */
    uint32_t count;
    size_t pending_bytes;     /* largest part that may wait in a queue */
    rp_run_identity identity; /* of the run, in every message; each assignment has its own term */
    rp_wire_range wire;       /* versions that all ends speak */
    uint64_t features;        /* that all ends have */
    int64_t now_ns;           /* time of this round */
    int64_t progress_ns;      /* when something last came that moves the run */
    int64_t last_ping_ns;
    int64_t
        awake_ns; /* start of the time in which rounds had no long gap: silence counts from it */
    int64_t greeted_ns; /* since when boards are greeted; 0: they are not */
    int64_t lines_ns;   /* when the time of emulated lines began; 0: not yet */
    bool is_watching;   /* a board that restarts, ends or is silent is a fault */
    bool knows_boards; /* the run has had them: a board that refuses the handshake counts as away */
    bool boards_up;    /* boards of this machine listen, or none was started here */
    const rp_spawner *spawner; /* of boards of this machine, borrowed; NULL: none was started */
    rp_rejoin rejoin;
    struct {
        char key[RP_KEY_TEXT];
        int64_t said_ns; /* 0: never */
    } stranger;          /* the last key that was reported (kept_out.h) */
} rp_ring;

/* ---- opening (ring.c) ------------------------------------------------------------------------ */

/* Borrowed as long as the ring lives. */
typedef struct {
    const rp_runfile *run;
    const rp_clock *clock;
    const rp_media *media; /* NULL: no line is emulated here */
    const char *origin;    /* NULL: boards are not told */
} rp_ring_needs;

/* A ring over a network has at most RP_RING_BOARDS_MAX boards. errors USAGE naming the run file */
rp_err rp_ring_check_size(const rp_runfile *run, const char *run_path) RP_MUST_CHECK;
/* Makes room for the boards of the run file. *out: zeros, or with the time of the round.
 * errors MEMORY */
rp_err rp_ring_open(rp_arena *arena, const rp_ring_needs *needs, rp_ring *out) RP_MUST_CHECK;
/* The keys of links that the ring opens itself. Call it before rp_ring_connect(). */
void rp_ring_take_keys(rp_ring *ring, const rp_keypair *keys);
/* The next term begins: see rp_identity_begin_term(), also for errors. */
rp_err rp_ring_begin_term(rp_ring *ring, const char *folder, uint64_t fresh) RP_MUST_CHECK;

/* ---- who is in it (ring.c) ------------------------------------------------------------------- */

/* The roster has another entry at this place: its board is not known yet, and has no link. */
void rp_ring_take_entry(rp_ring *ring, uint32_t board);
/* The board leaves the ring, and those after it move up. At least one has to stay. */
void rp_ring_leave(rp_ring *ring, uint32_t board);
/* Board k is the one that was at place at[k]; each comes once. errors MEMORY */
rp_err rp_ring_reorder(rp_ring *ring, const uint32_t *at) RP_MUST_CHECK;
/* The board that the roster has at this place now joins the ring, and those after it move down.
 * The ring never has more boards than at first. */
void rp_ring_join(rp_ring *ring, uint32_t board);
/* Where a board listens, and its public key. */
void rp_ring_set_address(rp_ring *ring, uint32_t board, const char *endpoint,
                         const char *public_text);

/* ---- boards of this machine (spawned.c) ------------------------------------------------------ */

/* Starts all boards, with the keys of the ring. `spawner` is borrowed until
 * rp_ring_close_spawned(). `log_folder`: for their logs; NULL: they are not kept. errors of its
 * start() */
rp_err rp_ring_spawn(rp_ring *ring, const rp_spawner *spawner,
                     const char *log_folder) RP_MUST_CHECK;
/* Starts boards again that have ended or hang. errors of restart() */
rp_err rp_ring_respawn(rp_ring *ring, const char *log_folder) RP_MUST_CHECK;
/* Continues the start: sets boards_up, and then the boards' addresses. A ring without a spawner is
 * up at once. errors of step() */
rp_err rp_ring_step_spawned(rp_ring *ring) RP_MUST_CHECK;
/* Readable when rp_ring_step_spawned() has something to do; -1: nothing to wait for. */
int rp_ring_spawner_fd(const rp_ring *ring);
/* A child has ended: *board is that board, or the count. errors of its exit code */
rp_err rp_ring_reap(rp_ring *ring, uint32_t *board) RP_MUST_CHECK;
/* After BYE: true when all have ended, or none was started. */
bool rp_ring_end_spawned(rp_ring *ring);
/* Ends all that are left at once. */
void rp_ring_close_spawned(rp_ring *ring);

/* ---- links (ring.c) -------------------------------------------------------------------------- */

/* Opens the links, unless `links` is lent, and the control link of each board that has none.
 * `knows_boards`: see the field. errors of rp_link_open() */
rp_err rp_ring_connect(rp_ring *ring, rp_links *links, bool knows_boards) RP_MUST_CHECK;
/* Boards get other stages: feed links close, and facts of this assignment are added to the sum. */
void rp_ring_end_assignment(rp_ring *ring);
/* The run goes back: feed links close, queues are dropped, and so is what boards have said of the
 * work that was under way. The board `lost`, and those that have restarted, ended or are silent,
 * also lose their control link: rp_ring_connect() opens it again. lost: RP_NO_BOARD is none. */
void rp_ring_reset(rp_ring *ring, uint32_t lost);
/* Closes all links, and drops every message on its way. Accepts a ring that is not open. */
void rp_ring_disconnect(rp_ring *ring);
/* tcp://HOST of a board's endpoint with another port. */
void rp_ring_endpoint_at(const rp_board_state *board, uint32_t port, char *out, size_t bytes);

/* ---- sending (queue.c) ----------------------------------------------------------------------- */

/* A message that must not be lost or wait for a state: it is sent now, or by a later
 * rp_ring_step(). `part` is copied, at most ring->pending_bytes; NULL: none. errors  FAULT:
 * RP_RING_PENDING_MAX wait already; those of rp_link_send() */
rp_err rp_ring_post(rp_ring *ring, uint32_t board, const rp_Frame *frame,
                    const rp_part *part) RP_MUST_CHECK;
rp_err rp_ring_post_all(rp_ring *ring, const rp_Frame *frame) RP_MUST_CHECK;
/* Whether a text fits into a message to a board. `what`: "the plan". errors USAGE naming both
 * sizes */
rp_err rp_ring_check_text(const char *what, const char *text) RP_MUST_CHECK;
/* Now or not at all: AGAIN when the link has no room, or other messages wait. Parts are copied. */
rp_err rp_ring_offer(rp_ring *ring, uint32_t board, rp_Frame *frame, const rp_part *parts,
                     uint32_t part_count) RP_MUST_CHECK;
/* Offers one piece of a long stream, of at most RP_RING_PIECE_BYTES; NULL: only the frame. It
 * counts as progress. errors  AGAIN: the link has no room, or too many pieces are not acknowledged
 * yet */
enum { RP_RING_PIECE_BYTES = 262144 };
rp_err rp_ring_offer_piece(rp_ring *ring, uint32_t board, rp_Frame *frame,
                           const rp_part *part) RP_MUST_CHECK;
/* Goodbye to boards that have greeted; messages that wait for them are dropped. */
void rp_ring_say_bye(rp_ring *ring);

/* ---- what boards say (board_reports.c) ------------------------------------------------------- */

/* Boards are greeted: what all ends have in common is found again. */
void rp_ring_begin_greeting(rp_ring *ring, bool knows_boards);
/* The next greeting has its whole time again. */
void rp_ring_end_greeting(rp_ring *ring);
/* Whether a HELLO, a READY of this board is waited for, or counts as given. */
void rp_ring_expect_hello(rp_ring *ring, uint32_t board, bool is_expected);
void rp_ring_expect_ready(rp_ring *ring, uint32_t board, bool is_expected);
/* Narrows ring->wire. errors  PEER: the board's software and this ring's do not fit; names the end
 * that has to be updated */
rp_err rp_ring_check_software(rp_ring *ring, uint32_t board, const rp_Hello *hello) RP_MUST_CHECK;
/* The board has greeted, for the first time in this greeting. *is_new: it was not known before, or
 * was lost since. errors  PEER: its clock */
rp_err rp_ring_take_hello(rp_ring *ring, uint32_t board, const rp_Hello *hello,
                          bool *is_new) RP_MUST_CHECK;
void rp_ring_take_building(rp_ring *ring, uint32_t board, const rp_Building *said);
/* What the board had built before it took this place (a warm ring moves boards). */
void rp_ring_take_built(rp_ring *ring, uint32_t board, const rp_board_building *built);
/* What the board has built is done; the next thing to build is counted from 0. */
void rp_ring_end_building(rp_ring *ring, uint32_t board);
/* A board is ready for its stages of the plan. `plan` NULL: it gets no links to other boards.
 * errors PEER: it was not asked or was ready before; it listens for another number of neighbours */
rp_err rp_ring_take_ready(rp_ring *ring, uint32_t board, const rp_Ready *ready,
                          const rp_plan *plan) RP_MUST_CHECK;
/* facts = facts_before, and what the board reports of this assignment. */
void rp_ring_take_facts(rp_ring *ring, uint32_t board, const rp_Finished *report);
/* The run goes back to where the board had counted so many microbatches. */
void rp_ring_rewind_facts(rp_ring *ring, uint32_t board, uint64_t microbatches);

/* A packed record (wire/trace.h) of an op that the board has run by this plan, in this host's time.
 * errors  PEER */
rp_err rp_ring_unpack_op(const rp_ring *ring, uint32_t board, const rp_plan *plan,
                         const uint8_t *bytes, rp_sink_op *out) RP_MUST_CHECK;

/* ---- time (watch.c) -------------------------------------------------------------------------- */

/* A round begins; it never is before the last one. A host that was asleep has heard no board. */
void rp_ring_begin_round(rp_ring *ring, int64_t now_ns);
/* Something came that moves the run on. */
void rp_ring_note_progress(rp_ring *ring);
/* Whether a board that restarts, ends or is silent is a fault from now on. A ring that is not open
 * can only be left unwatched. */
void rp_ring_watch_boards(rp_ring *ring, bool is_on);
/* A segment begins: no feed link counts as silent. */
void rp_ring_forget_feed_silence(rp_ring *ring);
/* The board is heard and does nothing: a process of this machine is ended by rp_ring_respawn(). */
void rp_ring_note_hung(rp_ring *ring, uint32_t board);
/* Moves one board's links and what waits for room in them.
 * errors  TIMEOUT: a message waits for rp_ring_patience_ns(); those of the link */
rp_err rp_ring_step(rp_ring *ring, uint32_t board) RP_MUST_CHECK;
/* When a heartbeat is due, or a message has waited for too long. */
int64_t rp_ring_deadline_ns(const rp_ring *ring);
/* Whether it is time for a heartbeat: then call rp_ring_watch() with `ping` for every board. */
bool rp_ring_ping_is_due(const rp_ring *ring);
/* `is_feeding`: a segment is on, so silence of a feed link is a fault.
 * errors  REFUSED: the handshake, unless ring->knows_boards; FAULT while ring->is_watching: the
 * board has restarted, ended, or is silent for RP_RING_SILENT_NS; FAULT: its feed link, as
 * rp_link_look() says */
rp_err rp_ring_watch(rp_ring *ring, uint32_t board, bool ping, bool is_feeding) RP_MUST_CHECK;

/* Asks the link of a board that has not greeted why it is silent. Returns and stores the worst so
 * far. */
rp_silent_why rp_ring_look_at_silence(rp_ring *ring, uint32_t board);
/* The text of a reason that is known. errors  as rp_cause_fail_silent() */
rp_err rp_ring_why_silent(const rp_ring *ring, uint32_t board) RP_MUST_CHECK;
/* Time since a board was last heard, or since the host was awake; 0: it has no link. */
int64_t rp_ring_silence_ns(const rp_ring *ring, uint32_t board);
/* A board that dials was never heard since the ring began: what to look for. errors TIMEOUT */
rp_err rp_ring_never_came(const rp_ring *ring, uint32_t board, int64_t waited_ns) RP_MUST_CHECK;

#define RP_RING_SILENT_NS (10 * RP_NS_PER_S)
#define RP_RING_HELLO_NS (30 * RP_NS_PER_S)
#define RP_RING_BUILD_NS (1800 * RP_NS_PER_S) /* kernels are built on slow boards */

/* Time that a board has to answer, to be met over another link, or to take a message: ring.wait,
 * and at least RP_RING_HELLO_NS. Pure. */
int64_t rp_ring_patience_ns(const rp_runfile *run);

/* Time between two greetings of a board that is waited for so long. A board that is not heard is
 * greeted over a new link again and again, because it may have restarted after the first greeting,
 * and a board of this machine at another address. Several greetings fit into the wait, unless that
 * is too short for an answer over a new link. Pure. */
int64_t rp_ring_greet_ns(int64_t longest_ns);

#endif
