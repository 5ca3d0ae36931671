/* predict: runs a trained net on files, on this machine's device. */
#include <string.h>
#include <unistd.h>

#include "cli/open_board.h"
#include "predict/predict.h"

static rp_predict_format format_of(const char *word) {
    return strcmp(word, "json") == 0  ? RP_PREDICT_JSON
           : strcmp(word, "csv") == 0 ? RP_PREDICT_CSV
                                      : RP_PREDICT_TEXT;
}

rp_err rp_verb_predict(rp_arena *arena, const rp_cli_args *args) {
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
