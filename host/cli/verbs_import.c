/* import: a model file and weights of an ONNX model. */
#include "base/log.h"
#include "cli/onnx_check.h"
#include "cli/onnx_report.h"
#include "cli/output_file.h"

static rp_err check_output(const rp_cli_args *args, const char *path) {
    rp_err err;
    RP_TRY(rp_cli_check_inputs(args, path));
    RP_TRY(rp_cli_check_input(args->onnx.names, path));
    RP_TRY(rp_cli_check_input(args->onnx.check, path));
    RP_TRY(rp_cli_check_output(args, path));
fail:
    return err;
}

rp_err rp_verb_import(rp_arena *arena, const rp_cli_args *args) {
    rp_onnx_model *model = NULL;
    rp_npz *arrays = NULL;
    rp_comparison compared = {0};
    rp_onnx_import import;
    bool written = false;
    rp_err err;
    if (strcmp(args->out, args->onnx.weights) == 0) {
        return rp_fail(RP_ERR_USAGE, "import: --out and --weights are one file, '%s'", args->out);
    }
    RP_TRY(check_output(args, args->out));
    RP_TRY(check_output(args, args->onnx.weights));
    if (args->onnx.check) {
        RP_TRY(rp_npz_read(arena, args->onnx.check, &arrays));
    }
    RP_TRY(rp_cli_analyse_onnx(arena, args, &model, &import));
    if (!import.text) {
        err = rp_cli_refuse(model->file, "imported", &import.refusals);
        goto fail;
    }
    RP_TRY(rp_onnx_write(arena, &import, args->out, args->onnx.weights));
    written = true;
    if (arrays) {
        RP_TRY(rp_cli_check_onnx(arena, args, &import, arrays, &compared));
    }
    RP_TRY(rp_cli_print_imported(args, &import, arrays ? &compared : NULL));
    if (arrays) {
        RP_TRY(rp_cli_judge_onnx(args, &compared));
    }
fail:
    if (err != RP_OK && written) {
        rp_log_error("%s and %s were written before this, and stay", args->out, args->onnx.weights);
    }
    rp_onnx_close(&model);
    return err;
}
