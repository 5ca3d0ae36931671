/* Links of an assignment, boards that build it, and greetings. */
#include "boards.h"

#include "plan_of.h"
#include "ring/building.h"
#include "ring/greeting.h"
#include "ring/lines.h"

/* ---- links of an assignment ------------------------------------------------------------------ */

/* A chain of three stages, whose boards are ready. */
static const rp_plan *open_ready(void) {
    static const rp_method method = {.micros = 2};
    static const uint32_t first[] = {0, 1, 2, 3};
    const rp_cut cut = {.stage_count = BOARDS, .first = first};
    rp_plan *plan;
    open_connected();
    run.batch = 4;
    run.data.sample = (rp_shape){.rank = 1, .dim = {5}};
    const rp_plan_options options = {.model_name = "m",
                                     .cut = &cut,
                                     .method = &method,
                                     .boards = names,
                                     .batch = 4,
                                     .micro = 2,
                                     .epoch_samples = 8,
                                     .steps = 2};
    expect_ok(rp_plan_make(&arena, &options, &plan));
    for (uint32_t k = 0; k < BOARDS; k++) {
        rp_Ready ready = {.feed_port = 50 + k, .hop_port_count = k > 0, .hop_port = {40 + k}};
        ring.board[k].machine.asked = true;
        expect_ok(rp_ring_take_ready(&ring, k, &ready, plan));
    }
    return plan;
}
