/* import --check: compares an imported net with the framework that it comes from. */
#ifndef RP_CLI_ONNX_CHECK_H
#define RP_CLI_ONNX_CHECK_H

#include "cli/cli.h"
#include "onnx/import.h"
#include "predict/compare.h"

/* Runs the net with the written weights on this machine's device. In `arrays`, `x/NAME` has the
 * inputs and `eval` the outputs, as ringpipe_export.py writes them.
 * errors  as rp_network_read() and rp_compare_outputs() */
rp_err rp_cli_check_onnx(rp_arena *arena, const rp_cli_args *args, const rp_onnx_import *import,
                         const rp_npz *arrays, rp_comparison *out) RP_MUST_CHECK;

/* errors  USAGE: the error is too large */
rp_err rp_cli_judge_onnx(const rp_cli_args *args, const rp_comparison *compared) RP_MUST_CHECK;

#endif
