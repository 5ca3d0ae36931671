/* `ring.spare`: boards of a roster that are not in the ring until another one is lost. */
#ifndef RP_RUN_SPARES_H
#define RP_RUN_SPARES_H

#include "run/roster.h"

/* Moves the boards that `ring.spare` names behind the others, in the order of their names, and
 * counts them in *spares instead of *boards. roster NULL: the ring has none.
 * errors  USAGE naming file and line */
rp_err rp_spares_read(rp_node *ring, rp_roster_entry *roster, uint32_t *boards,
                      uint32_t *spares) RP_MUST_CHECK;

/* `plan.boards` as a list: the ring has these boards in this order, and the others are spares.
 * errors  USAGE naming file and line */
rp_err rp_spares_arrange(const rp_node *names, rp_roster_entry *roster, uint32_t *boards,
                         uint32_t *spares) RP_MUST_CHECK;

/* Spares that can take a place: the last `tried` of them have had theirs. */
uint32_t rp_spares_untried(const rp_roster_entry *roster, uint32_t boards, uint32_t spares,
                           uint32_t tried);

/* The first spare that does not dial takes the place of a board that is lost, which becomes the
 * last spare. False: there is none. */
bool rp_spares_take(rp_roster_entry *roster, uint32_t boards, uint32_t spares, uint32_t lost);

/* A spare joins the ring, in the order of the places. Returns where. */
uint32_t rp_spares_return(rp_roster_entry *roster, uint32_t *boards, uint32_t *spares,
                          uint32_t spare);

/* A board that is lost leaves the ring: it becomes the last spare. At least one has to stay. */
void rp_spares_leave(rp_roster_entry *roster, uint32_t *boards, uint32_t *spares, uint32_t lost);
/* One that is not lost leaves it: it becomes the first spare, ahead of those that were tried. */
void rp_spares_put_aside(rp_roster_entry *roster, uint32_t *boards, uint32_t *spares,
                         uint32_t board);

#endif
