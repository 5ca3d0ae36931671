#include "planning/planfile.h"

#include <jansson.h>

static rp_err dump(FILE *file, json_t *root) {
    int failed = !root || json_dumpf(root, file, JSON_INDENT(2)) != 0 || fputc('\n', file) == EOF;
    json_decref(root);
    return failed ? rp_fail(RP_ERR_IO, "a plan could not be written") : RP_OK;
}

/* What the boards said, and what was measured, of the stages of one board. */
static void add_measured(const rp_planfile *known, rp_plan *plan, uint32_t k) {
    const rp_planfile_board *board = &known->board[k % plan->node_count];
    rp_plan_measured *out = &plan->stage[k].measured;
    *out = (rp_plan_measured){.board = board->name,
                              .slots = board->slots,
                              .weight_copies = board->weight_copies,
                              .device_bytes = board->device_bytes,
                              .weight_bytes = board->weight_bytes,
                              .resident_bytes = board->resident_bytes,
                              .has_seconds = known->layer_seconds != NULL};
    const uint32_t end = known->cut->first[k + 1];
    for (uint32_t i = known->cut->first[k]; known->layer_seconds && i < end; i++) {
        out->forward_s += known->layer_seconds[2 * (size_t)i];
        out->backward_s += known->layer_seconds[2 * (size_t)i + 1];
    }
}

rp_err rp_planfile_make(rp_arena *arena, const rp_planfile *known, rp_plan **out) {
    const rp_runfile *run = known->run;
    const char **names;
    rp_plan *plan;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(arena, known->cut->stage_count, &names));
    for (uint32_t k = 0; k < known->cut->stage_count / run->method.chunks; k++) {
        names[k] = known->board[k].name;
    }
    const rp_plan_options options = {.model_name = run->model_name,
                                     .model = run->model,
                                     .cut = known->cut,
                                     .method = &run->method,
                                     .boards = names,
                                     .memory_bytes = (uint64_t)run->memory_mib << 20,
                                     .batch = run->batch,
                                     .micro = run->micro,
                                     .epoch_samples = run->data.count[RP_SPLIT_TRAIN],
                                     .steps = run->steps};
    RP_TRY(rp_plan_make(arena, &options, &plan));
    RP_TRY(rp_plan_check_training(plan));
    for (uint32_t k = 0; k < plan->stage_count; k++) {
        add_measured(known, plan, k);
    }
    plan->agent_program_bytes = known->agent_program_bytes;
    plan->has_advance = known->advance != NULL;
    for (uint32_t a = 0; known->advance && a <= RP_ADVANCE_MAX; a++) {
        plan->advance_busy[a] = known->advance->busy[a];
    }
    *out = plan;
fail:
    return err;
}

rp_err rp_planfile_write(FILE *file, const rp_planfile *known) {
    rp_arena arena;
    rp_plan *plan;
    rp_err err;
    rp_arena_init(&arena, "plan.json", 0);
    RP_TRY(rp_planfile_make(&arena, known, &plan));
    RP_TRY(rp_plan_write(plan, file));
fail:
    rp_arena_finish(&arena);
    return err;
}

rp_err rp_planfile_write_profile(FILE *file, const rp_runfile *run, const char *device,
                                 const double *layer_seconds) {
    const rp_model *model = run->model;
    json_t *layers = json_array();
    for (uint32_t i = 0; i < model->layer_count; i++) {
        (void)json_array_append_new(
            layers, json_pack("{s:s, s:s, s:f, s:f}", "name", model->layer[i].name, "kind",
                              model->layer[i].kind->name, "forward_s", layer_seconds[2 * (size_t)i],
                              "backward_s", layer_seconds[2 * (size_t)i + 1]));
    }
    return dump(file,
                json_pack("{s:i, s:s, s:i, s:s?, s:o}", "version", 1, "model", run->model_name,
                          "microbatch", (int)run->micro, "board", device, "layers", layers));
}
