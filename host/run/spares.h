/* `ring.spare`: boards of a roster that join the ring only when a board is lost. In every roster
 * here the boards of the ring come first, then the spares. */
#ifndef RP_RUN_SPARES_H
#define RP_RUN_SPARES_H

#include "run/roster.h"

/* Moves the boards named by `ring.spare` to the end, in that order, and counts them in *spares
 * instead of *boards. roster NULL: the boards are local. errors  USAGE naming file and line */
rp_err rp_spares_read(rp_node *ring, rp_roster_entry *roster, uint32_t *boards,
                      uint32_t *spares) RP_MUST_CHECK;

/* `plan.boards` as a list: the ring gets these boards in this order; the rest become spares.
 * errors  USAGE naming file and line */
rp_err rp_spares_arrange(const rp_node *names, rp_roster_entry *roster, uint32_t *boards,
                         uint32_t *spares) RP_MUST_CHECK;

/* Number of spares that can replace a board: those that do not dial, without the last `tried`. */
uint32_t rp_spares_untried(const rp_roster_entry *roster, uint32_t boards, uint32_t spares,
                           uint32_t tried);

/* Replaces a lost board by the first spare that does not dial; the lost board becomes the last
 * spare. false: no such spare. */
bool rp_spares_take(rp_roster_entry *roster, uint32_t boards, uint32_t spares, uint32_t lost);

/* A spare joins the ring, in the order of places. Returns its index. */
uint32_t rp_spares_return(rp_roster_entry *roster, uint32_t *boards, uint32_t *spares,
                          uint32_t spare);

/* A lost board leaves the ring and becomes the last spare. At least one board must remain. */
void rp_spares_leave(rp_roster_entry *roster, uint32_t *boards, uint32_t *spares, uint32_t lost);
/* A working board leaves the ring and becomes the first spare, so it precedes those tried before.
 */
void rp_spares_put_aside(rp_roster_entry *roster, uint32_t *boards, uint32_t *spares,
                         uint32_t board);

#endif
