/* What boards are told of the setup: orders with their texts, whether a board fits what the run
 * asks for, and remarks to the person who begins the run. Nothing here sends. */
#ifndef RP_SETUP_ASSIGNMENT_H
#define RP_SETUP_ASSIGNMENT_H

#include "setup/arrangement.h"

/* ---- orders (orders.c) ----------------------------------------------------------------------- */

/* ASSIGN or PROFILE for one board. */
typedef struct {
    rp_arena arena;
    rp_Frame frame;
    rp_part part[3]; /* the job; the model; of ASSIGN also the plan. They point into the arena, or
                        into the arrangement */
    uint32_t part_count;
} rp_board_order;

/* The model's text, which every board gets. Call it once, before the first order. errors USAGE: it
 * is too long for a message; MEMORY */
rp_err rp_arrangement_write_model(rp_arrangement *a) RP_MUST_CHECK;
/* What a board has to measure, or to build first (rp_measure_is_building()). `warm_s`: see
 * rp_warm_order_s(). Call rp_board_order_finish() also after an error. errors MEMORY */
rp_err rp_board_order_profile(const rp_arrangement *a, uint32_t board, uint32_t warm_s,
                              rp_board_order *out) RP_MUST_CHECK;
/* The stages of a board by the plan in force. Otherwise as above. errors MEMORY */
rp_err rp_board_order_assign(const rp_arrangement *a, uint32_t board, uint32_t warm_s,
                             rp_board_order *out) RP_MUST_CHECK;
void rp_board_order_finish(rp_board_order *order);

/* ---- boards (board_checks.c)
 * -------------------------------------------------------------------------- */

/* Whether the software of a board knows what the run asks for. Where it does not know inputs as
 * bytes and the person left that open, all boards get f32. errors PEER: what has to be updated */
rp_err rp_arrangement_check_software(rp_arrangement *a, uint32_t board,
                                     const rp_Hello *hello) RP_MUST_CHECK;
/* Whether a board that has just greeted has the device of all others, if ring.verify compares
 * their bits. errors USAGE */
rp_err rp_arrangement_check_device(const rp_arrangement *a, uint32_t board) RP_MUST_CHECK;

/* ---- remarks (remarks.c) --------------------------------------------------------------------- */

/* Events for the person who begins this run: hints at other settings, notes of the data (unless the
 * run goes on) and of boards that have a part of the samples. The record is open and a plan is in
 * force. errors IO, MEMORY; USAGE: of samples that boards share */
rp_err rp_arrangement_remark(const rp_arrangement *a) RP_MUST_CHECK;

#endif
