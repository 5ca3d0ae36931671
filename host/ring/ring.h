/* The boards of a run as the controller sees them: what each has reported, its control link, and
 * the messages queued for it. Nothing here waits, or decides what the run does.
 *
 * One round: rp_ring_begin_round(), then rp_ring_step() and rp_ring_watch() for each board. Other
 * rooms may read the fields of rp_ring, and change them only through the functions below. */
#ifndef RP_RING_RING_H
#define RP_RING_RING_H

#include "record/sink.h"
#include "ring/board.h"
#include "ring/spawner.h"

/* Boards that have left the ring (rejoin.h). */
enum { RP_REJOIN_MAX = 8 }; /* boards that are greeted concurrently */

typedef struct {
    const char *name;   /* name in the roster, same pointer; NULL: this entry is unused */
    rp_link *control;   /* NULL: no link is open */
    int64_t greeted_ns; /* time of the last greeting; 0: never */
    bool answers;       /* the board could rejoin */
    bool was_refused;   /* the log has a warning that its software does not fit */
} rp_rejoin_board;

typedef struct {
    uint32_t boards;       /* size of the ring at the start of the run */
    uint32_t left, joined; /* boards that left and that rejoined, in this life of the run */
    int64_t not_before_ns; /* earliest time at which the ring grows */
    rp_rejoin_board board[RP_REJOIN_MAX];
} rp_rejoin;

typedef struct {
    rp_arena *arena;
    const rp_runfile *run;
    const rp_clock *clock;
    const rp_media *media; /* emulated lines; NULL: none */
    const char *origin;    /* this machine and run folder, reported to boards; NULL: not reported */
    rp_keypair keys;
    rp_links *links; /* NULL: not opened yet, or closed */
    bool owns_links;
    rp_board_state *board; /* [count]; NULL: the ring is not open */
    uint32_t count;
    size_t pending_bytes;     /* largest message part that a queue takes */
    rp_run_identity identity; /* sent in every message; each assignment has its own term */
    rp_wire_range wire;       /* wire versions that all ends support */
    uint64_t features;        /* features that all ends have */
    int64_t now_ns;           /* time of this round */
    int64_t progress_ns;      /* time of the last message that advanced the run */
    int64_t last_ping_ns;
    int64_t awake_ns;   /* time since which rounds had no long gap; silence counts from it */
    int64_t greeted_ns; /* start of the current greeting; 0: none */
    int64_t lines_ns;   /* start of the time of emulated lines; 0: not started */
    bool is_watching;   /* a board that restarts, ends or is silent is a fault */
    bool knows_boards;  /* the run had these boards before: one that refuses the handshake counts as
                           absent */
    bool boards_up;     /* local boards listen; true without any */
    const rp_spawner *spawner; /* starter of local boards, borrowed; NULL: none were started */
    rp_rejoin rejoin;
    struct {
        char key[RP_KEY_TEXT];
        int64_t said_ns; /* time of the last report; 0: never */
    } stranger;          /* the last unknown key that was reported (kept_out.h) */
} rp_ring;

/* ---- opening (ring.c) ------------------------------------------------------------------------ */

/* All pointers are borrowed until the ring is closed. */
typedef struct {
    const rp_runfile *run;
    const rp_clock *clock;
    const rp_media *media; /* NULL: no emulated lines */
    const char *origin;    /* NULL: not reported to boards */
} rp_ring_needs;

/* Checks that a ring over a network has at most RP_RING_BOARDS_MAX boards. errors USAGE naming the
 * run file */
rp_err rp_ring_check_size(const rp_runfile *run, const char *run_path) RP_MUST_CHECK;
/* Allocates the boards of the run file. *out: zeros, or zeros and the time of the round.
 * errors MEMORY */
rp_err rp_ring_open(rp_arena *arena, const rp_ring_needs *needs, rp_ring *out) RP_MUST_CHECK;
/* Sets the keys for links that the ring opens itself. Call it before rp_ring_connect(). */
void rp_ring_take_keys(rp_ring *ring, const rp_keypair *keys);
/* Starts the next term; see rp_identity_begin_term(), also for errors. */
rp_err rp_ring_begin_term(rp_ring *ring, const char *folder, uint64_t fresh) RP_MUST_CHECK;

/* ---- who is in it (ring.c) ------------------------------------------------------------------- */

/* The roster has another entry at this place: the new board is unknown and has no link. */
void rp_ring_take_entry(rp_ring *ring, uint32_t board);
/* Removes a board; those after it move up. At least one board has to stay. */
void rp_ring_leave(rp_ring *ring, uint32_t board);
/* Reorders the ring: board k was at place at[k]. errors MEMORY */
rp_err rp_ring_reorder(rp_ring *ring, const uint32_t *at) RP_MUST_CHECK;
/* Adds the board that the roster has at this place; those after it move down. The ring never has
 * more boards than at the start. */
void rp_ring_join(rp_ring *ring, uint32_t board);
/* Sets where a board listens, and its public key. */
void rp_ring_set_address(rp_ring *ring, uint32_t board, const char *endpoint,
                         const char *public_text);

/* ---- boards of this machine (spawned.c) ------------------------------------------------------ */

/* Starts all boards with the keys of the ring. `spawner` is borrowed until rp_ring_close_spawned().
 * `log_folder`: for their logs; NULL: logs are not kept. errors of its start() */
rp_err rp_ring_spawn(rp_ring *ring, const rp_spawner *spawner,
                     const char *log_folder) RP_MUST_CHECK;
/* Restarts local boards that have ended or hang. errors of restart() */
rp_err rp_ring_respawn(rp_ring *ring, const char *log_folder) RP_MUST_CHECK;
/* Continues the start; sets boards_up, and then the boards' addresses. Without a spawner the ring
 * is up at once. errors of step() */
rp_err rp_ring_step_spawned(rp_ring *ring) RP_MUST_CHECK;
/* Readable when rp_ring_step_spawned() has something to do; -1: nothing to wait for. */
int rp_ring_spawner_fd(const rp_ring *ring);
/* A child process has ended: *board is that board, or the count. errors of its exit code */
rp_err rp_ring_reap(rp_ring *ring, uint32_t *board) RP_MUST_CHECK;
/* After BYE: true when all have ended, or none was started. */
bool rp_ring_end_spawned(rp_ring *ring);
/* Ends all remaining local boards at once. */
void rp_ring_close_spawned(rp_ring *ring);

/* ---- links (ring.c) -------------------------------------------------------------------------- */

/* Opens the network, unless `links` is given, and a control link to each board that has none.
 * `knows_boards`: see the field. errors of rp_link_open() */
rp_err rp_ring_connect(rp_ring *ring, rp_links *links, bool knows_boards) RP_MUST_CHECK;
/* Boards will get other stages: closes feed links and adds this assignment's facts to the sum. */
void rp_ring_end_assignment(rp_ring *ring);
/* The run goes back: closes feed links, drops queues, and forgets reports on the current work. The
 * board `lost` (RP_NO_BOARD: none), and boards that have restarted, ended or are silent, also lose
 * their control link, which rp_ring_connect() opens again. */
void rp_ring_reset(rp_ring *ring, uint32_t lost);
/* Closes all links and drops all messages. Accepts a ring that is not open. */
void rp_ring_disconnect(rp_ring *ring);
/* Writes tcp://HOST of a board's endpoint with another port. */
void rp_ring_endpoint_at(const rp_board_state *board, uint32_t port, char *out, size_t bytes);

/* ---- sending (queue.c) ----------------------------------------------------------------------- */

/* Sends a message that must not be lost; if the link is full, a later rp_ring_step() sends it.
 * `part` is copied, at most ring->pending_bytes; NULL: none. errors FAULT: RP_RING_PENDING_MAX
 * messages wait already; those of rp_link_send() */
rp_err rp_ring_post(rp_ring *ring, uint32_t board, const rp_Frame *frame,
                    const rp_part *part) RP_MUST_CHECK;
rp_err rp_ring_post_all(rp_ring *ring, const rp_Frame *frame) RP_MUST_CHECK;
/* Checks that a text fits into a message to a board. `what`: "the plan". errors USAGE naming both
 * sizes */
rp_err rp_ring_check_text(const char *what, const char *text) RP_MUST_CHECK;
/* Sends at once, or returns AGAIN when the link has no room or other messages wait. Parts are
 * copied. */
rp_err rp_ring_offer(rp_ring *ring, uint32_t board, rp_Frame *frame, const rp_part *parts,
                     uint32_t part_count) RP_MUST_CHECK;
/* Offers one piece of a long stream, of at most RP_RING_PIECE_BYTES; `part` NULL: only the
 * frame. Counts as progress. errors AGAIN: the link has no room, or too many pieces are not
 * acknowledged */
enum { RP_RING_PIECE_BYTES = 262144 };
rp_err rp_ring_offer_piece(rp_ring *ring, uint32_t board, rp_Frame *frame,
                           const rp_part *part) RP_MUST_CHECK;
/* Sends BYE to boards that have greeted; drops messages queued for them. */
void rp_ring_say_bye(rp_ring *ring);

/* ---- what boards say (board_reports.c) ------------------------------------------------------- */

/* A new greeting begins: versions and features common to all ends are determined again. */
void rp_ring_begin_greeting(rp_ring *ring, bool knows_boards);
/* The greeting is over; the next one has its full time. */
void rp_ring_end_greeting(rp_ring *ring);
/* Whether a HELLO or a READY of this board is awaited, or counts as received. */
void rp_ring_expect_hello(rp_ring *ring, uint32_t board, bool is_expected);
void rp_ring_expect_ready(rp_ring *ring, uint32_t board, bool is_expected);
/* Narrows ring->wire to what the board supports. errors PEER: its software does not fit this ring;
 * names the end that has to be updated */
rp_err rp_ring_check_software(rp_ring *ring, uint32_t board, const rp_Hello *hello) RP_MUST_CHECK;
/* Takes the first HELLO of a board in this greeting. *is_new: it was unknown, or lost since. errors
 * PEER: its clock */
rp_err rp_ring_take_hello(rp_ring *ring, uint32_t board, const rp_Hello *hello,
                          bool *is_new) RP_MUST_CHECK;
void rp_ring_take_building(rp_ring *ring, uint32_t board, const rp_Building *said);
/* Takes what the board has built before it got this place (`boards warm` moves boards). */
void rp_ring_take_built(rp_ring *ring, uint32_t board, const rp_board_building *built);
/* The board has finished building; the next build counts from 0. */
void rp_ring_end_building(rp_ring *ring, uint32_t board);
/* Takes READY: the board has built its stages. `plan` NULL: it gets no links to other boards.
 * errors PEER: it was not asked or was ready before; it listens for another number of neighbours */
rp_err rp_ring_take_ready(rp_ring *ring, uint32_t board, const rp_Ready *ready,
                          const rp_plan *plan) RP_MUST_CHECK;
/* Takes what a trace says of the board's sensors; impossible values are unknown. */
void rp_ring_take_sensors(rp_ring *ring, uint32_t board, const rp_Trace *report);
/* A machine's energy and power count once, although each of its boards reports them: with the first
 * board that reports energy. Returns that board, or `board` if its machine is unknown. */
uint32_t rp_ring_energy_board(const rp_ring *ring, uint32_t board);
/* Sets facts = facts_before + the board's report on this assignment. */
void rp_ring_take_facts(rp_ring *ring, uint32_t board, const rp_Finished *report);
/* The run goes back to the point at which the board had counted `microbatches`. */
void rp_ring_rewind_facts(rp_ring *ring, uint32_t board, uint64_t microbatches);

/* Unpacks a record (wire/trace.h) of an op that the board ran by this plan, in this host's time.
 * errors PEER */
rp_err rp_ring_unpack_op(const rp_ring *ring, uint32_t board, const rp_plan *plan,
                         const uint8_t *bytes, rp_sink_op *out) RP_MUST_CHECK;

/* ---- time (watch.c) -------------------------------------------------------------------------- */

/* Begins a round; `now_ns` never decreases. After a long gap the host was asleep, and silence
 * counts from now. */
void rp_ring_begin_round(rp_ring *ring, int64_t now_ns);
/* A message has advanced the run. */
void rp_ring_note_progress(rp_ring *ring);
/* Sets whether a board that restarts, ends or is silent is a fault. For a ring that is not open
 * only false is allowed. */
void rp_ring_watch_boards(rp_ring *ring, bool is_on);
/* A segment begins: no feed link counts as silent. */
void rp_ring_forget_feed_silence(rp_ring *ring);
/* The board answers but makes no progress. rp_ring_respawn() ends a local process first. */
void rp_ring_note_hung(rp_ring *ring, uint32_t board);
/* Steps one board's links and sends its queue.
 * errors TIMEOUT: a message waits for rp_ring_patience_ns(); those of the link */
rp_err rp_ring_step(rp_ring *ring, uint32_t board) RP_MUST_CHECK;
/* Earliest time of a heartbeat, or at which a queued message has waited too long. */
int64_t rp_ring_deadline_ns(const rp_ring *ring);
/* A heartbeat is due: call rp_ring_watch() with `ping` for every board. */
bool rp_ring_ping_is_due(const rp_ring *ring);
/* Checks a board. `is_feeding`: a segment runs, so silence of a feed link is a fault. errors
 * REFUSED: the handshake, unless ring->knows_boards; FAULT while ring->is_watching: the board has
 * restarted, ended, or is silent for RP_RING_SILENT_NS; FAULT: its feed link, as rp_link_look()
 * says */
rp_err rp_ring_watch(rp_ring *ring, uint32_t board, bool ping, bool is_feeding) RP_MUST_CHECK;

/* Asks the link of a board that has not greeted why it is silent. Stores and returns the worst
 * reason so far. */
rp_silent_why rp_ring_look_at_silence(rp_ring *ring, uint32_t board);
/* Returns the error of the stored reason. errors as rp_cause_fail_silent() */
rp_err rp_ring_why_silent(const rp_ring *ring, uint32_t board) RP_MUST_CHECK;
/* Time since the board was last heard, or since the host was awake; 0: it has no link. */
int64_t rp_ring_silence_ns(const rp_ring *ring, uint32_t board);
/* Returns an error with advice, for a board that dials and was never heard. errors TIMEOUT */
rp_err rp_ring_never_came(const rp_ring *ring, uint32_t board, int64_t waited_ns) RP_MUST_CHECK;

#define RP_RING_SILENT_NS (10 * RP_NS_PER_S)
#define RP_RING_HELLO_NS (30 * RP_NS_PER_S)
#define RP_RING_BUILD_NS (1800 * RP_NS_PER_S) /* slow boards build kernels */

/* Time that a board has to answer, to be reached over another link, or to take a message:
 * ring.wait, but at least RP_RING_HELLO_NS. Pure. */
int64_t rp_ring_patience_ns(const rp_runfile *run);

/* Time between two greetings of a board, if it may take `longest_ns`. A silent board is greeted
 * over a new link again and again, because it may have restarted since, and a local board at
 * another address. Several greetings fit into the wait, unless it is too short for an answer over a
 * new link. Pure. */
int64_t rp_ring_greet_ns(int64_t longest_ns);

#endif
