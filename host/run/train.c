#include <string.h>

#include "nn/rounding.h"
#include "run/runfile_own.h"

static rp_err read_stop_after(rp_node *train, rp_runfile *run) {
    rp_node *stop;
    rp_err err;
    RP_TRY(rp_section_map(train, "stop_after", "{non_finite: 10}", &stop));
    RP_TRY(rp_node_u32(stop, "non_finite", 0, 1000000, &run->score.non_finite_steps));
    RP_TRY(rp_node_u32(stop, "without_gain", 0, 1000000, &run->score.without_gain));
    RP_TRY(stop ? rp_node_done(stop) : RP_OK);
fail:
    return err;
}

static rp_err read_storage(rp_node *train, rp_runfile *run) {
    rp_node *storage;
    rp_err err;
    RP_TRY(rp_section_map(train, "storage", "{activations: bf16}", &storage));
    RP_TRY(rp_rounding_read(storage, "activations", &run->storage));
    RP_TRY(storage ? rp_node_done(storage) : RP_OK);
fail:
    return err;
}

rp_err rp_runfile_read_checkpoint(rp_node *root, rp_runfile *run) {
    enum { NONE = RP_BEST_LOSS + 1 };
    const rp_best_by usual = run->loss->class_target ? RP_BEST_ACCURACY : RP_BEST_LOSS;
    static const char *const words[] = {"accuracy", "loss", "none", NULL};
    rp_node *checkpoint;
    uint32_t by = NONE;
    rp_err err;
    RP_TRY(rp_section_map(root, "checkpoint", "{best: accuracy}", &checkpoint));
    RP_TRY(rp_node_word(checkpoint, "best", words, &by));
    RP_TRY(checkpoint ? rp_node_done(checkpoint) : RP_OK);
    run->score.keep_best = by < NONE;
    run->score.best_by = by < NONE ? (rp_best_by)by : usual;
    if (run->score.best_by == RP_BEST_ACCURACY && !run->loss->class_target) {
        return rp_node_fail(checkpoint, "best: the loss %s has no accuracy; expected loss",
                            run->loss->name);
    }
fail:
    return err;
}

/* `histograms` of the weights: none, `checkpoints`, or a number of steps. */
static rp_err read_histograms(rp_node *record, rp_runfile *run) {
    rp_node *node = rp_node_find(record, "histograms");
    const char *text = node && rp_node_is_scalar(node) ? rp_node_text(node) : "";
    const size_t digits = strspn(text, "0123456789");
    const bool number = digits > 0 && digits < 13 && text[digits] == '\0' && text[0] != '0';
    if (!node || strcmp(text, "none") == 0) {
        return RP_OK;
    }
    run->record.histograms = true;
    if (number) {
        return rp_node_u64(record, "histograms", 1, UINT64_C(1) << 40,
                           &run->record.histogram_steps);
    }
    return strcmp(text, "checkpoints") == 0
               ? RP_OK
               : rp_node_fail(node, "expected `checkpoints`, a number of steps, or none");
}

rp_err rp_runfile_read_record(rp_node *root, rp_runfile *run) {
    rp_node *record;
    rp_err err;
    RP_TRY(rp_section_map(root, "record", "{histograms: checkpoints}", &record));
    RP_TRY(read_histograms(record, run));
    RP_TRY(rp_node_default(record, "histograms", "none"));
    run->record.trace_mib = 64;
    RP_TRY(rp_node_u32(record, "trace_mib", 0, 1u << 20, &run->record.trace_mib));
    RP_TRY(rp_node_default(record, "trace_mib", "64"));
    RP_TRY(record ? rp_node_done(record) : RP_OK);
fail:
    return err;
}

rp_err rp_runfile_check_scores(const rp_runfile *run) {
    const bool scored = (run->score.eval_epochs > 0 || run->score.eval_steps > 0) &&
                        run->data.count[rp_data_scored(&run->data)] > 0;
    return scored || (!run->score.keep_best && run->score.without_gain == 0)
               ? RP_OK
               : rp_node_fail(run->root, "checkpoint.best and train.stop_after.without_gain need "
                                         "train.eval_epochs or train.eval_steps above 0, and a "
                                         "validation or test part");
}

/* auto: about half the square root of the batch, a power of 2, until there is a profile. */
static rp_err read_micro(rp_node *train, rp_runfile *run) {
    const rp_node *own = rp_node_find(train, "microbatch");
    run->micro = run->batch;
    run->micro_auto = own && rp_node_is_scalar(own) && strcmp(rp_node_text(own), "auto") == 0;
    if (!run->micro_auto) {
        return rp_node_u32(train, "microbatch", 1, run->batch, &run->micro);
    }
    run->micro = 1;
    while ((uint64_t)4 * run->micro * run->micro <= run->batch) {
        run->micro *= 2;
    }
    return RP_OK;
}

/* Checks that a change of the microbatch's size does not change the training. */
rp_err rp_runfile_check_micro(const rp_runfile *run) {
    const uint32_t whole[] = {0, run->model->layer_count};
    const rp_cut cut = {.stage_count = 1, .first = whole};
    const rp_node *train = rp_node_find(run->root, "train");
    if (!run->micro_auto) {
        return RP_OK;
    }
    if (!run->method.kind->flushed || !rp_method_is_plain(&run->method)) {
        return rp_node_fail(train,
                            "microbatch: auto needs a schedule with a flush, one stage on each "
                            "board and one size for all microbatches, like gpipe, 1f1b, zb-h1; "
                            "found %s",
                            run->method.kind->name);
    }
    const rp_layer *layer = rp_cut_whole_layer(run->model, &cut, 0);
    return layer ? rp_node_fail(train,
                                "microbatch: layer '%s' normalises over a microbatch, so its size "
                                "is a property of the model; expected a number instead of auto",
                                layer->name)
                 : RP_OK;
}

rp_err rp_runfile_read_train(rp_arena *arena, rp_node *root, rp_runfile *run) {
    rp_node *train;
    rp_err err;
    RP_TRY(rp_section_need(root, "train", &train));
    RP_TRY(rp_node_u32(train, "epochs", 0, 1000000, &run->epochs));
    RP_TRY(rp_node_u64(train, "steps", 0, UINT64_C(1) << 40, &run->steps));
    RP_TRY(rp_node_need(train, "batch"));
    RP_TRY(rp_node_u32(train, "batch", 1, RP_BATCH_MAX, &run->batch));
    RP_TRY(read_micro(train, run));
    RP_TRY(rp_node_u64(train, "seed", 0, UINT64_MAX, &run->seed));
    RP_TRY(rp_init_parse(arena, train, &run->init));
    RP_TRY(rp_node_default(train, "init", "none"));
    RP_TRY(rp_optim_parse_anchor(&run->anchor, train));
    RP_TRY(rp_node_default(train, "anchor", "none"));
    run->freeze = rp_node_find(train, "freeze");
    RP_TRY(rp_node_default(train, "freeze", "none"));
    if (run->freeze && rp_node_is_scalar(run->freeze) &&
        strcmp(rp_node_text(run->freeze), "none") == 0) {
        run->freeze = NULL;
    }
    RP_TRY(rp_node_bool(train, "guard", &run->guard));
    RP_TRY(rp_node_u32(train, "eval_epochs", 0, 1000000, &run->score.eval_epochs));
    RP_TRY(rp_node_u64(train, "eval_steps", 0, UINT64_C(1) << 40, &run->score.eval_steps));
    RP_TRY(rp_node_u32(train, "recalibrate", 0, 1000000, &run->score.recalibrate));
    RP_TRY(rp_node_u64(train, "checkpoint_steps", 0, UINT64_C(1) << 40, &run->checkpoint_steps));
    RP_TRY(read_stop_after(train, run));
    RP_TRY(read_storage(train, run));
    RP_TRY(rp_node_done(train));
    if (run->epochs == 0 && run->steps == 0) {
        return rp_node_fail(train, "expected `epochs` or `steps` above 0");
    }
fail:
    return err;
}
