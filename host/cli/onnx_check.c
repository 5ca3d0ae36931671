#include "cli/onnx_check.h"

#include <string.h>

#include "cli/open_board.h"
#include "cli/signals.h"

/* Float32 sums in another order differ by less. */
#define ERROR_MAX 1e-4

/* The inputs that the model has, in the order of its file. */
static rp_err list_inputs(rp_arena *arena, const rp_onnx_import *import, rp_compare_options *out,
                          rp_shape *sample) {
    const rp_onnx_model *model = import->model;
    char *name;
    for (uint32_t i = 0; i < model->input_count; i++) {
        const rp_onnx_layer *input = &import->graph->layer[i];
        if (!input->live) {
            continue;
        }
        if (out->input_count == RP_COMPARE_INPUTS_MAX) {
            return rp_fail(RP_ERR_LIMIT, "--check: a net of more than %d inputs cannot be compared",
                           RP_COMPARE_INPUTS_MAX);
        }
        const rp_err err = rp_arena_printf(arena, &name, "x/%s", model->value[model->input[i]]);
        if (err != RP_OK) {
            return err;
        }
        if (out->input_count == 0) {
            *sample = input->out;
        } else { /* inputs of a sample are concatenated */
            sample->dim[0] += input->out.dim[0];
        }
        out->ids = input->ids;
        out->input[out->input_count] = name;
        out->shape[out->input_count++] = input->out;
    }
    return RP_OK;
}

static rp_net_end end_of(const rp_onnx_graph *graph) {
    return !graph->end                          ? RP_END_NONE
           : strcmp(graph->end, "Softmax") == 0 ? RP_END_SOFTMAX
                                                : RP_END_LOG_SOFTMAX;
}

rp_err rp_cli_check_onnx(rp_arena *arena, const rp_cli_args *args, const rp_onnx_import *import,
                         const rp_npz *arrays, rp_comparison *out) {
    const rp_shape *output = &import->graph->layer[import->output].out;
    rp_compare_options options = {.arrays = arrays,
                                  .path = args->onnx.check,
                                  .output = "eval",
                                  .end = end_of(import->graph),
                                  .row = output->dim[output->dims - 1]};
    rp_network_options net = {.weights = args->onnx.weights, .is_stopped = rp_cli_is_stopped};
    rp_network *network = NULL;
    rp_device *device = NULL;
    rp_board board;
    rp_err err;
    RP_TRY(list_inputs(arena, import, &options, &net.data.sample));
    net.data.type = options.ids ? RP_I32 : RP_F32;
    RP_TRY(rp_config_read_text(arena, import->text, strlen(import->text), args->out, &net.model));
    RP_TRY(rp_network_read(arena, &net, &network));
    RP_TRY(rp_cli_watch_signals());
    RP_TRY(rp_cli_open_board(arena, args, &board, &device));
    RP_TRY(rp_network_start(network, device));
    RP_TRY(rp_compare_outputs(arena, network, &options, out));
fail:
    rp_network_close(&network);
    rp_device_close(&device);
    return err;
}

rp_err rp_cli_judge_onnx(const rp_cli_args *args, const rp_comparison *compared) {
    return compared->error <= ERROR_MAX
               ? RP_OK
               : rp_fail(RP_ERR_USAGE,
                         "%s: the imported net computes something else: the largest relative error "
                         "is %.2g, expected at most %g",
                         args->onnx.check, compared->error, ERROR_MAX);
}
