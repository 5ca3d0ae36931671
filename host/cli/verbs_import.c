/* import: a model file and weights of an ONNX model. */
#include "cli/onnx_report.h"
#include "cli/output_file.h"

rp_err rp_verb_import(rp_arena *arena, const rp_cli_args *args) {
    rp_onnx_model *model = NULL;
    rp_onnx_import import;
    rp_err err;
    if (strcmp(args->out, args->onnx.weights) == 0) {
        return rp_fail(RP_ERR_USAGE, "import: --out and --weights are one file, '%s'", args->out);
    }
    RP_TRY(rp_cli_check_inputs(args, args->out));
    RP_TRY(rp_cli_check_inputs(args, args->onnx.weights));
    RP_TRY(rp_cli_check_output(args, args->out));
    RP_TRY(rp_cli_check_output(args, args->onnx.weights));
    RP_TRY(rp_cli_analyse_onnx(arena, args, &model, &import));
    if (!import.text) {
        err = rp_cli_refuse(model->file, "imported", &import.refusals);
        goto fail;
    }
    RP_TRY(rp_onnx_write(arena, &import, args->out, args->onnx.weights));
    RP_TRY(rp_cli_print_imported(args, &import));
fail:
    rp_onnx_close(&model);
    return err;
}
