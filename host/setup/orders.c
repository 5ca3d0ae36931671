/* Makes the orders to boards, with their texts. */
#include "ring/connect.h"
#include "setup/assignment.h"
#include "setup/setup_own.h"

/* Boards get no names that only an export uses, because older software would refuse them. */
rp_err rp_arrangement_write_model(rp_arrangement *a) {
    rp_err err;
    RP_ASSERT(!a->model_text && a->run.model_root);
    RP_TRY(rp_config_text_without(a->arena, a->run.model_root, "onnx", &a->model_text));
    RP_TRY(rp_ring_check_text("the model", a->model_text));
fail:
    return err;
}

/* Lists the keys of the neighbours that dial a board. Returns how many. */
static uint32_t list_keys(const rp_arrangement *a, uint32_t board,
                          const char *out[RP_PLAN_NEIGHBOURS_MAX]) {
    uint32_t dials[RP_PLAN_NEIGHBOURS_MAX];
    const uint32_t count = rp_ring_dialled_by(a->plan, board, dials);
    for (uint32_t i = 0; i < count; i++) {
        out[i] = a->ring->board[dials[i]].address.public_text;
    }
    return count;
}

/* `stage`: stage of the cut that the job's text describes. */
static rp_err write_texts(const rp_arrangement *a, const rp_cut *cut, uint32_t stage,
                          const rp_runfile_peers *peers, rp_board_order *out) {
    char *job;
    rp_err err;
    RP_ASSERT(a->model_text && stage < cut->stage_count);
    RP_TRY(rp_runfile_assignment(&out->arena, &a->run, cut, stage, peers, &job));
    out->part[0] = rp_part_of_text(job);
    out->part[1] = rp_part_of_text(a->model_text);
    out->part_count = 2;
fail:
    return err;
}

rp_err rp_board_order_profile(const rp_arrangement *a, uint32_t board, uint32_t warm_s,
                              rp_board_order *out) {
    const bool is_building = rp_measure_is_building(a->measure);
    const rp_cut whole = {.stage_count = 1,
                          .first = (const uint32_t[]){0, a->run.model->layer_count}};
    const rp_runfile_peers peers = {a->ring->keys.public_text, NULL, 0, board};
    rp_Profile *profile = &out->frame.body.profile;
    rp_err err = RP_OK;
    RP_ASSERT(board < a->ring->count);
    *out = (rp_board_order){.frame.which_body = RP_KIND_PROFILE};
    rp_arena_init(&out->arena, "assignment", 0);
    *profile = (rp_Profile){.build_only = is_building, .warm_s = warm_s};
    if (!is_building) {
        RP_TRY(rp_measure_order(a->measure, board, profile));
    }
    RP_TRY(write_texts(a, &whole, 0, &peers, out));
fail:
    return err;
}

rp_err rp_board_order_assign(const rp_arrangement *a, uint32_t board, uint32_t warm_s,
                             rp_board_order *out) {
    const char *keys[RP_PLAN_NEIGHBOURS_MAX];
    rp_err err;
    RP_ASSERT(a->plan && a->plan_text && board < a->plan->node_count);
    *out = (rp_board_order){.frame.which_body = RP_KIND_ASSIGN};
    rp_arena_init(&out->arena, "assignment", 0);
    out->frame.body.assign =
        (rp_Assign){.wire = a->ring->wire.max,
                    .features = a->ring->features,
                    .node = board,
                    .warm_s = warm_s,
                    .orphan_s = a->run.safety.orphan_s,
                    .meet_s = (uint32_t)(rp_ring_patience_ns(&a->run) / RP_NS_PER_S)};
    const uint32_t count = list_keys(a, board, keys);
    const rp_runfile_peers peers = {a->ring->keys.public_text, keys, count, board};
    RP_TRY(write_texts(a, &a->plan_cut, rp_arrangement_first_stage(a, board), &peers, out));
    out->part[out->part_count++] = rp_part_of_text(a->plan_text);
fail:
    return err;
}

void rp_board_order_finish(rp_board_order *order) {
    rp_arena_finish(&order->arena);
}
