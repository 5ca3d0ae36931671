/* Boards that are not part of the ring: they have left it, or nobody knows them. */
#ifndef RP_CONTROL_OWN_ABSENT_BOARDS_H
#define RP_CONTROL_OWN_ABSENT_BOARDS_H

typedef struct rp_controller rp_controller;

/* away.c: in each round, greets boards that have left the ring, and notes which answer. */
void rp_away_look(rp_controller *c, bool ping);
void rp_away_close(rp_controller *c);
void rp_away_note_left(rp_controller *c, uint32_t count);
/* At a pause that a checkpoint was written of: boards that answer are in the ring from now on,
 * which has no stages for them yet. False: there are none, or it is too early. */
bool rp_away_join(rp_controller *c) RP_MUST_CHECK;
/* strangers.c: says which keys dial that no board of the roster has. */
rp_err rp_strangers_look(rp_controller *c) RP_MUST_CHECK;
/* twins.c: says which boards that dial have the key of another one. */
rp_err rp_twins_look(rp_controller *c) RP_MUST_CHECK;

#endif
