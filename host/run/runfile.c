#include "run/runfile_own.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "run/paths.h"
#include "run/zoo.h"

/* ---- model ----------------------------------------------------------------------------------- */

/* `own`: a run folder, or NULL. It contains the model file of the run, which is used unless --set
 * names a model. */
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
    RP_TRY(rp_zoo_path(arena, name, out));
    if (*out == name) {
        RP_TRY(rp_node_path(arena, rp_node_find(root, "model"), out));
        return access(*out, R_OK) == 0
                   ? RP_OK
                   : rp_node_fail(rp_node_find(root, "model"), "'%s': %s", *out, strerror(errno));
    }
    if (access(*out, R_OK) != 0) {
        return rp_node_fail(rp_node_find(root, "model"),
                            "unknown model '%s': expected the name of a model in %s (see `ringpipe "
                            "list models`), or a path to a model file",
                            name, rp_zoo_folder());
    }
fail:
    return err;
}

/* A shape like [3, 32, 32]; dims 0 if it follows the data or is invalid, which the model's parser
 * reports. */
static rp_shape stated_shape(const rp_node *list) {
    rp_shape shape = {0};
    if (!list || !rp_node_is_list(list) || rp_node_count(list) > RP_DIMS_MAX) {
        return shape;
    }
    shape.dims = rp_node_count(list);
    for (uint32_t i = 0; i < shape.dims; i++) {
        const rp_node *item = rp_node_item(list, i);
        long value = rp_node_is_scalar(item) ? strtol(rp_node_text(item), NULL, 10) : 0;
        shape.dim[i] = value > 0 && value < 1L << 24 ? (uint32_t)value : 0;
    }
    return rp_shape_check(&shape) ? shape : (rp_shape){0};
}

static rp_data_input typed_input(rp_node *input) {
    const rp_node *type = rp_node_find(input, "type");
    const bool ids =
        type && rp_node_is_scalar(type) && strcmp(rp_node_text(type), rp_dtype_name(RP_I32)) == 0;
    return (rp_data_input){.shape = stated_shape(rp_node_find(input, "shape")),
                           .type = ids ? RP_I32 : RP_F32};
}

/* Several inputs follow one another along axis 0. */
static rp_err joint_input(rp_node *inputs, rp_data_input *out) {
    rp_model model = {0};
    uint32_t size[RP_LAYER_INPUTS_MAX] = {0};
    rp_err err;
    _Static_assert((int)RP_DATA_PARTS_MAX == (int)RP_LAYER_INPUTS_MAX, "inputs of a model");
    RP_TRY(rp_model_read_inputs(inputs, &model, size));
    *out =
        (rp_data_input){.shape = model.input, .type = model.input_type, .parts = model.input_count};
    for (uint32_t i = 0; i < out->parts; i++) {
        out->part[i] = (rp_data_part){.name = rp_node_key(inputs, i), .size = size[i]};
    }
fail:
    return err;
}

/* `input: [3, 32, 32]`, `input: {shape: [64], type: i32}`, or several of these by name. Of a single
 * input, what is invalid the model's parser reports. */
static rp_err read_input(rp_node *model, rp_data_input *out) {
    rp_node *input = rp_node_find(model, "input");
    if (rp_model_names_inputs(input)) {
        return joint_input(input, out);
    }
    *out = input && rp_node_is_map(input) ? typed_input(input)
                                          : (rp_data_input){.shape = stated_shape(input)};
    return RP_OK;
}

/* ---- sections -------------------------------------------------------------------------------- */

static rp_err read_method(rp_node *root, rp_runfile *run) {
    rp_node *lr;
    rp_err err;
    RP_TRY(rp_loss_parse(root, &run->loss, &run->loss_options));
    RP_TRY(rp_section_need(root, "optimizer", &(rp_node *){NULL}));
    RP_TRY(rp_optim_parse(&run->optim, rp_node_find(root, "optimizer")));
    run->optim.anchor = run->anchor;
    RP_TRY(rp_optim_check_anchor(&run->optim, rp_node_find(root, "optimizer")));
    RP_TRY(rp_node_section(root, "lr_schedule", rp_lr_kinds[RP_LR_CONSTANT], &lr));
    RP_TRY(rp_lr_parse(&run->lr, lr));
    RP_TRY(rp_method_parse(root, run->boards, &run->method));
    RP_TRY(rp_method_fit_boards(&run->method, run->boards, rp_node_find(root, "schedule")));
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
    if (err == RP_OK && run->safety.verify > 0 && !any) {
        return rp_node_fail(rp_node_find(run->root, "ring"),
                            "verify: needs a stage with forward and backward on one board, but "
                            "schedule %s splits all stages",
                            run->method.kind->name);
    }
    return err;
}

static rp_err check_chunks(rp_node *root, const rp_runfile *run) {
    const rp_node *schedule = rp_node_find(root, "schedule");
    const uint32_t micros = (run->batch - 1) / run->micro + 1;
    if (run->method.chunks > 1 && run->stages > RP_CUT_STAGES_MAX) {
        return rp_node_fail(schedule,
                            "%u boards with %u stages each make %u stages; expected at most %d",
                            run->boards, run->method.chunks, run->stages, RP_CUT_STAGES_MAX);
    }
    if (run->method.chunks > 1 && micros % run->boards > 0) {
        return rp_node_fail(schedule,
                            "%s needs a multiple of %u microbatches (the number of boards) in each "
                            "step, but train.batch %u and train.microbatch %u give %u",
                            run->method.kind->name, run->boards, run->batch, run->micro, micros);
    }
    return RP_OK;
}

/* Checks `advance: {max_staleness}`: a schedule has some staleness without any advance. */
static rp_err check_staleness(const rp_runfile *run, const rp_node *node) {
    const rp_sched_shape shape = rp_runfile_sched_shape(run, 0);
    const uint32_t least = run->method.age_given ? rp_method_age(&run->method, &shape, 0) : 0;
    return !run->method.age_given || least <= run->method.age_max
               ? RP_OK
               : rp_node_fail(node,
                              "advance: max_staleness: is %u, but %s on %u stages has %u even "
                              "without advance; expected %u or more",
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
        return rp_node_fail(cut,
                            "%u names of layers make %u stages, but the ring of %u boards has %u; "
                            "expected one name "
                            "for each stage after the first",
                            run->cut.stage_count - 1, run->cut.stage_count, run->boards,
                            run->stages);
    }
    return err;
}

static rp_err check_wires(const rp_runfile *run) {
    const rp_node *ring = rp_node_find(run->root, "ring");
    uint32_t end[2];
    rp_err err = RP_OK;
    for (uint32_t i = 0;
         !run->local && rp_method_wire(&run->method, run->boards, run->stages, i, end); i++) {
        RP_TRY(rp_roster_check_neighbours(ring, &run->roster[end[0]], &run->roster[end[1]]));
    }
fail:
    return err;
}

rp_err rp_runfile_check_cut(const rp_runfile *run) {
    rp_node *cut = rp_node_find(run->root, "cut");
    rp_err err;
    RP_TRY(check_wires(run));
    RP_TRY(check_chunks(run->root, run));
    if (run->cut_auto && run->model->layer_count < run->stages) {
        return rp_node_fail(cut ? cut : run->root,
                            "%u stages need at least one layer each, but model %s has %u",
                            run->stages, run->model_name, run->model->layer_count);
    }
fail:
    return err;
}

/* Targets are counted by the loss, and ids are checked for the model. */
static rp_err take_targets(rp_arena *arena, rp_runfile *run, const rp_node *root) {
    const bool held = rp_err_hold(true);
    const rp_err err = rp_loss_check_layout(rp_model_out(run->model), rp_runfile_target_rows(run),
                                            &run->loss_options);
    (void)rp_err_hold(held);
    if (err != RP_OK) {
        return rp_node_fail(root, "model %s: %s", run->model_name, rp_err_message());
    }
    const rp_shape *out = rp_model_out(run->model);
    if (run->data.type == RP_I32 && run->data.classes > 0 && run->data.target_width == 1 &&
        out->dims > 1) {
        return rp_node_fail(root,
                            "model %s: has a row of outputs for each of %u tokens, but a sample "
                            "has one class: add seqpool, or `output: last` to an lstm",
                            run->model_name, out->dim[0]);
    }
    if (run->data.pads_labels && !(run->loss_options.ignores && run->loss_options.ignore == 0)) {
        return rp_node_fail(root,
                            "loss: expected `ignore: 0`, because the set %s fills targets up with "
                            "label 0, which would be trained: loss: {kind: cross-entropy, ignore: "
                            "0}",
                            run->data.kind->name);
    }
    if (run->data.type == RP_I32 && run->loss_options.classes_first) {
        return rp_node_fail(rp_node_find(run->root, "loss"),
                            "classes_at: first is for images, but samples are token ids: expected "
                            "last");
    }
    run->data.ignores = run->loss_options.ignores;
    run->data.ignore = run->loss_options.ignore;
    return rp_model_id_limits(arena, run->model, &run->data.id_limit);
}

_Static_assert((int)RP_BUCKETS_MAX == (int)RP_MODEL_TIMES_MAX, "as many lengths as buckets");

/* data.buckets: every layer must accept samples of each length. */
static rp_err add_buckets(rp_arena *arena, rp_runfile *run, rp_node *data) {
    const rp_data *set = &run->data;
    const rp_node *node = rp_node_find(data, "buckets");
    if (set->buckets.count == 0) {
        return RP_OK;
    }
    if (set->parts > 1 && run->model->input_count != set->parts) {
        return rp_node_fail(node,
                            "needs a model with the inputs `source` and `target`, whose length can "
                            "then change, but model %s has one input of %u tokens",
                            run->model_name, run->model->input.dim[0]);
    }
    const bool held = rp_err_hold(true);
    const rp_err err = rp_model_add_times(arena, run->model, set->buckets.time, set->buckets.count);
    (void)rp_err_hold(held);
    if (err != RP_OK) {
        return rp_node_fail(node, "model %s: %s", run->model_name, rp_err_message());
    }
    for (uint32_t k = 0; k < run->model->view_count; k++) {
        const rp_model_view *view = &run->model->view[k];
        const rp_shape *out = rp_model_view_shape(view, run->model->layer_count - 1);
        if (set->by_token && out->dim[0] != view->time) {
            return rp_node_fail(node,
                                "model %s: has %u rows of outputs for samples of %u tokens, "
                                "expected one for each token",
                                run->model_name, out->dim[0], view->time);
        }
    }
    return RP_OK;
}

static rp_err read_model_and_data(rp_arena *arena, rp_node *root, rp_runfile *run) {
    const char *path;
    rp_node *data;
    rp_data_input input;
    rp_err err;
    RP_TRY(rp_node_need(root, "model"));
    RP_TRY(rp_node_string(root, "model", &run->model_name));
    RP_TRY(model_path(arena, root, run->model_name, run->folder, &path));
    RP_TRY(rp_config_read_file(arena, path, &run->model_root));
    RP_TRY(rp_freeze_layers(arena, run->freeze, run->model_root));
    RP_TRY(rp_section_need(root, "data", &data));
    RP_TRY(read_input(run->model_root, &input));
    input.masks = run->loss_options.classes_first;
    input.ignore = run->loss_options.ignores ? &run->loss_options.ignore : NULL;
    RP_TRY(rp_data_open(arena, &run->data, data, &input, run->loss->class_target, run->seed));
    run->data_open = true;
    if (run->data.soft) { /* mixup: targets are probabilities of classes */
        if (run->loss_options.ignores) {
            return rp_node_fail(rp_node_find(root, "loss"),
                                "`ignore` does not go with `augment.mixup`, whose targets are "
                                "probabilities of classes");
        }
        run->loss = rp_loss_find("soft-cross-entropy");
    }
    const rp_model_data about = {.sample = run->data.sample,
                                 .type = run->data.type,
                                 .classes = run->data.classes,
                                 .tokens = run->data.tokens};
    RP_TRY(rp_model_parse(arena, run->model_root, &about, &run->model));
    RP_TRY(take_targets(arena, run, root));
    RP_TRY(add_buckets(arena, run, data));
    size_t outputs = rp_shape_count(rp_model_out(run->model)) / rp_runfile_target_rows(run);
    size_t wanted = run->loss->class_target ? run->data.classes : rp_data_row_width(&run->data);
    if (run->loss->class_target ? outputs < wanted : outputs != wanted) {
        return rp_node_fail(root, "model %s has %zu outputs, but the data set has %zu %s",
                            run->model_name, outputs, wanted,
                            run->loss->accuracy ? "classes" : "columns");
    }
fail:
    return err;
}

/* Lanes are averaged at a pause between two steps. The result is the centre, which is scored at the
 * end of the run. */
static rp_err check_lanes(const rp_runfile *run) {
    const rp_node *lanes = rp_node_find(run->root, "lanes");
    if (run->lanes.count == 0) {
        return RP_OK;
    }
    if (!run->method.kind->flushed) {
        return rp_node_fail(lanes,
                            "schedule %s leaves microbatches in flight between steps, which would "
                            "not match the averaged weights: expected a schedule that flushes, "
                            "like gpipe or 1f1b",
                            run->method.kind->name);
    }
    if (rp_optim_is_anchored(&run->optim)) {
        return rp_node_fail(lanes, "train.anchor: lanes replace the weights by averages, and their "
                                   "centre already pulls: expected one of the two");
    }
    return run->score.keep_best || run->score.without_gain > 0
               ? rp_node_fail(lanes,
                              "checkpoint.best and train.stop_after.without_gain need scores "
                              "during the run, but a run with lanes is scored only at its end; "
                              "remove them")
               : RP_OK;
}

/* Does the schedule allow a drift, which a site's round will set? */
static rp_err check_drift(const rp_runfile *run, const rp_node *at) {
    rp_optim optim = run->optim;
    optim.anchor.drift = run->federated.options.drift;
    return rp_method_fit(&run->method, &optim, at);
}

/* A federated run trains by rounds of its sites, each of which is an ordinary run. */
static rp_err check_federated(const rp_runfile *run) {
    const rp_node *sites = rp_node_find(run->root, "sites");
    rp_err err;
    if (!run->federated.given) {
        return RP_OK;
    }
    if (run->lanes.count > 0) {
        return rp_node_fail(sites, "a site trains in one ring: remove `lanes`");
    }
    if (run->data.sited) {
        return rp_node_fail(sites, "the run gives each site its samples: remove `data.site`");
    }
    if (run->data.count[RP_SPLIT_VALIDATION] > 0) {
        return rp_node_fail(sites, "each round would hold out other samples, so that all would be "
                                   "trained: remove `data.validation`");
    }
    RP_TRY(rp_federated_check_optimizer(&run->federated, &run->optim, &run->lr,
                                        rp_node_find(run->root, "optimizer")));
    RP_TRY(check_drift(run, rp_node_find(run->root, "optimizer")));
    RP_TRY(rp_site_options_check_model(&run->federated.options, run->model));
    return run->score.keep_best || run->score.without_gain > 0
               ? rp_node_fail(sites, "checkpoint.best and train.stop_after.without_gain compare "
                                     "scores of one run, but a federated run scores the centre "
                                     "of its sites: remove them")
               : RP_OK;
fail:
    return err;
}

/* Computes epoch_steps, which is equal for all lanes. A lane's data are reduced to its share. */
static rp_err take_share(rp_runfile *run) {
    const rp_lanes_keys *lanes = &run->lanes;
    const bool is_lane = lanes->own != RP_LANE_NONE;
    rp_data part = run->data;
    rp_err err = RP_OK;
    if (lanes->count > 0) {
        RP_TRY(rp_data_take_share(&part, is_lane ? lanes->own : 0, lanes->count, run->batch));
    }
    run->epoch_steps = (part.count[RP_SPLIT_TRAIN] + run->batch - 1) / run->batch;
    run->data = is_lane ? part : run->data;
fail:
    return err;
}

/* Applies both bounds, `epochs` and `steps`; 0 is no bound. */
static void bound_steps(rp_runfile *run) {
    const uint64_t by_epochs = run->epochs * run->epoch_steps;
    if (run->steps == 0 || (run->epochs > 0 && by_epochs < run->steps)) {
        run->steps = by_epochs;
    }
}

/* *out: the folder of a file run.yaml if it is a run folder, else NULL. */
static rp_err folder_of_run(rp_arena *arena, const char *path, const char **out) {
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    char *text;
    char *identity;
    char *lanes;
    char *federation;
    rp_err err = RP_OK;
    *out = NULL;
    if (strcmp(name, "run.yaml") != 0) {
        return RP_OK;
    }
    RP_TRY(
        rp_arena_printf(arena, &text, "%.*s", slash ? (int)(slash - path) : 1, slash ? path : "."));
    RP_TRY(rp_arena_printf(arena, &identity, "%s/identity.json", text));
    RP_TRY(rp_arena_printf(arena, &lanes, "%s/lanes.json", text));
    RP_TRY(rp_arena_printf(arena, &federation, "%s/federation.json", text));
    *out = access(identity, F_OK) == 0 || access(lanes, F_OK) == 0 || access(federation, F_OK) == 0
               ? text
               : NULL;
fail:
    return err;
}

/* Sets run->path and run->folder; a path to a folder means its run.yaml. */
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
                           "%s: this is not a run folder, because it has no run.yaml; if the run "
                           "ended before its first step, repeat the command that made the folder",
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

static rp_err read_offload(rp_arena *arena, rp_runfile *run) {
    rp_offload *stage;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(arena, run->stages, &stage));
    RP_TRY(rp_offload_read(run->root, run->stages, stage));
    for (uint32_t k = 0; k < run->stages; k++) {
        const bool leaves = stage[k] == RP_OFFLOAD_HOST || stage[k] == RP_OFFLOAD_FLASH;
        if (leaves && rp_method_is_split(&run->method, k)) {
            return rp_node_fail(rp_node_find(run->root, "offload"),
                                "stage %u cannot be offloaded, because schedule %s splits it and "
                                "sends its stashes to another board; expected none, or stages that "
                                "are not split",
                                k, run->method.kind->name);
        }
    }
fail:
    return err;
}

/* Checks `offload` and `recompute` with an arbitrary cut, because the real one may be chosen later.
 */
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
    RP_TRY(rp_recompute_read(run->root, run->model, &cut, stage, begins, &run->recompute_auto));
    for (uint32_t k = 0; k < run->stages; k++) {
        const char *why = rp_method_refuses_again(&run->method, k, run->sizes.in_use);
        const bool splits = rp_method_is_split(&run->method, k);
        if (stage[k] && why) {
            return rp_node_fail(rp_node_find(run->root, "recompute"),
                                "does not apply to %s: %s; expected none%s",
                                rp_method_whose(&run->method, k, whose), why,
                                splits ? ", or stages that are not split" : "");
        }
    }
fail:
    return err;
}

/* Checks the run file with this schedule instead of the run's own. */
static rp_err check_schedule(rp_arena *arena, const rp_runfile *run, uint32_t index,
                             const rp_node *node) {
    rp_runfile other = *run;
    rp_err err;
    rp_runfile_take_schedule(&other, index);
    RP_TRY(rp_method_fit_model(&other.method, other.model, node));
    RP_TRY(check_staleness(&other, node));
    RP_TRY(read_recompute(arena, &other));
    RP_TRY(rp_runfile_check_micro(&other));
    RP_TRY(rp_runfile_check_share(&other));
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
        return rp_node_fail(plan, "schedules: the planner chooses the schedule together with the "
                                  "cut, for one ring; expected cut: auto, and no lanes");
    }
    for (uint32_t i = 1; i < run->schedules.count; i++) {
        RP_TRY(check_schedule(arena, run, i, node[i]));
    }
    run->schedule_auto = run->schedules.count > 1;
fail:
    return err;
}

/* Checks the top-level keys before any section is read, so that a mistyped `ring` is reported as an
 * unknown key, and not as a schedule that does not fit one board. */
static rp_err check_sections(rp_node *root) {
    static const char *const keys[] = {
        "model",    "data", "ring",      "train",   "loss",  "optimizer", "lr_schedule",
        "schedule", "cut",  "links",     "lanes",   "sites", "plan",      "checkpoint",
        "record",   "keys", "recompute", "offload", NULL};
    static const char *const needed[] = {"model", "data", "train", "optimizer", "schedule"};
    rp_err err;
    RP_TRY(rp_node_keys(root, keys));
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
        RP_TRY(rp_node_need(root, needed[i]));
    }
fail:
    return err;
}

rp_err rp_runfile_read(rp_arena *arena, const char *path, const char *const *set,
                       uint32_t set_count, rp_runfile *out) {
    *out = (rp_runfile){.seed = 1,
                        .guard = true,
                        .score.eval_epochs = 1,
                        .score.recalibrate = 32,
                        .score.non_finite_steps = 10,
                        .plan.seconds = 5};
    rp_err err;
    RP_TRY(find_file(arena, path, out));
    RP_TRY(rp_config_read_file(arena, out->path, &out->root));
    for (uint32_t i = 0; i < set_count; i++) {
        RP_TRY(rp_config_set(arena, out->root, set[i]));
    }
    RP_TRY(rp_paths_resolve(arena, out->root));
    RP_TRY(rp_paths_check(arena, out->root));
    rp_config_note_defaults(arena, out->root);
    RP_TRY(check_sections(out->root));
    RP_TRY(rp_runfile_read_train(arena, out->root, out));
    RP_TRY(rp_lanes_read(out->root, &out->lanes));
    RP_TRY(rp_federated_read(out->root, &out->federated));
    RP_TRY(rp_runfile_read_ring(arena, out->root, out));
    RP_TRY(rp_runfile_read_plan(out->root, out));
    RP_TRY(rp_node_string(out->root, "keys", &out->keys));
    RP_TRY(read_method(out->root, out));
    RP_TRY(read_codecs(arena, out));
    RP_TRY(read_sizes(arena, out));
    RP_TRY(check_chunks(out->root, out));
    RP_TRY(check_staleness(out, rp_node_find(out->root, "schedule")));
    RP_TRY(rp_runfile_read_checkpoint(out->root, out));
    RP_TRY(rp_runfile_read_record(out->root, out));
    RP_TRY(rp_node_default(out->root, "cut", "auto"));
    RP_TRY(rp_node_default(out->root, "recompute", "auto"));
    RP_TRY(rp_node_default(out->root, "offload", "auto"));
    RP_TRY(check_lanes(out));
    RP_TRY(read_model_and_data(arena, out->root, out));
    RP_TRY(check_federated(out));
    RP_TRY(take_share(out));
    out->inputs_auto = out->input_codec == RP_CODECS;
    RP_TRY(rp_codecs_choose_inputs(out->root, &out->data, &out->input_codec, &out->inputs_why));
    RP_TRY(rp_method_fit_model(&out->method, out->model, rp_node_find(out->root, "schedule")));
    RP_TRY(read_cut(arena, out->root, out));
    RP_TRY(read_recompute(arena, out));
    if (!out->cut_auto) {
        RP_TRY(rp_sizes_fit_cut(&out->sizes, out->root, out->model, &out->cut, out->micro));
    }
    RP_TRY(rp_runfile_check_micro(out));
    RP_TRY(rp_runfile_check_share(out));
    RP_TRY(rp_runfile_check_scores(out));
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
    run->schedule_index = index;
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
