/* What inspect and import print about an ONNX model. */
#ifndef RP_CLI_ONNX_REPORT_H
#define RP_CLI_ONNX_REPORT_H

#include "cli/cli.h"
#include "onnx/import.h"
#include "predict/compare.h"

/* Opens the model and finds its layers with the shapes of --shape. Close the model, also after an
 * error. errors  as rp_onnx_open(); USAGE, MEMORY */
rp_err rp_cli_analyse_onnx(rp_arena *arena, const rp_cli_args *args, rp_onnx_model **model,
                           rp_onnx_import *out) RP_MUST_CHECK;

/* Prints the model and what an import would say. errors FORMAT, MEMORY */
rp_err rp_cli_print_onnx(rp_arena *arena, const rp_cli_args *args,
                         const rp_onnx_import *import) RP_MUST_CHECK;

/* Prints up to 20 reasons on standard error why `file` cannot be imported or exported, and fails.
 * `what` is that word. */
rp_err rp_cli_refuse(const char *file, const char *what,
                     const rp_onnx_findings *findings) RP_MUST_CHECK;

/* Prints what was imported, and the result of --check unless that is NULL. errors FORMAT, MEMORY */
rp_err rp_cli_print_imported(const rp_cli_args *args, const rp_onnx_import *import,
                             const rp_comparison *compared) RP_MUST_CHECK;

#endif
