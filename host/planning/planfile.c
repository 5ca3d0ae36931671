#include "planning/planfile.h"

#include <jansson.h>

static rp_err dump(FILE *file, json_t *root) {
    int failed = !root || json_dumpf(root, file, JSON_INDENT(2)) != 0 || fputc('\n', file) == EOF;
    json_decref(root);
    return failed ? rp_fail(RP_ERR_IO, "a plan could not be written") : RP_OK;
}

static json_t *layer_names(const rp_model *model, uint32_t first, uint32_t end) {
    json_t *names = json_array();
    for (uint32_t i = first; i < end; i++) {
        (void)json_array_append_new(names, json_string(model->layer[i].name));
    }
    return names;
}

static json_t *stage_object(const rp_planfile *plan, uint32_t k) {
    const rp_planfile_board *board = &plan->board[k];
    const uint32_t first = plan->cut->first[k];
    const uint32_t end = plan->cut->first[k + 1];
    json_t *stage =
        json_pack("{s:s, s:o, s:I, s:I, s:I, s:I, s:I}", "board", board->name, "layers",
                  layer_names(plan->run->model, first, end), "slots", (json_int_t)board->slots,
                  "weight_copies", (json_int_t)board->weight_copies, "device_bytes",
                  (json_int_t)board->device_bytes, "weight_bytes", (json_int_t)board->weight_bytes,
                  "resident_bytes", (json_int_t)board->resident_bytes);
    double cost[2] = {0, 0};
    for (uint32_t i = first; plan->layer_seconds && i < end; i++) {
        cost[0] += plan->layer_seconds[2 * (size_t)i];
        cost[1] += plan->layer_seconds[2 * (size_t)i + 1];
    }
    if (plan->layer_seconds) {
        (void)json_object_set_new(stage, "forward_s", json_real(cost[0]));
        (void)json_object_set_new(stage, "backward_s", json_real(cost[1]));
    }
    return stage;
}

static json_t *advance_object(const rp_advance_choice *choice) {
    json_t *busy = json_array();
    for (uint32_t a = 0; a <= RP_ADVANCE_MAX; a++) {
        (void)json_array_append_new(busy, json_real(choice->busy[a]));
    }
    return json_pack("{s:i, s:o}", "chosen", (int)choice->advance, "busy", busy);
}

rp_err rp_planfile_write(FILE *file, const rp_planfile *plan) {
    const rp_runfile *run = plan->run;
    json_t *stages = json_array();
    json_t *begins = json_array();
    for (uint32_t k = 0; k < plan->cut->stage_count; k++) {
        (void)json_array_append_new(stages, stage_object(plan, k));
        if (k > 0) {
            const char *name = run->model->layer[plan->cut->first[k]].name;
            (void)json_array_append_new(begins, json_string(name));
        }
    }
    json_t *root = json_pack("{s:i, s:s, s:s, s:i, s:o, s:o}", "version", 1, "model",
                             run->model_name, "schedule", run->method.kind->name, "microbatch",
                             (int)run->micro, "cut", begins, "stages", stages);
    if (plan->advance) {
        (void)json_object_set_new(root, "advance", advance_object(plan->advance));
    }
    if (plan->agent_program_bytes > 0) {
        (void)json_object_set_new(root, "agent_program_bytes",
                                  json_integer((json_int_t)plan->agent_program_bytes));
    }
    return dump(file, root);
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
