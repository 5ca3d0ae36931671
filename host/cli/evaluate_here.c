#include "cli/evaluate_here.h"

#include <string.h>
#include <unistd.h>

#include "cli/open_board.h"
#include "cli/signals.h"
#include "data/describe.h"
#include "predict/evaluate.h"
#include "predict/evaluate_bleu.h"
#include "run/runfile.h"

static rp_err print_result(const rp_cli_args *args, const rp_runfile *run, rp_split split,
                           const rp_confusion *confusion, const double *bleu, const char *weights,
                           const rp_device *device) {
    rp_confusion_about about = {.split = args->model.split,
                                .model = run->model_name,
                                .weights = weights,
                                .device = rp_device_facts_of(device)->name,
                                .class_name = run->data.class_name,
                                .targets = rp_runfile_target_rows(run),
                                .bleu = bleu,
                                .pixels = run->data.masks,
                                .without_table = !args->model.confusion};
    rp_err err;
    RP_TRY(rp_data_bits(&run->data, split, &about.bits));
    if (rp_cli_is_json(args)) {
        return rp_confusion_print_json(confusion, &about, stdout);
    }
    rp_confusion_print(confusion, &about, stdout);
fail:
    return err;
}

static rp_err check_part(const rp_cli_args *args, const rp_runfile *run, rp_split split) {
    if (args->model.confusion && run->data.classes == 0) {
        return rp_fail(RP_ERR_USAGE, "%s: --confusion needs classes, but the data have none",
                       run->path);
    }
    const rp_err err = args->model.bleu ? rp_bleu_check_data(&run->data) : RP_OK;
    if (err != RP_OK) {
        return err;
    }
    const bool validates = run->data.count[RP_SPLIT_VALIDATION] > 0;
    return run->data.count[split] > 0
               ? RP_OK
               : rp_fail(RP_ERR_USAGE, "%s: the data have no %s part; use --split %s", run->path,
                         args->model.split, validates ? "validation" : "train");
}

rp_err rp_cli_evaluate_here(rp_arena *arena, const rp_cli_args *args, rp_split split,
                            const char *weights) {
    const bool watched = !args->quiet && isatty(STDERR_FILENO);
    rp_cli_args board_args = *args;
    rp_runfile run = {0};
    rp_network *network = NULL;
    rp_device *device = NULL;
    rp_confusion confusion;
    double bleu = 0;
    rp_board board;
    rp_err err;
    RP_TRY(rp_runfile_read(arena, args->words.item[0], args->set.item, args->set.count, &run));
    RP_TRY(check_part(args, &run, split));
    RP_TRY(rp_data_check_weights(&run.data, weights));
    const rp_network_options options = {.model = run.model_root,
                                        .data = {.sample = run.data.sample,
                                                 .type = run.data.type,
                                                 .classes = run.data.classes,
                                                 .tokens = run.data.tokens},
                                        .time = run.data.buckets.time,
                                        .time_count = run.data.buckets.count,
                                        .weights = weights,
                                        .is_stopped = rp_cli_is_stopped};
    RP_TRY(rp_network_read(arena, &options, &network));
    RP_TRY(rp_confusion_open(arena, run.data.classes,
                             rp_network_outputs(network) / rp_runfile_target_rows(&run),
                             args->model.confusion || run.data.masks, &confusion));
    board_args.threads = run.threads;
    RP_TRY(rp_cli_watch_signals());
    RP_TRY(rp_cli_open_board(arena, &board_args, &board, &device));
    RP_TRY(rp_network_start(network, device));
    RP_TRY(rp_evaluate_part(network, &run.data, split, run.loss_options.label_smoothing,
                            watched ? stderr : NULL, &confusion));
    if (args->model.bleu) {
        RP_TRY(rp_evaluate_bleu(network, &run.data, split,
                                args->model.beam > 0 ? args->model.beam : 1,
                                watched ? stderr : NULL, &bleu));
    }
    RP_TRY(print_result(args, &run, split, &confusion, args->model.bleu ? &bleu : NULL, weights,
                        device));
fail:
    rp_network_close(&network);
    rp_device_close(&device);
    rp_runfile_close(&run);
    return err;
}
