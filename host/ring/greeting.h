/* A greeting of all boards: how long it may take, and which boards have not answered. */
#ifndef RP_RING_GREETING_H
#define RP_RING_GREETING_H

#include "record/record.h"
#include "ring/ring.h"

/* Time that is left of a greeting, counted from `from_ns` on; at least 1 ns. It ends `within_ns`
 * after it began, which is `longest_ns` or less. `since_ns`: time of the last HELLO. A HELLO that
 * is sent again also asks boards that have answered already, so all get some time to answer it when
 * the end is near. */
int64_t rp_ring_greeting_left_ns(const rp_ring *ring, int64_t longest_ns, int64_t within_ns,
                                 int64_t since_ns, int64_t from_ns);
/* Boards that have not answered and whose agents have ended, so that they have lost their state. */
uint32_t rp_ring_count_ended(const rp_ring *ring);
/* The first board that has not answered and does not refuse the handshake, else one that does. */
uint32_t rp_ring_find_missing(const rp_ring *ring);
/* The next greeting is to find new links. Boards without a link for RP_RING_SILENT_NS hang. */
void rp_ring_greet_again(rp_ring *ring);
/* Reports each board that refuses the greeting or is known not to answer, once, because a person
 * has to see to it. `record` NULL: nothing happens. `step`: where the run stands. errors IO */
rp_err rp_ring_report_refusals(rp_ring *ring, rp_record *record, uint64_t step) RP_MUST_CHECK;

/* Boards that the run can not go on with, besides those that have not greeted. RP_NO_BOARD: no
 * board. */
typedef struct {
    uint32_t wrong;    /* it computes wrong: then it alone is lost */
    uint32_t portless; /* it lacks a port, and boards have done so for ring.wait */
} rp_lost_boards;

bool rp_lost_is(const rp_lost_boards *lost, const rp_ring *ring, uint32_t board);
uint32_t rp_lost_count(const rp_lost_boards *lost, const rp_ring *ring);
/* What is said of a board that is lost: "has not come". */
const char *rp_lost_why(const rp_lost_boards *lost, const rp_ring *ring, uint32_t board);

#endif
