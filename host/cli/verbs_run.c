/* Verbs that read a run file. */
#include <string.h>

#include "cli/cli.h"
#include "run/controller.h"

static rp_format format_of(const rp_cli_args *args) {
    return strcmp(args->format, "json") == 0 ? RP_FORMAT_JSON : RP_FORMAT_TEXT;
}

static rp_train_options train_options(const rp_cli_args *args) {
    return (rp_train_options){
        .run_path = args->word[0],
        .set = args->set,
        .set_count = args->set_count,
        .out = args->out,
        .resume = args->resume,
        .keys_folder = args->keys,
        .format = format_of(args),
        .dry_run = args->dry_run,
    };
}

rp_err rp_verb_train(const rp_cli_args *args) {
    rp_train_options options = train_options(args);
    if (options.out && options.resume) {
        return rp_fail(RP_ERR_USAGE, "--out and --resume exclude each other: a resumed run goes on "
                                     "in its folder");
    }
    return rp_train(&options);
}

rp_err rp_verb_plan(const rp_cli_args *args) {
    rp_train_options options = train_options(args);
    return rp_plan(&options, false);
}

rp_err rp_verb_profile(const rp_cli_args *args) {
    rp_train_options options = train_options(args);
    return rp_plan(&options, true);
}

rp_err rp_verb_eval(const rp_cli_args *args) {
    if (!args->weights) {
        return rp_fail(RP_ERR_USAGE, "eval needs --weights FILE.safetensors");
    }
    rp_eval_options options = {
        .run_path = args->word[0],
        .set = args->set,
        .set_count = args->set_count,
        .weights = args->weights,
        .split = strcmp(args->split, "train") == 0 ? RP_SPLIT_TRAIN : RP_SPLIT_TEST,
        .keys_folder = args->keys,
        .format = format_of(args),
    };
    return rp_eval(&options);
}
