/* predict: runs a trained net on files, on this machine's device. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/open_board.h"
#include "predict/predict.h"
#include "predict/text.h"

static rp_predict_format format_of(const char *word) {
    return strcmp(word, "json") == 0  ? RP_PREDICT_JSON
           : strcmp(word, "csv") == 0 ? RP_PREDICT_CSV
                                      : RP_PREDICT_TEXT;
}

static rp_err predict_files(rp_arena *arena, const rp_cli_args *args) {
    const bool watched = !args->quiet && isatty(STDERR_FILENO);
    const rp_predict_options options = {.folder = args->words.item[0],
                                        .weights = args->model.weights,
                                        .input = args->words.item + 1,
                                        .input_count = args->words.count - 1,
                                        .top = args->model.top,
                                        .format = format_of(args->format),
                                        .out = stdout,
                                        .progress = watched ? stderr : NULL};
    rp_board board;
    rp_device *device = NULL;
    rp_predictor *predictor = NULL;
    rp_err err;
    RP_TRY(rp_predict_open(arena, &options, &predictor));
    RP_TRY(rp_cli_open_board(arena, args, &board, &device));
    RP_TRY(rp_predict_run(predictor, device));
fail:
    rp_predict_close(&predictor);
    rp_device_close(&device);
    return err;
}

static rp_err read_temperature(const char *text, double *out) {
    char *end = NULL;
    *out = text ? strtod(text, &end) : -1;
    return !text || (end != text && *end == '\0' && *out >= 0 && *out <= 1000)
               ? RP_OK
               : rp_fail(RP_ERR_USAGE,
                         "--temperature: expected a number from 0 to 1000, found '%s'", text);
}

static rp_err predict_text(rp_arena *arena, const rp_cli_args *args) {
    rp_text_options options = {.folder = args->words.item[0],
                               .weights = args->model.weights,
                               .text = args->model.text,
                               .tokens = args->model.tokens,
                               .beam = args->model.beam,
                               .seed = args->sim.seeds.first,
                               .top = args->model.top,
                               .format = format_of(args->format),
                               .out = stdout};
    rp_board board;
    rp_device *device = NULL;
    rp_texter *texter = NULL;
    rp_err err;
    RP_TRY(read_temperature(args->model.temperature, &options.temperature));
    RP_TRY(rp_text_open(arena, &options, &texter));
    RP_TRY(rp_cli_open_board(arena, args, &board, &device));
    RP_TRY(rp_text_run(texter, device));
fail:
    rp_text_close(&texter);
    rp_device_close(&device);
    return err;
}

rp_err rp_verb_predict(rp_arena *arena, const rp_cli_args *args) {
    if ((args->words.count > 1) == (args->model.text != NULL)) {
        return rp_fail(RP_ERR_USAGE, "predict: expected DIR FILE..., or DIR --text TEXT");
    }
    if (!args->model.text && (args->model.beam || args->model.tokens || args->model.temperature)) {
        return rp_fail(RP_ERR_USAGE, "predict: --%s applies only with --text",
                       args->model.beam     ? "beam"
                       : args->model.tokens ? "tokens"
                                            : "temperature");
    }
    return args->model.text ? predict_text(arena, args) : predict_files(arena, args);
}
