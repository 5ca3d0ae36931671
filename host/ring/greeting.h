/* A greeting of all boards: how long it may take, and which boards have not answered. */
#ifndef RP_RING_GREETING_H
#define RP_RING_GREETING_H

#include "record/record.h"
#include "ring/ring.h"

/* Time left of a greeting, counted from `from_ns`; at least 1 ns. The greeting ends `within_ns` (at
 * most `longest_ns`) after it began. `since_ns`: time of the last HELLO. A repeated HELLO also goes
 * to boards that have answered, so near the end all boards get some time to answer it. */
int64_t rp_ring_greeting_left_ns(const rp_ring *ring, int64_t longest_ns, int64_t within_ns,
                                 int64_t since_ns, int64_t from_ns);
/* Number of boards that have not answered and whose agents have ended, so their state is lost. */
uint32_t rp_ring_count_ended(const rp_ring *ring);
/* The first board that has not answered. Boards that refuse the handshake come last. */
uint32_t rp_ring_find_missing(const rp_ring *ring);
/* The next greeting opens new links. Boards without a link for RP_RING_SILENT_NS count as
 * hanging. */
void rp_ring_greet_again(rp_ring *ring);
/* Logs each board once that refuses the greeting or cannot answer, because the user has to act.
 * `record` NULL: does nothing. `step`: current step of the run. errors IO */
rp_err rp_ring_report_refusals(rp_ring *ring, rp_record *record, uint64_t step) RP_MUST_CHECK;

/* Boards that count as lost although they greeted. RP_NO_BOARD: none. */
typedef struct {
    uint32_t wrong;    /* a board that computes wrong: then it alone is lost */
    uint32_t portless; /* a board that lacks a port, after boards have lacked ports for ring.wait */
} rp_lost_boards;

bool rp_lost_is(const rp_lost_boards *lost, const rp_ring *ring, uint32_t board);
uint32_t rp_lost_count(const rp_lost_boards *lost, const rp_ring *ring);
/* Why a board is lost: the words for it in an event. */
rp_event_kind rp_lost_why(const rp_lost_boards *lost, const rp_ring *ring, uint32_t board);

#endif
