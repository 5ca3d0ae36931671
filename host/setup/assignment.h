/* Orders to boards with their texts, checks of boards against the run file, and remarks for the
 * user. Nothing here sends. */
#ifndef RP_SETUP_ASSIGNMENT_H
#define RP_SETUP_ASSIGNMENT_H

#include "setup/arrangement.h"

/* ---- orders (orders.c) ----------------------------------------------------------------------- */

/* ASSIGN or PROFILE for one board. */
typedef struct {
    rp_arena arena;
    rp_Frame frame;
    rp_part part[3]; /* job, model, and for ASSIGN the plan; they point into `arena` or the
                        arrangement */
    uint32_t part_count;
} rp_board_order;

/* Writes the model's text, which every board gets. Call it once, before the first order. errors
 * USAGE: it is too long for a message; MEMORY */
rp_err rp_arrangement_write_model(rp_arrangement *a) RP_MUST_CHECK;
/* Makes the order to measure layers, or only to build their kernels (rp_measure_is_building()).
 * `warm_s`: see rp_warm_order_s(). Call rp_board_order_finish() also after an error. errors
 * MEMORY */
rp_err rp_board_order_profile(const rp_arrangement *a, uint32_t board, uint32_t warm_s,
                              rp_board_order *out) RP_MUST_CHECK;
/* Makes the order to build the board's stages of the plan in force. Otherwise as above. errors
 * MEMORY */
rp_err rp_board_order_assign(const rp_arrangement *a, uint32_t board, uint32_t warm_s,
                             rp_board_order *out) RP_MUST_CHECK;
void rp_board_order_finish(rp_board_order *order);

/* ---- boards (board_checks.c) ----------------------------------------------------------------- */

/* Checks that a board's software supports what the run needs. If it lacks uint8 inputs and the run
 * file leaves the codec open, all boards get f32. errors PEER: what has to be updated */
rp_err rp_arrangement_check_software(rp_arrangement *a, uint32_t board,
                                     const rp_Hello *hello) RP_MUST_CHECK;
/* With ring.verify, checks that a board has the same device as all others, because their bits are
 * compared. errors USAGE */
rp_err rp_arrangement_check_device(const rp_arrangement *a, uint32_t board) RP_MUST_CHECK;

/* ---- remarks (remarks.c) --------------------------------------------------------------------- */

/* Logs remarks for the user who starts this run: hints at other settings, and notes on the data
 * (unless the run is resumed) and on boards that share samples. The record is open and a plan is in
 * force. errors IO, MEMORY; USAGE: invalid shared samples */
rp_err rp_arrangement_remark(const rp_arrangement *a) RP_MUST_CHECK;

#endif
