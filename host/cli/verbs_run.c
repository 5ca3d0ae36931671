/* Verbs that read a run file. Each runs a controller step by step until it has ended. */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ask/inquiry.h"
#include "base/cache_home.h"
#include "base/folders.h"
#include "base/json_print.h"
#include "base/log.h"
#include "checkpoint/checkpoint.h"
#include "cli/cli.h"
#include "cli/evaluate_here.h"
#include "cli/federated_run.h"
#include "cli/signals.h"
#include "control/controller.h"
#include "data/check.h"
#include "folder/about_file.h"
#include "lanes/lane_pipe.h"
#include "lanes/lanes.h"
#include "planning/planfile.h"
#include "ring/local.h"
#include "run/form.h"
#include "run/remarks.h"
#include "run/runfile.h"
#include "runs/place.h"

enum { HOST_NAME_BYTES = 64 };

static rp_format format_of(const rp_cli_args *args) {
    return rp_cli_is_json(args) ? RP_FORMAT_JSON : RP_FORMAT_TEXT;
}

static rp_split split_of(const rp_cli_args *args) {
    return strcmp(args->model.split, "train") == 0        ? RP_SPLIT_TRAIN
           : strcmp(args->model.split, "validation") == 0 ? RP_SPLIT_VALIDATION
                                                          : RP_SPLIT_TEST;
}

/* Folder for profiles, next to the kernels in the account's cache; NULL: profiles are not kept. */
static const char *profiles_folder(void) {
    static char path[RP_FOLDERS_PATH_BYTES];
    const char *own = getenv("RINGPIPE_PROFILES");
    if (own) {
        return own[0] ? own : NULL;
    }
    const char *home = rp_cache_home();
    (void)snprintf(path, sizeof path, "%s/ringpipe/profiles", home);
    return home[0] ? path : NULL;
}

static rp_controller_options options_of(const rp_cli_args *args, rp_controller_purpose purpose) {
    return (rp_controller_options){
        .purpose = purpose,
        .run_path = args->words.item[0],
        .set = args->set.item,
        .set_count = args->set.count,
        .out = args->out,
        .resume = args->run.resume,
        .plan = args->run.plan,
        .profile = args->run.profile,
        .profiles = profiles_folder(),
        .weights = args->model.weights,
        .split = split_of(args),
        .keys_folder = args->keys,
        .program = args->program,
        .command = args->command,
        .format = format_of(args),
    };
}

/* ---- the loop -------------------------------------------------------------------------------- */

static void tell_signals(rp_controller *c, int signal_fd) {
    rp_cli_signals signals;
    rp_cli_read_signals(signal_fd, &signals);
    if (signals.child_ended) {
        rp_controller_child_ended(c);
    }
    if (signals.asked) {
        rp_controller_ask_to_stop(c);
    }
    while (signals.interrupts-- > 0) {
        rp_controller_interrupt(c);
    }
}

/* Steps the controller and waits for events until it has ended. */
static rp_err drive_controller(rp_controller *c, const rp_clock *clock, int signal_fd) {
    rp_err err = RP_OK;
    for (;;) {
        const int64_t deadline_ns = rp_controller_step(c, rp_clock_now_ns(clock));
        rp_wait_list list = {.fd = {signal_fd}, .fd_count = 1};
        if (rp_controller_has_ended(c)) {
            return RP_OK;
        }
        rp_controller_add_waits(c, &list);
        RP_TRY(rp_link_wait(list.link, list.link_count, list.fd, list.fd_count,
                            deadline_ns - rp_clock_now_ns(clock)));
        tell_signals(c, signal_fd);
    }
fail:
    return err;
}

/* Uses standard input and output as the connection to the process that averages the lanes. */
static rp_err become_lane(rp_lane_pipe *pipe, rp_controller_env *env) {
    env->lane = rp_lane_end_of(pipe);
    env->on_state = rp_lane_note_state;
    env->context = pipe;
    env->result = NULL;
    return rp_lane_open(pipe, STDIN_FILENO, STDOUT_FILENO);
}

static const rp_cause *find_cause(void *self, const rp_roster_entry *board,
                                  const rp_keypair *keys) {
    return rp_inquiry_look(self, board, keys);
}

static const char *machine_name(char out[HOST_NAME_BYTES]) {
    out[0] = out[HOST_NAME_BYTES - 1] = '\0';
    return gethostname(out, HOST_NAME_BYTES - 1) == 0 && out[0] ? out : NULL;
}

static rp_err run_controller(const rp_cli_args *args, const rp_controller_options *options) {
    static rp_local local; /* static, because it is too large for a stack */
    const rp_clock clock = rp_clock_real();
    rp_media *media = NULL;
    rp_arena arena;
    rp_arena_init(&arena, "media", 0);
    const rp_err shared = rp_media_share(&arena, &clock, &media);
    rp_lane_pipe pipe;
    char name[HOST_NAME_BYTES];
    rp_inquiry *inquiry = NULL;
    rp_controller_env env = {.clock = &clock,
                             .media = media,
                             .origin = machine_name(name),
                             .find_cause = find_cause,
                             .spawner = rp_local_spawner(&local, NULL, stderr),
                             .feeder = RP_FEEDER_THREAD,
                             .progress = args->quiet ? NULL : stderr,
                             .result = args->run.silent ? args->run.result : stdout};
    rp_controller *c = NULL;
    int signal_fd = -1;
    rp_err err;
    RP_TRY(shared);
    RP_TRY(rp_inquiry_open(&inquiry));
    env.find_self = inquiry;
    RP_TRY(args->run.lane ? become_lane(&pipe, &env) : RP_OK);
    RP_TRY(rp_cli_open_signals(&signal_fd));
    RP_TRY(rp_controller_open(&env, options, &c));
    err = drive_controller(c, &clock, signal_fd);
fail:
    if (c) {
        const rp_err result = rp_controller_close(&c);
        err = err == RP_OK ? result : err;
        if (args->run.lane) {
            rp_lane_note_end(&pipe, err);
        }
    }
    if (signal_fd >= 0) {
        (void)close(signal_fd);
    }
    rp_inquiry_close(&inquiry);
    rp_media_close(&media);
    rp_arena_finish(&arena);
    return err;
}

/* ---- lanes ----------------------------------------------------------------------------------- */

static rp_err drive_lanes(rp_lanes *lanes, const rp_clock *clock, int signal_fd) {
    rp_err err = RP_OK;
    bool asked = false;
    while (!rp_lanes_have_ended(lanes)) {
        const int64_t deadline_ns = rp_lanes_step(lanes, rp_clock_now_ns(clock));
        int fd[RP_LANES_MAX + 1];
        rp_cli_signals signals;
        if (rp_lanes_have_ended(lanes)) {
            return RP_OK;
        }
        const uint32_t count = rp_lanes_fds(lanes, fd);
        fd[count] = signal_fd;
        RP_TRY(rp_link_wait(NULL, 0, fd, count + 1, deadline_ns - rp_clock_now_ns(clock)));
        rp_cli_read_signals(signal_fd, &signals);
        const uint32_t first = signals.asked && !asked; /* SIGUSR1 counts once */
        asked = asked || signals.asked;
        for (uint32_t i = first + signals.interrupts; i > 0; i--) {
            rp_lanes_interrupt(lanes);
        }
    }
fail:
    return err;
}

static rp_err run_lanes(const rp_cli_args *args, bool resume) {
    const rp_clock clock = rp_clock_real();
    const rp_lanes_options options = {.run_path = args->words.item[0],
                                      .set = args->set.item,
                                      .set_count = args->set.count,
                                      .out = args->out,
                                      .resume = resume,
                                      .keys = args->keys,
                                      .program = args->program,
                                      .json = format_of(args) == RP_FORMAT_JSON,
                                      .progress = args->quiet ? NULL : stderr,
                                      .result = stdout};
    rp_lanes *lanes = NULL;
    int signal_fd = -1;
    rp_err err;
    if (args->run.plan || args->run.profile || args->run.resume) {
        return rp_fail(
            RP_ERR_USAGE,
            "lanes: --plan and --profile describe a single ring, so they exclude `lanes`; to "
            "continue a run with lanes use `ringpipe resume DIR`");
    }
    RP_TRY(rp_cli_open_signals(&signal_fd));
    RP_TRY(rp_lanes_open(&clock, &options, &lanes));
    err = drive_lanes(lanes, &clock, signal_fd);
fail:
    if (lanes) {
        const rp_err result = rp_lanes_close(&lanes);
        err = err == RP_OK ? result : err;
    }
    if (signal_fd >= 0) {
        (void)close(signal_fd);
    }
    return err;
}

/* ---- --dry-run ------------------------------------------------------------------------------- */

static void print_tokens(const rp_data *data) {
    (void)printf("tokens: %zu in a sample, ids below %u", rp_shape_count(&data->sample),
                 data->tokens);
    if (data->vocab) {
        (void)printf("; the training part has %" PRIu64 " %s and %.1f %% padding",
                     data->text_tokens,
                     data->vocab->bpe ? "parts of words" : rp_token_kinds[data->vocab->rules.kind],
                     100 * data->padding);
    }
    (void)printf("\n");
}

/* Tensors that several layers share, each with the names of these layers. */
static json_t *describe_tied(const rp_model *model) {
    json_t *list = json_array();
    for (uint32_t owner = 0; owner < model->param_count; owner++) {
        if (!model->param[owner].tied || model->param[owner].owner != owner) {
            continue;
        }
        json_t *layers = json_array();
        for (uint32_t p = owner; p < model->param_count; p++) {
            if (model->param[p].owner == owner) {
                (void)json_array_append_new(layers,
                                            json_string(model->layer[model->param[p].layer].name));
            }
        }
        (void)json_array_append_new(
            list, json_pack("{s:s, s:o}", "tensor", model->param[owner].name, "layers", layers));
    }
    return list;
}

/* One line for each of them. */
static void print_tied(const rp_model *model) {
    json_t *list = describe_tied(model);
    size_t i;
    const json_t *tied;
    json_array_foreach(list, i, tied) {
        const json_t *layers = json_object_get(tied, "layers");
        size_t k;
        const json_t *layer;
        (void)printf("tied: %s (", json_string_value(json_object_get(tied, "tensor")));
        json_array_foreach(layers, k, layer) {
            (void)printf("%s%s", k > 0 ? ", " : "", json_string_value(layer));
        }
        (void)printf(")\n");
    }
    json_decref(list);
}

static void print_checked(const rp_runfile *run) {
    const rp_data *data = &run->data;
    const size_t parameters = rp_model_tensor_count(run->model, RP_PARAM_TRAINED);
    (void)printf("checked: %s, %zu parameters, schedule %s on %u stage%s", run->model_name,
                 parameters, run->method.kind->name, run->stages, run->stages == 1 ? "" : "s");
    if (run->federated.given) {
        (void)printf("\n");
    } else {
        (void)printf(", %" PRIu64 " steps over %u samples\n", run->steps,
                     data->count[RP_SPLIT_TRAIN]);
    }
    (void)printf("data: %u training, %u validation, %u test samples, all of them read\n",
                 data->count[RP_SPLIT_TRAIN], data->count[RP_SPLIT_VALIDATION],
                 data->count[RP_SPLIT_TEST]);
    if (data->type == RP_I32) {
        print_tokens(data);
    }
    print_tied(run->model);
    if (data->test_path) {
        const bool key = strncmp(data->test_path, "data.", 5) == 0;
        (void)printf("no test part: %s %s, so the run ends without a test result\n",
                     data->test_path, key ? "is not given" : "does not exist");
    }
    for (uint32_t i = 0; i < data->notes.count; i++) {
        (void)printf("note: %s\n", data->notes.text[i]);
    }
}

static json_t *describe_tokens(const rp_data *data) {
    json_t *object = json_pack("{s:I, s:I}", "ids", (json_int_t)data->tokens, "sample",
                               (json_int_t)rp_shape_count(&data->sample));
    if (data->vocab) {
        (void)json_object_set_new(object, "kind",
                                  json_string(rp_token_kinds[data->vocab->rules.kind]));
        (void)json_object_set_new(object, "training", json_integer((json_int_t)data->text_tokens));
        (void)json_object_set_new(object, "padding", json_real(data->padding));
    }
    return object;
}

static rp_err print_checked_json(const rp_runfile *run, const rp_federation_cost *cost,
                                 const rp_round_forecast *forecast) {
    const rp_data *data = &run->data;
    json_t *notes = json_array();
    for (uint32_t i = 0; i < data->notes.count; i++) {
        if (json_array_append_new(notes, json_string(data->notes.text[i])) != 0) {
            json_decref(notes);
            notes = NULL; /* json_pack() fails then */
        }
    }
    json_t *object = json_pack(
        "{s:i, s:s, s:s, s:I, s:s, s:i, s:I, s:I, s:I, s:I, s:o, s:o}", "version", 1, "status",
        "checked", "model", run->model_name, "parameters",
        (json_int_t)rp_model_tensor_count(run->model, RP_PARAM_TRAINED), "schedule",
        run->method.kind->name, "stages", (int)run->stages, "steps", (json_int_t)run->steps,
        "samples", (json_int_t)data->count[RP_SPLIT_TRAIN], "validation_samples",
        (json_int_t)data->count[RP_SPLIT_VALIDATION], "test_samples",
        (json_int_t)data->count[RP_SPLIT_TEST], "notes", notes, "tied", describe_tied(run->model));
    if (data->type == RP_I32) {
        (void)json_object_set_new(object, "tokens", describe_tokens(data));
    }
    if (run->federated.given) {
        (void)json_object_set_new(object, "round", rp_cli_describe_cost(cost, forecast));
    }
    return rp_json_print(object, 0, stdout);
}

/* Checks the stages of a given plan, or of a cut that the run file states. */
static rp_err check_stages(rp_arena *arena, const rp_controller_options *options, rp_runfile *run) {
    rp_plan *plan;
    rp_err err;
    if (options->plan) {
        RP_TRY(rp_planfile_read(arena, options->plan, run, "opencl", &plan));
        run->stages = plan->stage_count; /* boards may share a stage */
        return RP_OK;
    }
    RP_TRY(rp_runfile_check_cut(run));
    RP_TRY(run->cut_auto ? RP_OK : rp_planfile_check_ties(run, &run->method, &run->cut));
fail:
    return err;
}

static rp_err print_check(rp_arena *arena, const rp_controller_options *options,
                          const rp_runfile *run) {
    const rp_round_costs costs = {.profile = options->profile};
    rp_round_forecast forecast = {.site = ""};
    rp_federation_cost cost = {0};
    rp_err err = RP_OK;
    if (run->federated.given) {
        RP_TRY(rp_federated_check_real(&run->federated, run->root));
        RP_TRY(rp_federation_find_cost(arena, run, &cost));
        RP_TRY(rp_round_predict(arena, run, &cost, &costs, &forecast));
    }
    if (options->format == RP_FORMAT_JSON) {
        return print_checked_json(run, &cost, &forecast);
    }
    print_checked(run);
    if (run->federated.given) {
        rp_cli_print_cost(run, &cost, &forecast);
    }
fail:
    return err;
}

static rp_err check_run(const rp_controller_options *options) {
    rp_arena arena;
    rp_runfile runfile = {0};
    rp_arena_init(&arena, "run", 0);
    rp_err err =
        rp_runfile_read(&arena, options->run_path, options->set, options->set_count, &runfile);
    if (err == RP_OK && !runfile.local) {
        rp_keypair keys;
        err = rp_runfile_read_keys(&runfile, options->keys_folder, &keys);
        explicit_bzero(&keys, sizeof keys);
    }
    if (err == RP_OK && options->out) {
        err = rp_run_place_check(&arena, options->out);
    }
    if (err == RP_OK) {
        err = rp_freeze_check(options->run_path, runfile.model);
    }
    if (err == RP_OK) {
        err = rp_runfile_check_values(&runfile);
    }
    if (err == RP_OK && runfile.init) {
        err = rp_checkpoint_check_start(&runfile);
    }
    err = err == RP_OK ? check_stages(&arena, options, &runfile) : err;
    if (err == RP_OK) {
        err = rp_data_check(&runfile.data);
    }
    if (err == RP_OK) { /* after the notes on the data */
        err = rp_runfile_note(&arena, &runfile, &runfile.data.notes);
    }
    err = err == RP_OK ? print_check(&arena, options, &runfile) : err;
    rp_runfile_close(&runfile);
    rp_arena_finish(&arena);
    return err;
}

/* ---- the verbs ------------------------------------------------------------------------------- */

/* After a run ended at a damaged sample: lists every damaged sample, so that the user can repair
 * all of them at once. In a lane the parent does it. Returns `err`. */
static rp_err list_damaged(rp_err err, const rp_cli_args *args, const char *run_path) {
    rp_arena arena;
    rp_runfile run = {0};
    if (err != RP_ERR_DATA || args->run.lane) {
        return err;
    }
    rp_cli_let_signals_end();
    rp_log_info("reading the whole data set to list all damaged samples");
    rp_arena_init(&arena, "run", 0);
    if (rp_runfile_read(&arena, run_path, args->set.item, args->set.count, &run) == RP_OK) {
        (void)!rp_data_check(&run.data);
    }
    rp_runfile_close(&run);
    rp_arena_finish(&arena);
    return err;
}

rp_err rp_verb_train(rp_arena *arena, const rp_cli_args *args) {
    (void)arena;
    const rp_controller_options options = options_of(args, RP_PURPOSE_TRAIN);
    if (args->dry_run) {
        return check_run(&options);
    }
    rp_run_form form;
    rp_err err;
    RP_TRY(rp_run_find_form(args->words.item[0], args->set.item, args->set.count, &form));
    if (form == RP_FORM_SITES) {
        return rp_cli_run_sites(args, false);
    }
    RP_TRY(list_damaged(form == RP_FORM_LANES ? run_lanes(args, false)
                                              : run_controller(args, &options),
                        args, options.resume ? options.resume : args->words.item[0]));
fail:
    return err;
}

/* Uses the run's own plan if the user gave one; otherwise a new plan is made. */
rp_err rp_verb_resume(rp_arena *arena, const rp_cli_args *args) {
    rp_controller_options options = options_of(args, RP_PURPOSE_TRAIN);
    char *plan = NULL;
    rp_run_form form;
    rp_err err;
    RP_TRY(rp_run_find_form(args->words.item[0], args->set.item, args->set.count, &form));
    if (form == RP_FORM_SITES) {
        return rp_cli_run_sites(args, true);
    }
    if (form == RP_FORM_LANES) {
        return list_damaged(run_lanes(args, true), args, args->words.item[0]);
    }
    options.resume = args->words.item[0];
    if (rp_about_plan_is(options.resume, "given")) {
        RP_TRY(rp_arena_printf(arena, &plan, "%s/plan.json", options.resume));
        options.plan = plan;
    }
    RP_TRY(list_damaged(run_controller(args, &options), args, options.resume));
fail:
    return err;
}

/* With `sites` the plan is that of the run's ring, and is followed by the time of a round. */
static rp_err plan_sites(const rp_cli_args *given, rp_controller_options *options) {
    const bool json = options->format == RP_FORMAT_JSON;
    rp_cli_args args = *given;
    FILE *plan = json ? tmpfile() : NULL;
    double step_s = 0;
    rp_err err;
    if (json && !plan) {
        return rp_fail(RP_ERR_IO, "no temporary file for the plan: %s", strerror(errno));
    }
    options->step_s = &step_s;
    args.run.silent = json;
    args.run.result = plan;
    RP_TRY(run_controller(&args, options));
    err = rp_cli_print_round(&args, step_s, plan);
fail:
    if (plan) {
        (void)fclose(plan);
    }
    return err;
}

rp_err rp_verb_plan(rp_arena *arena, const rp_cli_args *args) {
    rp_controller_options options = options_of(args, RP_PURPOSE_PLAN);
    rp_run_form form;
    rp_err err;
    (void)arena;
    RP_TRY(rp_run_find_form(args->words.item[0], args->set.item, args->set.count, &form));
    err = form == RP_FORM_SITES ? plan_sites(args, &options) : run_controller(args, &options);
fail:
    return err;
}

rp_err rp_verb_profile(rp_arena *arena, const rp_cli_args *args) {
    (void)arena;
    const rp_controller_options options = options_of(args, RP_PURPOSE_PROFILE);
    return run_controller(args, &options);
}

rp_err rp_cli_run_warm(const rp_cli_args *args, const char *run_path, uint32_t within_s) {
    rp_controller_options options = options_of(args, RP_PURPOSE_WARM);
    options.run_path = run_path;
    options.within_s = within_s;
    return run_controller(args, &options);
}

static rp_err find_weights(rp_arena *arena, const char *folder, const char **out) {
    char *weights;
    rp_err err;
    RP_TRY(rp_arena_printf(arena, &weights, "%s/weights.safetensors", folder));
    if (access(weights, F_OK) != 0 && errno == ENOENT) {
        return rp_fail(RP_ERR_USAGE,
                       "%s: missing: the run in this folder has not finished; continue it with "
                       "`ringpipe resume %s`",
                       weights, folder);
    }
    *out = weights;
fail:
    return err;
}

/* A run folder contains its weights, and is evaluated without a ring. */
rp_err rp_verb_eval(rp_arena *arena, const rp_cli_args *args) {
    rp_controller_options options = options_of(args, RP_PURPOSE_EVALUATE);
    struct stat facts;
    const bool is_folder = stat(args->words.item[0], &facts) == 0 && S_ISDIR(facts.st_mode);
    rp_err err = RP_OK;
    if (!is_folder && access(args->words.item[0], F_OK) != 0) {
        return rp_fail(RP_ERR_USAGE, "%s: the run file or run folder does not exist",
                       args->words.item[0]);
    }
    if (!options.weights && !is_folder) {
        return rp_fail(RP_ERR_USAGE, "eval needs --weights FILE.safetensors with a run file; or "
                                     "give a run folder instead");
    }
    if (args->model.beam > 0 && !args->model.bleu) {
        return rp_fail(RP_ERR_USAGE, "eval: --beam applies only with --bleu");
    }
    RP_TRY(options.weights ? RP_OK : find_weights(arena, args->words.item[0], &options.weights));
    RP_TRY(is_folder || args->model.confusion || args->model.bleu
               ? rp_cli_evaluate_here(arena, args, options.split, options.weights)
               : run_controller(args, &options));
fail:
    return err;
}
