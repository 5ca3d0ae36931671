/* The assignment of a stage to a board, as YAML. Lines up to `peers` are equal for all boards of a
 * run but for the stage; lines after it are the board's own. An older agent refuses lines that it
 * does not know; a feature bit in wire/frame.h tells whether it knows them. */
#include <stdio.h>
#include <string.h>

#include "base/quote.h"
#include "run/runfile.h"

enum { ASSIGNMENT_BYTES = 64 * 1024 };

static void put_shape(FILE *file, const rp_shape *shape) {
    for (uint32_t i = 0; i < shape->dims; i++) {
        (void)fprintf(file, "%s%u", i ? ", " : "", shape->dim[i]);
    }
}

/* Copies a section of the run file. */
static rp_err put_part(rp_arena *arena, FILE *file, rp_node *root, const char *key) {
    const rp_node *node = rp_node_find(root, key);
    return node ? rp_config_put(arena, file, key, node) : RP_OK;
}

static rp_err put_schedule(rp_arena *arena, FILE *file, const rp_runfile *run, uint32_t stages) {
    rp_node *root = run->schedule_root ? run->schedule_root : run->root;
    rp_err err = RP_OK;
    if (stages != run->stages) { /* a profile times layers only, on one stage */
        (void)fprintf(file, "schedule: gpipe\n");
        return RP_OK;
    }
    /* The method may differ from the file: a smaller ring splits other stages, but keeps the number
     * of replicas. */
    if (run->method.kind->splits || run->method.kind->average != RP_AVERAGE_NONE) {
        char method[RP_METHOD_TEXT_BYTES];
        RP_TRY(rp_method_write(&run->method, method, sizeof method));
        (void)fprintf(file, "schedule: %s\n", method);
        return RP_OK;
    }
    RP_TRY(put_part(arena, file, root, "schedule"));
    if (run->method.advance_auto) {
        (void)fprintf(file, "advance: %u\n", run->method.advance);
    }
fail:
    return err;
}

static void put_cut(FILE *file, const rp_runfile *run, const rp_cut *cut) {
    (void)fprintf(file, "cut: [");
    for (uint32_t k = 1; k < cut->stage_count; k++) {
        (void)fputs(k > 1 ? ", " : "", file);
        rp_quote_put(file, run->model->layer[cut->first[k]].name);
    }
    (void)fprintf(file, "]\n");
}

static void put_loss(FILE *file, const rp_runfile *run) {
    const rp_loss_options *options = &run->loss_options;
    (void)fprintf(file, "loss: {kind: %s", run->loss->name);
    if (options->label_smoothing > 0) {
        (void)fprintf(file, ", label_smoothing: %.9g", (double)options->label_smoothing);
    }
    if (options->ignores) {
        (void)fprintf(file, ", ignore: %d", options->ignore);
    }
    if (options->classes_first) {
        (void)fputs(", classes_at: first", file);
    }
    (void)fprintf(file, "}\n");
}

/* Rounds to floats, which the board computes with. */
static void put_floats(FILE *file, const double *value, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        (void)fprintf(file, "%s%.9g", i ? ", " : "", (double)(float)value[i]);
    }
}

/* The normalisation that the first stage applies to inputs of bytes: mean 0 and deviation 1 if the
 * data set has none. */
static void put_normalise(FILE *file, const rp_norm *norm) {
    static const double zeros[RP_PIXEL_GROUPS_MAX];
    double ones[RP_PIXEL_GROUPS_MAX];
    for (uint32_t g = 0; g < norm->groups; g++) {
        ones[g] = 1;
    }
    (void)fprintf(file, "normalise:\n  mean: [");
    put_floats(file, norm->known ? norm->mean : zeros, norm->groups);
    (void)fprintf(file, "]\n  std: [");
    put_floats(file, norm->known ? norm->deviation : ones, norm->groups);
    (void)fprintf(file, "]\n");
}

static void put_times(FILE *file, const rp_buckets *buckets) {
    for (uint32_t k = 0; k < buckets->count; k++) {
        (void)fprintf(file, "%s%u%s", k > 0 ? ", " : "times: [", buckets->time[k],
                      k + 1 < buckets->count ? "" : "]\n");
    }
}

static void put_peers(FILE *file, const rp_runfile_peers *peers) {
    (void)fprintf(file, "peers:\n  host: ");
    rp_quote_put(file, peers->host);
    (void)fprintf(file, "\n  boards: [");
    for (uint32_t i = 0; i < peers->board_count; i++) {
        (void)fputs(i > 0 ? ", " : "", file);
        rp_quote_put(file, peers->board[i]);
    }
    (void)fprintf(file, "]\n");
}

/* In MiB if it is a whole number of them, because older boards read only that. */
static void put_memory(FILE *file, uint64_t bytes) {
    const uint64_t mib = 1 << 20;
    (void)fprintf(file, bytes % mib == 0 ? "memory_mib: %llu\n" : "memory_bytes: %llu\n",
                  (unsigned long long)(bytes % mib == 0 ? bytes / mib : bytes));
}

rp_err rp_runfile_assignment(rp_arena *arena, const rp_runfile *run, const rp_cut *cut,
                             uint32_t stage, const rp_runfile_peers *peers, char **out) {
    char *text;
    char *link;
    rp_err err = rp_link_hops_text(arena, &run->link, &run->hops, "  ", &link);
    if (err != RP_OK) {
        return err;
    }
    const size_t room = ASSIGNMENT_BYTES + (size_t)cut->stage_count * (RP_LAYER_NAME_MAX + 4) +
                        strlen(link) + (peers ? peers->board_count * (RP_KEY_TEXT + 4) : 0);
    err = RP_ARENA_NEW(arena, room, &text);
    FILE *file = err == RP_OK ? fmemopen(text, room, "w") : NULL;
    if (!file) {
        return rp_fail(RP_ERR_MEMORY, "no memory for an assignment");
    }
    (void)fprintf(file, "stage: %u\nstages: %u\nsample: [", stage, cut->stage_count);
    put_shape(file, &run->data.sample);
    (void)fprintf(file,
                  "]\nclasses: %u\ntarget_width: %u\nseed: %llu\nbatch: %u\nmicrobatch: %u\n"
                  "epoch_samples: %u\nsteps: %llu\nstep_first: %llu\nguard: %s\n",
                  run->data.classes, rp_data_row_width(&run->data), (unsigned long long)run->seed,
                  run->batch, run->micro, run->data.count[RP_SPLIT_TRAIN],
                  (unsigned long long)run->steps, (unsigned long long)run->step_first,
                  run->guard ? "true" : "false");
    if (run->data.type == RP_I32) {
        (void)fprintf(file, "sample_type: i32\ntokens: %u\n", run->data.tokens);
    }
    put_times(file, &run->data.buckets);
    put_memory(file, peers ? rp_runfile_memory_of(run, peers->place) : run->memory.all);
    if (run->input_codec == RP_CODEC_UINT8) {
        put_normalise(file, &run->data.norm);
    }
    put_loss(file, run);
    put_cut(file, run, cut);
    RP_TRY(put_part(arena, file, run->root, "optimizer"));
    RP_TRY(put_part(arena, file, run->root, "lr_schedule"));
    RP_TRY(put_schedule(arena, file, run, cut->stage_count));
    if (rp_optim_is_anchored(&run->optim)) {
        (void)fprintf(file, "anchor: {mu: %.17g, drift: %s}\n", run->optim.anchor.mu,
                      run->optim.anchor.drift ? "true" : "false");
    }
    if (run->storage != RP_F32) {
        (void)fprintf(file, "storage: %s\n", rp_dtype_name(run->storage));
    }
    if (run->safety.copy_steps > 0) {
        (void)fprintf(file, "copies: true\n");
    }
    if (run->emulate) {
        (void)fprintf(file, "link:\n  since_s: %.17g\n%s", run->hops.since_s, link);
    }
    if (peers) {
        put_peers(file, peers);
    }
    const rp_throttle *throttle =
        peers ? rp_runfile_throttle_of(run, peers->place) : &run->throttle.all;
    if (rp_throttle_is_set(throttle)) {
        rp_throttle_put(file, throttle);
    }
fail:
    if (fclose(file) != 0 && err == RP_OK) {
        err = rp_fail(RP_ERR_LIMIT, "an assignment is longer than %zu bytes", room);
    }
    *out = text;
    return err;
}
