/* The states in which the room `keep` works: load, save, copy, rescue, adopt. */
#ifndef RP_CONTROL_OWN_KEEP_H
#define RP_CONTROL_OWN_KEEP_H

#include "keep/adopt.h"
#include "keep/copies.h"

typedef struct rp_controller rp_controller;

/* saves.c */
rp_err rp_load_enter(rp_controller *c) RP_MUST_CHECK;
rp_err rp_load_step(rp_controller *c) RP_MUST_CHECK;
void rp_load_abandon(rp_controller *c);
rp_err rp_load_late(const rp_controller *c) RP_MUST_CHECK;
rp_err rp_save_enter(rp_controller *c) RP_MUST_CHECK;
rp_err rp_save_step(rp_controller *c) RP_MUST_CHECK;
void rp_save_abandon(rp_controller *c);
rp_err rp_save_late(const rp_controller *c) RP_MUST_CHECK;
rp_err rp_save_on_tensor(rp_controller *c, uint32_t board, const rp_message *message) RP_MUST_CHECK;
rp_err rp_save_on_in_flight(rp_controller *c, uint32_t board,
                            const rp_message *message) RP_MUST_CHECK;
rp_err rp_save_on_end(rp_controller *c, uint32_t board, const rp_message *message) RP_MUST_CHECK;
/* rescue.c: copy, rescue */
rp_err rp_copy_enter(rp_controller *c) RP_MUST_CHECK;
rp_err rp_copy_step(rp_controller *c) RP_MUST_CHECK;
rp_err rp_copy_on_copied(rp_controller *c, uint32_t board, const rp_message *message) RP_MUST_CHECK;
rp_err rp_rescue_enter(rp_controller *c) RP_MUST_CHECK;
rp_err rp_rescue_step(rp_controller *c) RP_MUST_CHECK;
void rp_rescue_abandon(rp_controller *c);
/* adopt.c */
bool rp_adopt_is_due(const rp_controller *c);
rp_err rp_adopt_enter(rp_controller *c) RP_MUST_CHECK;
rp_err rp_adopt_step(rp_controller *c) RP_MUST_CHECK;
rp_err rp_adopt_late(const rp_controller *c) RP_MUST_CHECK;
rp_err rp_adopt_on_held(rp_controller *c, uint32_t board, const rp_message *message) RP_MUST_CHECK;
/* Lets go of the plan. `why`: why what the boards hold is not used; NULL: it was saved. errors IO
 */
rp_err rp_adopt_end(rp_controller *c, const char *why) RP_MUST_CHECK;

#endif
