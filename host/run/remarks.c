#include "run/remarks.h"

#include <inttypes.h>

static const double all_samples[2] = {0, 1};

/* ---- single values --------------------------------------------------------------------------- */

/* Does a board's part of an epoch have microbatches of one sample (`some`), and larger ones? */
typedef struct {
    bool some, larger;
} singles;

static void add_step(const rp_runfile *run, const double share[2], uint32_t samples, singles *out) {
    const uint32_t own = rp_sched_share(share, samples).count;
    out->some |= own > 0 && (run->micro == 1 || own % run->micro == 1);
    out->larger |= own > 1 && run->micro > 1;
}

static void add_epoch(const rp_runfile *run, const double share[2], uint32_t lane, singles *out) {
    rp_data data = run->data;
    if (run->lanes.count > 0 && run->lanes.own == RP_LANE_NONE &&
        rp_data_take_share(&data, lane, run->lanes.count, run->batch) != RP_OK) {
        return; /* cannot happen: reading the run file would have failed */
    }
    const uint32_t samples = data.count[RP_SPLIT_TRAIN];
    if (samples >= run->batch) {
        add_step(run, share, run->batch, out);
    }
    add_step(run, share, samples % run->batch, out);
}

static singles find_singles(const rp_runfile *run, const double share[2]) {
    singles out = {0};
    add_epoch(run, share, 0, &out); /* the first and the last lane may differ by a sample */
    add_epoch(run, share, run->lanes.count > 0 ? run->lanes.count - 1 : 0, &out);
    return out;
}

/* The first layer of [first, end) that normalises a single value, which becomes 0: in microbatches
 * of one sample (`whole`), or in every sample. NULL: no such layer. */
static const rp_layer *find_layer(const rp_runfile *run, uint32_t first, uint32_t end, bool whole) {
    for (uint32_t i = first; i < end; i++) {
        const rp_layer_plan *plan = &run->model->plan[i];
        if (plan->sharing == 1 && plan->whole == whole) {
            return &run->model->layer[i];
        }
    }
    return NULL;
}

rp_err rp_runfile_check_shared_values(const rp_runfile *run, uint32_t first, uint32_t end,
                                      const double share[2]) {
    const rp_layer *layer = find_layer(run, first, end, true);
    const singles found = find_singles(run, share);
    return layer && found.some && !found.larger
               ? rp_node_fail(rp_node_find(run->root, "train"),
                              "layer '%s': %s normalises over a microbatch, but each channel has "
                              "only one value there, which becomes 0: expected microbatches of "
                              "more than one sample (train.batch, train.microbatch), or a layer "
                              "that normalises each sample (layernorm, groupnorm)",
                              layer->name, layer->kind->name)
               : RP_OK;
}

rp_err rp_runfile_check_values(const rp_runfile *run) {
    const rp_layer *layer = find_layer(run, 0, run->model->layer_count, false);
    return layer ? rp_node_fail(run->root,
                                "layer '%s' of %s: %s normalises one value by itself, which "
                                "becomes 0: expected several values (use fewer groups, or move "
                                "the layer)",
                                layer->name, run->model_name, layer->kind->name)
                 : rp_runfile_check_shared_values(run, 0, run->model->layer_count, all_samples);
}

/* ---- notes ----------------------------------------------------------------------------------- */

rp_err rp_runfile_note_shared(rp_arena *arena, const rp_runfile *run, uint32_t first, uint32_t end,
                              const double share[2], rp_notes *out) {
    const rp_layer *layer = find_layer(run, first, end, true);
    return layer && find_singles(run, share).some
               ? rp_notes_add(arena, out,
                              "layer '%s': the last microbatch of a step has one sample, so one "
                              "value for each channel: %s makes it 0 and leaves running_var as it "
                              "is; other sizes (train.batch, train.microbatch) avoid such a "
                              "remainder",
                              layer->name, layer->kind->name)
               : RP_OK;
}

rp_err rp_runfile_note(rp_arena *arena, const rp_runfile *run, rp_notes *out) {
    rp_err err;
    if (run->lr.warmup_steps > run->steps) {
        RP_TRY(rp_notes_add(
            arena, out,
            "lr_schedule.warmup_steps is %" PRIu64 ", but the run has only %" PRIu64
            " steps: the learning rate ends at %.3g and never reaches %.3g",
            run->lr.warmup_steps, run->steps,
            rp_lr_at(&run->lr, run->optim.lr, run->steps - 1, run->steps, run->epoch_steps),
            run->optim.lr));
    }
    err = rp_runfile_note_shared(arena, run, 0, run->model->layer_count, all_samples, out);
fail:
    return err;
}
