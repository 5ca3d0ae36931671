#include "run/runfile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "run/links.h"
#include "run/paths.h"
#include "run/where.h"

enum {
    ASSIGNMENT_BYTES = 64 * 1024,
    WAIT_S = 30,
    SPARE_WAIT_S = 2,
    ORPHAN_S = 60,
    COPY_STEPS_FIRST = 8,
    THREADS_MAX = 1024
};

/* ---- model ----------------------------------------------------------------------------------- */

/* `own`: the folder of a run, which has the model as it was, unless --set names another; or NULL.
 */
static rp_err model_path(rp_arena *arena, rp_node *root, const char *name, const char *own,
                         const char **out) {
    char *path;
    rp_err err = RP_OK;
    if (own && rp_node_line(rp_node_find(root, "model")) > 0) {
        RP_TRY(rp_arena_printf(arena, &path, "%s/model.yaml", own));
        *out = path;
        if (access(path, F_OK) == 0) {
            return RP_OK;
        }
    }
    if (strchr(name, '/') || strstr(name, ".yaml")) {
        return rp_node_path(arena, rp_node_find(root, "model"), out);
    }
    const char *folder = getenv("RINGPIPE_MODELS");
    folder = folder ? folder : RP_MODELS_DIR;
    RP_TRY(rp_arena_printf(arena, &path, "%s/%s.yaml", folder, name));
    *out = path;
    if (access(path, R_OK) != 0) {
        return rp_node_fail(rp_node_find(root, "model"),
                            "no model '%s': neither a name under %s nor a path to a model file",
                            name, folder);
    }
fail:
    return err;
}

/* `input: [3, 32, 32]` of a model file; dims 0 when it follows the data. */
static rp_shape stated_input(rp_node *model) {
    rp_shape shape = {0};
    rp_node *list = rp_node_find(model, "input");
    if (!list || !rp_node_is_list(list) || rp_node_count(list) > RP_DIMS_MAX) {
        return shape;
    }
    shape.dims = rp_node_count(list);
    for (uint32_t i = 0; i < shape.dims; i++) {
        const rp_node *item = rp_node_item(list, i);
        long value = rp_node_is_scalar(item) ? strtol(rp_node_text(item), NULL, 10) : 0;
        shape.dim[i] = value > 0 && value < 1L << 24 ? (uint32_t)value : 0;
    }
    return rp_shape_check(&shape) ? shape
                                  : (rp_shape){0}; /* the model's parser says what is wrong */
}

/* ---- sections -------------------------------------------------------------------------------- */

/* Its keys, or NULL; where `like` is what a map looks like. */
static rp_err find_map(rp_node *root, const char *key, const char *like, rp_node **out) {
    rp_err err = rp_node_section(root, key, NULL, out);
    return err == RP_OK && *out && !rp_node_is_map(*out)
               ? rp_node_fail(*out, "expected a map%s%s", like[0] ? " like " : "", like)
               : err;
}

static rp_err need_map(rp_node *root, const char *key, rp_node **out) {
    *out = rp_node_find(root, key);
    if (!*out || !rp_node_is_map(*out)) {
        return rp_node_fail(root, "%s: expected a map", key);
    }
    return RP_OK;
}

static rp_err read_stop_after(rp_node *train, rp_runfile *run) {
    rp_node *stop;
    rp_err err;
    RP_TRY(find_map(train, "stop_after", "{non_finite: 10}", &stop));
    RP_TRY(rp_node_u32(stop, "non_finite", 0, 1000000, &run->non_finite_steps));
    RP_TRY(rp_node_u32(stop, "without_gain", 0, 1000000, &run->without_gain));
    RP_TRY(stop ? rp_node_done(stop) : RP_OK);
fail:
    return err;
}

/* Of the part that is scored on the way: by default by accuracy where there are classes. */
static rp_err read_checkpoint(rp_node *root, rp_runfile *run) {
    enum { NONE = RP_BEST_LOSS + 1 };
    const rp_best_by usual = run->loss->class_target ? RP_BEST_ACCURACY : RP_BEST_LOSS;
    static const char *const words[] = {"accuracy", "loss", "none", NULL};
    rp_node *checkpoint;
    uint32_t by = NONE;
    rp_err err;
    RP_TRY(find_map(root, "checkpoint", "{best: accuracy}", &checkpoint));
    RP_TRY(rp_node_word(checkpoint, "best", words, &by));
    RP_TRY(checkpoint ? rp_node_done(checkpoint) : RP_OK);
    run->keep_best = by < NONE;
    run->best_by = by < NONE ? (rp_best_by)by : usual;
    if (run->best_by == RP_BEST_ACCURACY && !run->loss->class_target) {
        return rp_node_fail(checkpoint, "best: the loss %s has no accuracy; expected loss",
                            run->loss->name);
    }
fail:
    return err;
}

/* Of the weights: `checkpoints`, or a number of steps. */
static rp_err read_histograms(rp_node *record, rp_runfile *run) {
    rp_node *node = rp_node_find(record, "histograms");
    const char *text = node && rp_node_is_scalar(node) ? rp_node_text(node) : "";
    const size_t digits = strspn(text, "0123456789");
    const bool number = digits > 0 && digits < 13 && text[digits] == '\0' && text[0] != '0';
    if (!node || strcmp(text, "none") == 0) {
        return RP_OK;
    }
    run->histograms = true;
    if (number) {
        return rp_node_u64(record, "histograms", 1, UINT64_C(1) << 40, &run->histogram_steps);
    }
    return strcmp(text, "checkpoints") == 0
               ? RP_OK
               : rp_node_fail(node, "expected `checkpoints`, a number of steps, or none");
}

static rp_err read_record(rp_node *root, rp_runfile *run) {
    rp_node *record;
    rp_err err;
    RP_TRY(find_map(root, "record", "{histograms: checkpoints}", &record));
    RP_TRY(read_histograms(record, run));
    RP_TRY(rp_node_default(record, "histograms", "none"));
    run->trace_mib = 64;
    RP_TRY(rp_node_u32(record, "trace_mib", 0, 1u << 20, &run->trace_mib));
    RP_TRY(rp_node_default(record, "trace_mib", "64"));
    RP_TRY(record ? rp_node_done(record) : RP_OK);
fail:
    return err;
}

/* Both need scores. */
static rp_err check_scores(const rp_runfile *run) {
    const bool scored = (run->eval_epochs > 0 || run->eval_steps > 0) &&
                        run->data.count[rp_data_scored(&run->data)] > 0;
    return scored || (!run->keep_best && run->without_gain == 0)
               ? RP_OK
               : rp_node_fail(run->root, "checkpoint.best and train.stop_after.without_gain need "
                                         "train.eval_epochs or train.eval_steps above 0, and a "
                                         "validation or test part");
}

/* auto: a size near the root of the batch, until there is a profile. */
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

/* Where another size of a microbatch is the same training. */
static rp_err check_micro_auto(const rp_runfile *run) {
    const uint32_t whole[] = {0, run->model->layer_count};
    const rp_cut cut = {.stage_count = 1, .first = whole};
    const rp_node *train = rp_node_find(run->root, "train");
    if (!run->micro_auto) {
        return RP_OK;
    }
    if (!run->method.kind->flushed || run->method.kind->sizes || run->method.chunks > 1) {
        return rp_node_fail(train,
                            "microbatch: auto is for schedules with a flush, one stage a board "
                            "and one size for all, as gpipe, 1f1b, zb-h1; found %s",
                            run->method.kind->name);
    }
    const rp_layer *layer = rp_cut_whole_layer(run->model, &cut, 0);
    return layer ? rp_node_fail(train,
                                "microbatch: layer '%s' normalises over a microbatch: with "
                                "another size it is another model; expected a number",
                                layer->name)
                 : RP_OK;
}

static rp_err read_train(rp_arena *arena, rp_node *root, rp_runfile *run) {
    rp_node *train;
    rp_err err;
    RP_TRY(need_map(root, "train", &train));
    RP_TRY(rp_node_u32(train, "epochs", 0, 1000000, &run->epochs));
    RP_TRY(rp_node_u64(train, "steps", 0, UINT64_C(1) << 40, &run->steps));
    RP_TRY(rp_node_need(train, "batch"));
    RP_TRY(rp_node_u32(train, "batch", 1, RP_BATCH_MAX, &run->batch));
    RP_TRY(read_micro(train, run));
    RP_TRY(rp_node_u64(train, "seed", 0, UINT64_MAX, &run->seed));
    RP_TRY(rp_init_parse(arena, train, &run->init));
    RP_TRY(rp_node_default(train, "init", "none"));
    run->freeze = rp_node_find(train, "freeze");
    RP_TRY(rp_node_default(train, "freeze", "none"));
    if (run->freeze && rp_node_is_scalar(run->freeze) &&
        strcmp(rp_node_text(run->freeze), "none") == 0) {
        run->freeze = NULL;
    }
    RP_TRY(rp_node_bool(train, "guard", &run->guard));
    RP_TRY(rp_node_u32(train, "eval_epochs", 0, 1000000, &run->eval_epochs));
    RP_TRY(rp_node_u64(train, "eval_steps", 0, UINT64_C(1) << 40, &run->eval_steps));
    RP_TRY(rp_node_u32(train, "recalibrate", 0, 1000000, &run->recalibrate));
    RP_TRY(rp_node_u64(train, "checkpoint_steps", 0, UINT64_C(1) << 40, &run->checkpoint_steps));
    RP_TRY(read_stop_after(train, run));
    RP_TRY(rp_node_done(train));
    if (run->epochs == 0 && run->steps == 0) {
        return rp_node_fail(train, "expected `epochs` or `steps` above 0");
    }
fail:
    return err;
}

/* Where boards that dial find this host. */
static rp_err read_listen(rp_node *ring, rp_runfile *run) {
    const rp_err err = rp_node_string(ring, "listen", &run->listen);
    if (err != RP_OK || (run->listen && rp_roster_is_address(run->listen))) {
        return err;
    }
    if (run->listen) {
        return rp_node_fail(rp_node_find(ring, "listen"),
                            "expected " RP_ROSTER_ADDRESS ", found '%s'", run->listen);
    }
    for (uint32_t i = 0; !run->local && i < run->boards; i++) {
        if (run->roster[i].dials) {
            return rp_node_fail(ring,
                                "listen: is missing, and board '%s' of the roster dials this "
                                "host: expected where, as in tcp://0.0.0.0:7100",
                                run->roster[i].name);
        }
    }
    return RP_OK;
}

static rp_err read_link(rp_arena *arena, rp_node *link, rp_runfile *run) {
    const char **names = NULL;
    rp_err err = RP_OK;
    if (run->roster) {
        RP_TRY(RP_ARENA_NEW(arena, run->boards, &names));
    }
    for (uint32_t i = 0; run->roster && i < run->boards; i++) {
        names[i] = run->roster[i].name;
    }
    run->emulate = true;
    RP_TRY(rp_links_read(arena, link, run->boards, names, &run->link, &run->hops));
fail:
    return err;
}

/* "1/200" */
static rp_err read_verify(rp_node *ring, rp_runfile *run) {
    rp_node *node = rp_node_find(ring, "verify");
    const char *text = NULL;
    unsigned long long every = 0;
    int used = 0;
    rp_err err = RP_OK;
    if (!node) {
        return RP_OK;
    }
    RP_TRY(rp_node_string(ring, "verify", &text));
    if (sscanf(text, "1/%9llu%n", &every, &used) != 1 || text[used] != '\0' || every == 0) {
        return rp_node_fail(node,
                            "expected one of how many microbatches is to be computed again, "
                            "as in 1/200, found '%s'",
                            text);
    }
    if (run->boards < 2) {
        return rp_node_fail(node, "needs a second board, which computes again what the first has");
    }
    run->verify = (uint32_t)every;
fail:
    return err;
}

/* auto: the first copies say what they cost, and how often they are made from then on. */
static rp_err read_copies(rp_node *ring, rp_runfile *run) {
    const rp_node *node = rp_node_find(ring, "copy_steps");
    run->copy_auto = node && rp_node_is_scalar(node) && strcmp(rp_node_text(node), "auto") == 0;
    run->copy_steps = run->copy_auto ? COPY_STEPS_FIRST : 0;
    return run->copy_auto ? RP_OK
                          : rp_node_u32(ring, "copy_steps", 0, RP_COPY_STEPS_MAX, &run->copy_steps);
}

/* From here on the ring is that of one lane. */
static rp_err deal_boards(rp_arena *arena, const rp_node *ring, rp_runfile *run) {
    rp_err err = RP_OK;
    if (run->listen) {
        return rp_node_fail(ring, "listen: a lane has a controller of its own, and boards can dial "
                                  "one only: expected a roster without boards that dial");
    }
    if (run->roster) {
        RP_TRY(rp_lanes_deal(arena, &run->lanes, ring, &run->roster, &run->boards, &run->spares));
    }
    if (run->at_least > run->boards || (run->copy_steps > 0 && run->boards == 1)) {
        return rp_node_fail(ring, "at_least, copy_steps: a lane has %u boards", run->boards);
    }
fail:
    return err;
}

/* A number for all boards of this machine, or a list with one for each. */
static rp_err read_threads(rp_arena *arena, rp_node *ring, rp_runfile *run) {
    const rp_node *node = rp_node_find(ring, "threads");
    uint32_t *each;
    rp_err err;
    if (!node || !rp_node_is_list(node)) {
        return rp_node_u32(ring, "threads", 0, THREADS_MAX, &run->threads);
    }
    if (run->roster || rp_node_count(node) != run->boards) {
        return rp_node_fail(node,
                            run->roster ? "a list is of the boards of this machine; a "
                                          "roster's have their own --threads"
                                        : "expected one number, or one for each of the %u "
                                          "boards",
                            run->boards);
    }
    RP_TRY(RP_ARENA_NEW(arena, run->boards, &each));
    for (uint32_t k = 0; k < run->boards; k++) {
        RP_TRY(rp_node_item_u32(node, k, 0, THREADS_MAX, &each[k]));
    }
    run->board_threads = each;
fail:
    return err;
}

const rp_throttle *rp_runfile_throttle_of(const rp_runfile *run, uint32_t board) {
    char place[16];
    (void)snprintf(place, sizeof place, "%u", board);
    return rp_throttles_of(&run->throttle, run->roster ? run->roster[board].name : place);
}

uint64_t rp_runfile_memory_of(const rp_runfile *run, uint32_t board) {
    char place[16];
    (void)snprintf(place, sizeof place, "%u", board);
    return rp_memories_of(&run->memory, run->roster ? run->roster[board].name : place);
}

static rp_err read_ring(rp_arena *arena, rp_node *root, rp_runfile *run) {
    rp_node *ring;
    const char *roster = NULL;
    rp_where where;
    rp_err err;
    run->boards = 1;
    run->local = true;
    run->board = "auto";
    run->at_least = 1;
    run->wait_s = WAIT_S;
    run->spare_wait_s = SPARE_WAIT_S;
    run->orphan_s = ORPHAN_S;
    RP_TRY(find_map(root, "ring", "", &ring));
    if (!ring) {
        return RP_OK;
    }
    if (!rp_node_find(ring, "roster")) {
        RP_TRY(rp_node_u32(ring, "boards", 1, RP_CUT_STAGES_MAX, &run->boards));
    }
    RP_TRY(rp_node_string(ring, "board", &run->board));
    RP_TRY(rp_node_u32(ring, "wait", 0, 86400, &run->wait_s));
    RP_TRY(rp_node_f64(ring, "spare_wait", 0, 86400, &run->spare_wait_s));
    RP_TRY(rp_node_u32(ring, "orphan_wait", 1, 86400, &run->orphan_s));
    RP_TRY(read_copies(ring, run));
    RP_TRY(rp_node_string(ring, "roster", &roster));
    RP_TRY(rp_where_read(arena, ring, &where));
    if (where.at && !roster) {
        return rp_node_fail(where.at, "chooses boards of a roster, and there is none");
    }
    if (roster) {
        if (rp_node_find(ring, "boards")) {
            return rp_node_fail(ring, "`boards` and `roster` exclude each other");
        }
        run->local = false;
        RP_TRY(rp_roster_read(arena, roster, &run->roster, &run->boards));
        RP_TRY(rp_where_choose(&where, roster, run->roster, &run->boards));
    }
    RP_TRY(read_threads(arena, ring, run));
    RP_TRY(rp_memories_read(arena, ring, run->roster, run->boards, &run->memory));
    RP_TRY(rp_throttles_read(arena, ring, run->roster, run->boards, &run->throttle));
    if (run->copy_steps > 0 && run->boards == 1) {
        return rp_node_fail(ring,
                            "copy_steps: a ring of one board has no neighbour to keep a copy");
    }
    RP_TRY(rp_node_u32(ring, "at_least", 1, run->boards, &run->at_least));
    RP_TRY(rp_spares_read(ring, run->roster, &run->boards, &run->spares));
    RP_TRY(read_listen(ring, run));
    RP_TRY(run->lanes.count > 0 ? deal_boards(arena, ring, run) : RP_OK);
    rp_node *link = rp_node_find(ring, "link");
    if (link) {
        RP_TRY(read_link(arena, link, run));
    }
    RP_TRY(read_verify(ring, run));
    RP_TRY(rp_node_done(ring));
fail:
    return err;
}

static rp_err check_halves(const rp_runfile *run) {
    const rp_method *method = &run->method;
    if (method->split_count > 0) {
        const uint32_t boards = rp_method_boards(method, method->split_count);
        return boards == run->boards
                   ? RP_OK
                   : rp_node_fail(rp_node_find(run->root, "schedule"),
                                  "split: has %u stages, %u of them on two boards: expected %u "
                                  "boards, found %u",
                                  method->split_count, boards - method->split_count, boards,
                                  run->boards);
    }
    return run->boards % 2 == 0
               ? RP_OK
               : rp_node_fail(rp_node_find(run->root, "schedule"),
                              "schedule %s: has two boards for each stage: expected an even number "
                              "of boards, found %u",
                              run->method.kind->name, run->boards);
}

static rp_err read_method(rp_node *root, rp_runfile *run) {
    rp_node *lr;
    rp_err err;
    RP_TRY(rp_loss_parse(root, &run->loss, &run->label_smoothing));
    RP_TRY(need_map(root, "optimizer", &(rp_node *){NULL}));
    RP_TRY(rp_optim_parse(&run->optim, rp_node_find(root, "optimizer")));
    RP_TRY(rp_node_section(root, "lr_schedule", rp_lr_kinds[RP_LR_CONSTANT], &lr));
    RP_TRY(rp_lr_parse(&run->lr, lr));
    RP_TRY(rp_method_parse(root, run->boards, &run->method));
    RP_TRY(run->method.kind->splits ? check_halves(run) : RP_OK);
    run->stages = rp_method_stages(&run->method, run->boards);
    RP_TRY(rp_method_fit_stages(&run->method, run->stages, rp_node_find(root, "schedule")));
    RP_TRY(rp_method_fit(&run->method, &run->optim, rp_node_find(root, "optimizer")));
fail:
    return err;
}

static rp_err read_sizes(rp_arena *arena, rp_runfile *run) {
    const rp_err err = rp_sizes_read(arena, run->root, &run->method, run->stages, run->batch,
                                     run->micro, &run->sizes);
    bool any = false;
    for (uint32_t k = 0; k < run->stages; k++) {
        any |= !rp_method_is_split(&run->method, k);
    }
    if (err == RP_OK && run->verify > 0 && !any) {
        return rp_node_fail(rp_node_find(run->root, "ring"),
                            "verify: computes a microbatch again, forward and backward on one "
                            "board; with schedule %s and all stages split no board does both",
                            run->method.kind->name);
    }
    return err;
}

/* Who remembers samples has to meet each of them again, and in one place. */
static rp_err check_remembers(const rp_runfile *run) {
    rp_codec codec = RP_CODEC_F32;
    for (uint32_t k = 0; run->codec && k + 1 < run->stages; k++) {
        codec = rp_codec_remembers(run->codec[k][0]) ? run->codec[k][0] : codec;
    }
    if (!rp_codec_remembers(codec)) {
        return RP_OK;
    }
    const rp_node *node = rp_node_find(rp_node_find(run->root, "links"), "codec");
    if (!run->method.kind->flushed || run->method.chunks > 1) {
        return rp_node_fail(node,
                            "%s needs a schedule that flushes, with one stage a board, as gpipe, "
                            "1f1b, zb-h1 and umpipe; found %s",
                            rp_codec_name(codec), run->method.kind->name);
    }
    if (run->verify > 0) {
        return rp_node_fail(node,
                            "%s: a board that computes a microbatch again for ring.verify does "
                            "not remember its samples; expected another codec, or no ring.verify",
                            rp_codec_name(codec));
    }
    if (run->lanes.count > 1) {
        return rp_node_fail(node,
                            "%s: with lanes a ring has a part of the samples, another one in every "
                            "epoch; expected another codec, or no lanes",
                            rp_codec_name(codec));
    }
    return RP_OK;
}

static rp_err check_chunks(rp_node *root, const rp_runfile *run) {
    const rp_node *schedule = rp_node_find(root, "schedule");
    const uint32_t micros = (run->batch - 1) / run->micro + 1;
    if (run->method.chunks > 1 && run->stages > RP_CUT_STAGES_MAX) {
        return rp_node_fail(schedule,
                            "%u boards of %u stages are %u stages, at most %d are "
                            "possible",
                            run->boards, run->method.chunks, run->stages, RP_CUT_STAGES_MAX);
    }
    if (run->method.chunks > 1 && micros % run->boards > 0) {
        return rp_node_fail(schedule,
                            "%s sends microbatches through in groups of one a board: expected a "
                            "multiple of %u a step, and train.batch %u by train.microbatch %u "
                            "gives %u",
                            run->method.kind->name, run->boards, run->batch, run->micro, micros);
    }
    return RP_OK;
}

/* Without any `advance` there is some staleness already. */
static rp_err check_age(const rp_runfile *run, const rp_node *node) {
    const rp_sched_shape shape = rp_runfile_sched_shape(run, 0);
    const uint32_t least = run->method.age_given ? rp_method_age(&run->method, &shape, 0) : 0;
    return !run->method.age_given || least <= run->method.age_max
               ? RP_OK
               : rp_node_fail(node,
                              "advance: max_staleness: is %u, and %s on %u stages has %u without "
                              "any advance; expected %u or more",
                              run->method.age_max, run->method.kind->name, run->stages, least,
                              least);
}

static rp_err read_cut(rp_arena *arena, rp_node *root, rp_runfile *run) {
    rp_node *cut = rp_node_find(root, "cut");
    run->cut_auto = !cut || (rp_node_is_scalar(cut) && strcmp(rp_node_text(cut), "auto") == 0);
    if (run->cut_auto) {
        return RP_OK;
    }
    rp_err err = rp_cut_parse(arena, run->model, cut, &run->cut);
    if (err == RP_OK && run->cut.stage_count != run->stages) {
        return rp_node_fail(
            cut, "%u names make %u stages, the ring has %u boards with %u stages in all",
            run->cut.stage_count - 1, run->cut.stage_count, run->boards, run->stages);
    }
    return err;
}

rp_err rp_runfile_check_cut(const rp_runfile *run) {
    rp_node *cut = rp_node_find(run->root, "cut");
    const bool is_closed = run->method.chunks > 1 && run->boards > 1;
    const rp_node *ring = rp_node_find(run->root, "ring");
    rp_err err = RP_OK;
    if (!run->local && run->method.kind->splits) {
        RP_TRY(rp_roster_check_halves(ring, run->roster, run->stages, run->method.whole));
    } else if (!run->local) {
        RP_TRY(rp_roster_check_row(ring, run->roster, run->boards, is_closed));
    }
    RP_TRY(check_chunks(run->root, run));
    if (run->cut_auto && run->model->layer_count < run->stages) {
        return rp_node_fail(cut ? cut : run->root, "%u stages need as many layers, %s has %u",
                            run->stages, run->model_name, run->model->layer_count);
    }
fail:
    return err;
}

static rp_err read_model_and_data(rp_arena *arena, rp_node *root, rp_runfile *run) {
    const char *path;
    rp_node *data;
    rp_err err;
    RP_TRY(rp_node_need(root, "model"));
    RP_TRY(rp_node_string(root, "model", &run->model_name));
    RP_TRY(model_path(arena, root, run->model_name, run->folder, &path));
    RP_TRY(rp_config_read_file(arena, path, &run->model_root));
    RP_TRY(rp_freeze_layers(arena, run->freeze, run->model_root));
    RP_TRY(need_map(root, "data", &data));
    rp_shape input = stated_input(run->model_root);
    RP_TRY(rp_data_open(arena, &run->data, data, &input, run->loss->class_target, run->seed));
    run->data_open = true;
    if (run->data.soft) { /* mixed classes */
        run->loss = rp_loss_find("soft-cross-entropy");
    }
    RP_TRY(
        rp_model_parse(arena, run->model_root, &run->data.sample, run->data.classes, &run->model));
    size_t outputs = rp_shape_count(rp_model_out(run->model));
    size_t wanted = run->loss->class_target ? run->data.classes : rp_data_row_width(&run->data);
    if (run->loss->class_target ? outputs < wanted : outputs != wanted) {
        return rp_node_fail(root, "%s has %zu outputs, the data set %zu %s", run->model_name,
                            outputs, wanted, run->loss->accuracy ? "classes" : "columns");
    }
fail:
    return err;
}

/* A lane is averaged at a pause, between two steps; the result is the centre, scored at the end. */
static rp_err check_lanes(const rp_runfile *run) {
    const rp_node *lanes = rp_node_find(run->root, "lanes");
    if (run->lanes.count == 0) {
        return RP_OK;
    }
    if (!run->method.kind->flushed) {
        return rp_node_fail(lanes,
                            "schedule %s leaves microbatches in flight between steps, and these "
                            "would not fit weights that were averaged: expected a schedule that "
                            "flushes, like gpipe or 1f1b",
                            run->method.kind->name);
    }
    return run->keep_best || run->without_gain > 0
               ? rp_node_fail(lanes,
                              "checkpoint.best and train.stop_after.without_gain need scores "
                              "of the result on its way, and lanes are scored at the end")
               : RP_OK;
}

static rp_err take_share(rp_runfile *run) {
    return run->lanes.own == RP_LANE_NONE
               ? RP_OK
               : rp_data_take_share(&run->data, run->lanes.own, run->lanes.count);
}

/* Both bounds: whichever ends first; 0 is none. */
static void bound_steps(rp_runfile *run) {
    run->epoch_steps = (run->data.count[RP_SPLIT_TRAIN] + run->batch - 1) / run->batch;
    uint64_t by_epochs = run->epochs * run->epoch_steps;
    if (run->steps == 0 || (run->epochs > 0 && by_epochs < run->steps)) {
        run->steps = by_epochs;
    }
}

/* Of a run.yaml: its folder, when that is one of a run. NULL: it is not. */
static rp_err folder_of_run(rp_arena *arena, const char *path, const char **out) {
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    char *text;
    char *identity;
    char *lanes;
    rp_err err = RP_OK;
    *out = NULL;
    if (strcmp(name, "run.yaml") != 0) {
        return RP_OK;
    }
    RP_TRY(
        rp_arena_printf(arena, &text, "%.*s", slash ? (int)(slash - path) : 1, slash ? path : "."));
    RP_TRY(rp_arena_printf(arena, &identity, "%s/identity.json", text));
    RP_TRY(rp_arena_printf(arena, &lanes, "%s/lanes.json", text));
    *out = access(identity, F_OK) == 0 || access(lanes, F_OK) == 0 ? text : NULL;
fail:
    return err;
}

/* A folder is that of a run: its run.yaml. */
static rp_err find_file(rp_arena *arena, const char *path, rp_runfile *run) {
    struct stat facts;
    char *text;
    rp_err err = RP_OK;
    run->path = path;
    if (stat(path, &facts) == 0 && S_ISDIR(facts.st_mode)) {
        run->folder = path;
        RP_TRY(rp_arena_printf(arena, &text, "%s/run.yaml", path));
        run->path = text;
        if (access(text, F_OK) != 0) {
            return rp_fail(RP_ERR_USAGE,
                           "%s: is not the folder of a run: there is no run.yaml; a run that was "
                           "ended before it began is begun by the command that made its folder",
                           path);
        }
        return RP_OK;
    }
    RP_TRY(folder_of_run(arena, path, &run->folder));
fail:
    return err;
}

static rp_err read_codecs(rp_arena *arena, rp_runfile *out) {
    rp_codecs codecs;
    const rp_err err = rp_codecs_read(arena, out->root, out->stages, &codecs);
    out->codec = codecs.at;
    out->input_codec = codecs.inputs;
    out->codec_auto = codecs.is_auto;
    out->codec_max_error = codecs.max_error;
    return err;
}

/* plan.boards: all of them, those that the planner takes, or these. */
static rp_err read_boards(rp_node *plan, rp_runfile *run) {
    rp_node *boards = plan ? rp_node_find(plan, "boards") : NULL;
    const bool is_word = boards && rp_node_is_scalar(boards);
    const char *word = is_word ? rp_node_text(boards) : "all";
    if (!boards || strcmp(word, "all") == 0) {
        if (!is_word && boards) {
            return rp_spares_arrange(boards, run->local ? NULL : run->roster, &run->boards,
                                     &run->spares);
        }
        return rp_node_default(plan, "boards", "all");
    }
    if (strcmp(word, "auto") != 0) {
        return rp_node_fail(boards, "expected all, auto, or a list of boards in their order");
    }
    if (run->local || run->lanes.count > 0) {
        return rp_node_fail(boards, "auto needs a roster and no lanes: a board that is left out "
                                    "becomes a spare");
    }
    run->boards_auto = true;
    return RP_OK;
}

/* Cuts are tried where they change no number. */
static rp_err check_trial(const rp_runfile *run) {
    const rp_node *plan = rp_node_find(run->root, "plan");
    if (run->plan_trial == 0) {
        return RP_OK;
    }
    if (!run->cut_auto) {
        return rp_node_fail(plan, "trial: tries cuts of the planner's, and `cut` says which one it "
                                  "is; expected cut: auto");
    }
    if (!run->method.kind->flushed) {
        return rp_node_fail(plan,
                            "trial: schedule %s does not wait for steps, so each cut that is tried "
                            "would change the weights; expected a schedule with a flush",
                            run->method.kind->name);
    }
    return run->sizes.planner
               ? rp_node_fail(plan, "trial: schedule.planner chooses other sizes for other cuts, "
                                    "and they change the order of sums; expected sizes that are "
                                    "given (schedule.forward)")
               : RP_OK;
}

/* Gradients of a stage are summed before its update, in one order. */
static rp_err check_share(const rp_runfile *run) {
    const rp_node *plan = rp_node_find(run->root, "plan");
    const char *why =
        run->plan_share <= 1         ? NULL
        : !run->cut_auto             ? "and `cut` says what is where; expected cut: auto"
        : !run->method.kind->flushed ? "before an update, so the schedule has to flush"
        : run->method.chunks > 1     ? "and each holds one stage; expected no chunks"
        : run->sizes.by_stage
            ? "and the number of stages is chosen later; expected one number each as "
              "schedule.forward and backward, or schedule.planner"
        : run->lanes.count > 0 ? "and a lane has few boards"
                               : NULL;
    return why ? rp_node_fail(plan, "share: boards of a stage sum their gradients, %s", why)
               : RP_OK;
}

static rp_err read_plan(rp_node *root, rp_runfile *run) {
    rp_node *plan;
    rp_err err;
    RP_TRY(find_map(root, "plan", "{drift: 0.3}", &plan));
    RP_TRY(rp_node_f64(plan, "drift", 0, 100, &run->plan_drift));
    RP_TRY(rp_node_default(plan, "drift", "0"));
    RP_TRY(rp_node_u32(plan, "trial", 0, RP_PLAN_TRIAL_MAX, &run->plan_trial));
    RP_TRY(rp_node_default(plan, "trial", "0"));
    RP_TRY(rp_node_f64(plan, "seconds", 0, 3600, &run->plan_seconds));
    RP_TRY(rp_node_default(plan, "seconds", "5"));
    run->plan_share = 1;
    RP_TRY(rp_node_u32(plan, "share", 1, RP_PLAN_SHARE_MAX, &run->plan_share));
    RP_TRY(rp_node_default(plan, "share", "1"));
    RP_TRY(read_boards(plan, run));
    (void)rp_node_find(plan, "schedules"); /* read_schedules() */
    RP_TRY(rp_node_default(plan, "schedules", "none"));
    RP_TRY(plan ? rp_node_done(plan) : RP_OK);
fail:
    return err;
}

static rp_err read_offload(rp_arena *arena, rp_runfile *run) {
    rp_offload *stage;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(arena, run->stages, &stage));
    RP_TRY(rp_offload_read(run->root, run->stages, stage));
    for (uint32_t k = 0; k < run->stages; k++) {
        const bool leaves = stage[k] == RP_OFFLOAD_HOST || stage[k] == RP_OFFLOAD_FLASH;
        if (leaves && rp_method_is_split(&run->method, k)) {
            return rp_node_fail(rp_node_find(run->root, "offload"),
                                "is not for stage %u, which schedule %s splits: its stashes leave "
                                "for another board anyway; expected none, or stages that are not "
                                "split",
                                k, run->method.kind->name);
        }
    }
fail:
    return err;
}

/* Which stage a layer is in says the cut, which may be chosen later: any one will do here. */
static rp_err read_recompute(rp_arena *arena, rp_runfile *run) {
    uint32_t *first;
    bool *stage;
    bool *begins;
    char whose[RP_METHOD_WHOSE_BYTES];
    rp_err err;
    RP_TRY(read_offload(arena, run));
    RP_TRY(RP_ARENA_NEW(arena, (size_t)run->stages + 1, &first));
    RP_TRY(RP_ARENA_NEW(arena, run->stages, &stage));
    RP_TRY(RP_ARENA_NEW(arena, run->model->layer_count, &begins));
    for (uint32_t k = 1; k <= run->stages; k++) {
        first[k] = k < run->stages ? k : run->model->layer_count;
    }
    const rp_cut cut = {.stage_count = run->stages, .first = first};
    RP_TRY(rp_again_read(run->root, run->model, &cut, stage, begins, &run->recompute_auto));
    for (uint32_t k = 0; k < run->stages; k++) {
        const char *why = rp_method_refuses_again(&run->method, k, false);
        const bool splits = rp_method_is_split(&run->method, k);
        if (stage[k] && why) {
            return rp_node_fail(rp_node_find(run->root, "recompute"),
                                "is not for %s: %s; expected none%s",
                                rp_method_whose(&run->method, k, whose), why,
                                splits ? ", or stages that are not split" : "");
        }
    }
fail:
    return err;
}

/* As if it were the run's own: what the run file says has to fit each. */
static rp_err check_schedule(rp_arena *arena, const rp_runfile *run, uint32_t index,
                             const rp_node *node) {
    rp_runfile other = *run;
    rp_err err;
    rp_runfile_take_schedule(&other, index);
    RP_TRY(rp_method_fit_model(&other.method, other.model, node));
    RP_TRY(check_remembers(&other));
    RP_TRY(check_age(&other, node));
    RP_TRY(read_recompute(arena, &other));
    RP_TRY(check_micro_auto(&other));
    RP_TRY(check_trial(&other));
    RP_TRY(check_share(&other));
fail:
    return err;
}

static rp_err read_schedules(rp_arena *arena, rp_runfile *run) {
    const rp_node *node[RP_SCHEDULES_MAX];
    rp_node *plan = rp_node_find(run->root, "plan");
    rp_err err;
    RP_TRY(
        rp_schedules_read(arena, run->root, plan, run->boards, &run->optim, &run->schedules, node));
    if (run->schedules.count == 0) {
        return RP_OK;
    }
    if (!run->cut_auto || run->lanes.count > 0) {
        return rp_node_fail(plan, "schedules: the planner takes one with the cut, for one ring; "
                                  "expected cut: auto, and no lanes");
    }
    for (uint32_t i = 1; i < run->schedules.count; i++) {
        RP_TRY(check_schedule(arena, run, i, node[i]));
    }
    run->schedule_auto = run->schedules.count > 1;
fail:
    return err;
}

rp_err rp_runfile_read(rp_arena *arena, const char *path, const char *const *set,
                       uint32_t set_count, rp_runfile *out) {
    *out = (rp_runfile){.seed = 1,
                        .guard = true,
                        .eval_epochs = 1,
                        .recalibrate = 32,
                        .non_finite_steps = 10,
                        .plan_seconds = 5};
    rp_err err;
    RP_TRY(find_file(arena, path, out));
    RP_TRY(rp_config_read_file(arena, out->path, &out->root));
    for (uint32_t i = 0; i < set_count; i++) {
        RP_TRY(rp_config_set(arena, out->root, set[i]));
    }
    RP_TRY(rp_paths_resolve(arena, out->root));
    rp_config_note_defaults(arena, out->root);
    RP_TRY(read_train(arena, out->root, out));
    RP_TRY(rp_lanes_read(out->root, &out->lanes));
    RP_TRY(read_ring(arena, out->root, out));
    RP_TRY(read_plan(out->root, out));
    RP_TRY(rp_node_string(out->root, "keys", &out->keys));
    RP_TRY(read_method(out->root, out));
    RP_TRY(read_codecs(arena, out));
    RP_TRY(read_sizes(arena, out));
    RP_TRY(check_chunks(out->root, out));
    RP_TRY(check_remembers(out));
    RP_TRY(check_age(out, rp_node_find(out->root, "schedule")));
    RP_TRY(read_checkpoint(out->root, out));
    RP_TRY(read_record(out->root, out));
    (void)rp_node_find(out->root, "model");
    (void)rp_node_find(out->root, "data");
    (void)rp_node_find(out->root, "cut");
    RP_TRY(rp_node_default(out->root, "cut", "auto"));
    (void)rp_node_find(out->root, "recompute");
    RP_TRY(rp_node_default(out->root, "recompute", "auto"));
    (void)rp_node_find(out->root, "offload");
    RP_TRY(rp_node_default(out->root, "offload", "auto"));
    RP_TRY(rp_node_done(out->root));
    RP_TRY(check_lanes(out));
    RP_TRY(read_model_and_data(arena, out->root, out));
    RP_TRY(take_share(out));
    out->inputs_auto = out->input_codec == RP_CODECS;
    RP_TRY(rp_codecs_choose_inputs(out->root, &out->data, &out->input_codec, &out->inputs_why));
    RP_TRY(rp_method_fit_model(&out->method, out->model, rp_node_find(out->root, "schedule")));
    RP_TRY(read_cut(arena, out->root, out));
    RP_TRY(read_recompute(arena, out));
    if (!out->cut_auto) {
        RP_TRY(rp_sizes_fit_cut(&out->sizes, out->root, out->model, &out->cut, out->micro));
    }
    RP_TRY(check_micro_auto(out));
    RP_TRY(check_trial(out));
    RP_TRY(check_share(out));
    RP_TRY(check_scores(out));
    RP_TRY(read_schedules(arena, out));
    bound_steps(out);
    return RP_OK;
fail:
    rp_runfile_close(out);
    return err;
}

rp_err rp_runfile_read_keys(const rp_runfile *run, const char *folder, rp_keypair *out) {
    rp_arena arena;
    rp_err err = RP_OK;
    rp_arena_init(&arena, "keys", 0);
    folder = folder ? folder : run->keys;
    if (!folder) {
        RP_TRY(rp_keys_home(&arena, &folder));
    }
    err = rp_keys_read(folder, out);
fail:
    rp_arena_finish(&arena);
    return err;
}

void rp_runfile_close(rp_runfile *run) {
    if (run->data_open) {
        rp_data_close(&run->data);
        run->data_open = false;
    }
}

void rp_runfile_take_schedule(rp_runfile *run, uint32_t index) {
    const rp_schedule *taken = &run->schedules.at[index];
    run->method = taken->method;
    run->optim = taken->optim;
    run->schedule_root = taken->root;
}

rp_sched_shape rp_runfile_sched_shape(const rp_runfile *run, uint64_t step_first) {
    rp_sched_shape shape = {.stages = run->stages,
                            .step_first = step_first,
                            .step_end = run->steps,
                            .epoch_samples = run->data.count[RP_SPLIT_TRAIN],
                            .batch = run->batch,
                            .micro = run->micro};
    rp_method_order(&run->method, &shape);
    return shape;
}

/* ---- assignment ------------------------------------------------------------------------------ */

static void put_shape(FILE *file, const rp_shape *shape) {
    for (uint32_t i = 0; i < shape->dims; i++) {
        (void)fprintf(file, "%s%u", i ? ", " : "", shape->dim[i]);
    }
}

/* A part that a person wrote. */
static rp_err put_part(rp_arena *arena, FILE *file, rp_node *root, const char *key) {
    const rp_node *node = rp_node_find(root, key);
    return node ? rp_config_put(arena, file, key, node) : RP_OK;
}

static rp_err put_schedule(rp_arena *arena, FILE *file, const rp_runfile *run, uint32_t stages) {
    rp_node *root = run->schedule_root ? run->schedule_root : run->root;
    rp_err err = RP_OK;
    if (stages != run->stages) { /* a profile: layers only, on one stage */
        (void)fprintf(file, "schedule: gpipe\n");
        return RP_OK;
    }
    if (run->method.kind->splits) { /* a smaller ring has other stages split than the file says */
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
        (void)fprintf(file, "%s%s", k > 1 ? ", " : "", run->model->layer[cut->first[k]].name);
    }
    (void)fprintf(file, "]\n");
}

static void put_loss(FILE *file, const rp_runfile *run) {
    if (run->label_smoothing > 0) {
        (void)fprintf(file, "loss: {kind: %s, label_smoothing: %.9g}\n", run->loss->name,
                      (double)run->label_smoothing);
    } else {
        (void)fprintf(file, "loss: %s\n", run->loss->name);
    }
}

static void put_floats(FILE *file, const float *value, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        (void)fprintf(file, "%s%.9g", i ? ", " : "", (double)value[i]);
    }
}

/* What the first stage makes of inputs that are bytes. Values that stay have mean 0, deviation 1.
 */
static void put_normalise(FILE *file, const rp_norm *norm) {
    static const float zeros[RP_PIXEL_GROUPS_MAX];
    float ones[RP_PIXEL_GROUPS_MAX];
    for (uint32_t g = 0; g < norm->groups; g++) {
        ones[g] = 1;
    }
    (void)fprintf(file, "normalise:\n  mean: [");
    put_floats(file, norm->known ? norm->mean : zeros, norm->groups);
    (void)fprintf(file, "]\n  std: [");
    put_floats(file, norm->known ? norm->deviation : ones, norm->groups);
    (void)fprintf(file, "]\n");
}

static void put_peers(FILE *file, const rp_runfile_peers *peers) {
    (void)fprintf(file, "peers:\n  host: \"%s\"\n  boards: [", peers->host);
    for (uint32_t i = 0; i < peers->board_count; i++) {
        (void)fprintf(file, "%s\"%s\"", i > 0 ? ", " : "", peers->board[i]);
    }
    (void)fprintf(file, "]\n");
}

/* In the unit that boards have always read, where it is whole. */
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
    const size_t room = ASSIGNMENT_BYTES + (size_t)cut->stage_count * (RP_LAYER_NAME_MAX + 2) +
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
                  run->data.classes, run->loss->class_target ? 1 : rp_data_row_width(&run->data),
                  (unsigned long long)run->seed, run->batch, run->micro,
                  run->data.count[RP_SPLIT_TRAIN], (unsigned long long)run->steps,
                  (unsigned long long)run->step_first, run->guard ? "true" : "false");
    put_memory(file, peers ? rp_runfile_memory_of(run, peers->place) : run->memory.all);
    if (run->input_codec == RP_CODEC_UINT8) {
        put_normalise(file, &run->data.norm);
    }
    put_loss(file, run);
    put_cut(file, run, cut);
    RP_TRY(put_part(arena, file, run->root, "optimizer"));
    RP_TRY(put_part(arena, file, run->root, "lr_schedule"));
    RP_TRY(put_schedule(arena, file, run, cut->stage_count));
    if (run->copy_steps > 0) {
        (void)fprintf(file, "copies: true\n");
    }
    if (!run->data.shuffle) {
        (void)fprintf(file, "shuffle: false\n");
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
