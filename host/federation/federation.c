#include "federation/federation_own.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/printable.h"
#include "base/replace.h"
#include "base/shell.h"
#include "data/describe.h"
#include "federation/sample.h"
#include "federation/site_files.h"
#include "lanes/average.h"
#include "run/paths.h"
#include "run/patterns.h"
#include "run/remarks.h"
#include "sites/update.h"

static const int64_t LOOK_NS = RP_NS_PER_S;

/* ---- the run file ---------------------------------------------------------------------------- */

static rp_err check_size(const rp_runfile *run, uint32_t sites, uint32_t size) {
    const rp_federated_keys *keys = &run->federated;
    const rp_node *at = rp_node_at(run->root, "sites");
    if (keys->count > sites) {
        return rp_node_fail(at, "count: %s has %u sites: expected at most as many", keys->split,
                            sites);
    }
    if (size > RP_FEDERATED_MEMBERS_MAX) {
        return rp_node_fail(at,
                            "%u sites take part in a round: expected at most %d; use `share` "
                            "or `count`",
                            size, RP_FEDERATED_MEMBERS_MAX);
    }
    if (keys->options.drift && size < sites) {
        return rp_node_fail(rp_node_at(run->root, "sites.drift"),
                            "%u of %u sites take part in a round, and a site that leaves one out "
                            "loses its drift: expected neither `count` nor `share`",
                            size, sites);
    }
    if (keys->least > size) {
        return rp_node_fail(at,
                            "take.least: %u sites take part in a round: expected at most as "
                            "many",
                            size);
    }
    return rp_rule_alpha(&keys->rule, size) * size <= 1 + 1e-9 || keys->rule.kind != RP_RULE_ELASTIC
               ? RP_OK
               : rp_node_fail(at,
                              "rule.alpha: %g for each of %u sites adds up to more than 1, so the "
                              "centre would move past their mean; expected at most %g",
                              keys->rule.alpha, size, 1.0 / size);
}

/* The split file is one of this data set. */
static rp_err check_split(const rp_runfile *run, const rp_split_list *list) {
    char digest[RP_SPLIT_DIGEST];
    rp_err err;
    RP_TRY(rp_data_split_digest(&run->data, digest));
    return strcmp(list->set, run->data.kind->name) == 0 && strcmp(list->digest, digest) == 0 &&
                   list->samples == run->data.count[RP_SPLIT_TRAIN]
               ? RP_OK
               : rp_node_fail(rp_node_at(run->root, "sites.split"),
                              "%s divides %u samples of set '%s' with digest %s, but this set is "
                              "'%s' with %u samples and digest %s: divide it with `ringpipe data "
                              "split`",
                              run->federated.split, list->samples, list->set, list->digest,
                              run->data.kind->name, run->data.count[RP_SPLIT_TRAIN], digest);
fail:
    return err;
}

static rp_err read_trace(rp_arena *arena, const rp_federated_keys *keys, const rp_split_list *list,
                         rp_trace_site **out) {
    const char **name;
    rp_err err;
    *out = NULL;
    if (!keys->trace) {
        return RP_OK;
    }
    RP_TRY(RP_ARENA_NEW(arena, (size_t)list->sites + 1, &name));
    for (uint32_t i = 0; i < list->sites; i++) {
        name[i] = list->site[i].name;
    }
    err = rp_trace_read(arena, keys->trace, name, list->sites, out);
fail:
    return err;
}

static void find_bytes(const rp_runfile *run, rp_federation_cost *out) {
    const rp_site_options *options = &run->federated.options;
    const char *pattern[RP_SITE_PATTERNS_MAX];
    const rp_round_rules whole = {0};
    const rp_round_rules rules = {
        .keep = pattern, .keep_count = rp_patterns_count(options->keep), .delta = options->delta};
    for (uint32_t i = 0; i < rules.keep_count; i++) {
        pattern[i] = rp_node_text(rp_patterns_at(options->keep, i));
    }
    out->weights_bytes = rp_update_bytes(&whole, run->model);
    out->update_bytes = rp_update_bytes(&rules, run->model);
}

rp_err rp_federation_find_cost(rp_arena *arena, const rp_runfile *run, rp_federation_cost *out) {
    rp_split_list list;
    rp_trace_site *trace;
    rp_err err;
    RP_TRY(rp_split_file_read(arena, run->federated.split, &list));
    RP_TRY(check_split(run, &list));
    RP_TRY(read_trace(arena, &run->federated, &list, &trace));
    out->sites = list.sites;
    out->members = rp_sample_size(&run->federated, list.sites);
    find_bytes(run, out);
    RP_TRY(check_size(run, out->sites, out->members));
    err = rp_site_files_check(run, &list);
fail:
    return err;
}

static rp_err list_sites(rp_federation *f) {
    rp_split_list list;
    rp_err err;
    RP_TRY(rp_split_file_read(&f->arena, f->keys.split, &list));
    RP_TRY(rp_sites_digest_file(f->keys.split, f->split_digest));
    RP_TRY(RP_ARENA_NEW(&f->arena, (size_t)list.sites + 1, &f->site));
    RP_TRY(RP_ARENA_NEW(&f->arena, (size_t)list.sites + 1, &f->list));
    for (uint32_t i = 0; i < list.sites; i++) {
        f->site[i] = (rp_site){
            .name = list.site[i].name, .index = i, .loss = (double)NAN, .accuracy = (double)NAN};
    }
    f->sites = list.sites;
    err = read_trace(&f->arena, &f->keys, &list, &f->trace);
fail:
    return err;
}

static rp_err take_keys(rp_federation *f, const rp_runfile *run) {
    rp_federation_cost cost;
    char *text;
    rp_err err;
    f->keys = run->federated;
    RP_TRY(rp_federation_list_keep(f));
    f->model = run->model;
    f->seed = run->seed;
    f->stages = run->stages;
    f->eval_rounds = run->score.eval_epochs;
    f->has_test = run->data.count[RP_SPLIT_TEST] > 0;
    f->finite = run->score.non_finite_steps > 0;
    RP_TRY(rp_arena_string(&f->arena, run->model_name, &text));
    f->model_name = text;
    f->schedule = run->method.kind->name;
    RP_TRY(rp_federation_find_cost(&f->arena, run, &cost));
    f->size = cost.members;
    f->weights_bytes = cost.weights_bytes;
    RP_TRY(list_sites(f));
fail:
    return err;
}

/* A resume with other settings begins the open round again, because part of it was trained with the
 * former ones. run.yaml is the last file that has the settings, so a kill before it changes
 * nothing. */
static rp_err write_files(rp_federation *f, rp_runfile *run) {
    char *data;
    rp_err err;
    RP_TRY(rp_arena_printf(&f->arena, &data, "%s/data.json", f->folder));
    RP_TRY(f->options.resume ? rp_data_check_vocab(&run->data, data) : RP_OK);
    RP_TRY(rp_paths_make_absolute(&f->arena, run->root));
    RP_TRY(rp_config_replace(run->model_root, f->model_yaml));
    RP_TRY(rp_data_describe(&run->data, data));
    RP_TRY(f->options.set_count > 0 ? rp_federation_remove_round(f, f->round + 1) : RP_OK);
    RP_TRY(rp_config_replace(run->root, f->next_run));
    RP_TRY(rp_federation_write_sites(f));
    if (rename(f->next_run, f->run_yaml) != 0) {
        return rp_fail(RP_ERR_IO, "%s: %s", f->run_yaml, strerror(errno));
    }
    RP_TRY(rp_replace_sync_folder(f->run_yaml));
    RP_TRY(f->round == 0 && access(f->center, F_OK) != 0
               ? f->engine.kind->begin_center(f->engine.context, run, f->center)
               : RP_OK);
    err = rp_federation_write_journal(f);
fail:
    return err;
}

static rp_err take_run(rp_federation *f, rp_runfile *run) {
    const bool is_real = f->options.engine.kind == NULL;
    rp_err err;
    RP_TRY(is_real ? rp_federated_check_real(&run->federated, run->root) : RP_OK);
    RP_TRY(rp_runfile_check_cut(run));
    RP_TRY(rp_runfile_check_values(run));
    RP_TRY(take_keys(f, run));
    RP_TRY(rp_federation_take_folder(f));
    RP_TRY(rp_federation_read_journal(f));
    err = write_files(f, run);
fail:
    return err;
}

/* ---- opening --------------------------------------------------------------------------------- */

static bool is_finished(const rp_federation *f) {
    return f->round >= f->keys.rounds && access(f->summary, F_OK) == 0 &&
           access(f->weights, F_OK) == 0;
}

/* Removes what a kill after the last round's journal has left. */
static void finish_round(rp_federation *f) {
    rp_federation_mend_log(f);
    for (uint32_t i = 0; i < f->sites && f->round > 0; i++) {
        rp_federation_remove_weights(f, f->round, &f->site[i]);
    }
}

static rp_err begin_run(rp_federation *f) {
    f->start_ns = f->now_ns = rp_clock_now_ns(f->clock);
    finish_round(f);
    if (is_finished(f)) {
        f->phase = RP_FEDERATION_ENDED;
        rp_print(f->options.progress, "%s: the run is finished; nothing is left to do\n",
                 f->folder);
        return RP_OK;
    }
    (void)unlink(f->summary); /* from an earlier start */
    const bool due = rp_federation_is_to_be_scored(f) && f->scored != f->round;
    f->phase = due || f->round >= f->keys.rounds ? RP_FEDERATION_EVALUATE : RP_FEDERATION_WORK;
    const rp_err err = rp_federation_begin_now(f);
    return err == RP_OK && f->options.resume
               ? rp_federation_log_event(
                     f, &(rp_run_event){.kind = RP_EVENT_LANES_RESUMED, .round = f->round})
               : err;
}

rp_err rp_federation_open(const rp_clock *clock, const rp_federation_options *options,
                          rp_federation **out) {
    rp_arena arena;
    rp_federation *f = NULL;
    rp_runfile run = {0};
    rp_err err;
    rp_arena_init(&arena, "federation", 0);
    err = RP_ARENA_NEW(&arena, 1, &f);
    if (err != RP_OK) {
        rp_arena_finish(&arena);
        return err;
    }
    *f = (rp_federation){
        .clock = clock, .options = *options, .arena = arena, .folder_fd = -1, .loss = (double)NAN};
    f->engine = options->engine.kind ? options->engine : rp_site_processes();
    f->start_ns = f->now_ns = rp_clock_now_ns(clock);
    RP_TRY(rp_runfile_read(&f->arena, options->run_path, options->set, options->set_count, &run));
    RP_TRY(take_run(f, &run));
    RP_TRY(begin_run(f));
fail:
    rp_runfile_close(&run);
    if (err != RP_OK) {
        (void)rp_federation_close(&f);
        return err;
    }
    *out = f;
    return RP_OK;
}

rp_err rp_federation_close(rp_federation **taken) {
    rp_federation *f = *taken;
    *taken = NULL;
    const rp_err result = f->phase == RP_FEDERATION_ENDED ? f->result : RP_ERR_INTERRUPTED;
    for (uint32_t i = 0; i < f->sites; i++) {
        f->engine.kind->kill(f->engine.context, &f->site[i].child);
    }
    f->engine.kind->kill(f->engine.context, &f->scorer);
    rp_federation_leave_folder(f);
    json_decref(f->rows);
    json_decref(f->score);
    rp_arena arena = f->arena; /* a copy, because the arena contains `f` */
    rp_arena_finish(&arena);
    return result;
}

/* ---- evaluation ------------------------------------------------------------------------------ */

static rp_err start_scorer(rp_federation *f) {
    const rp_score_order order = {.folder = f->folder,
                                  .weights = f->center,
                                  .keys = f->options.keys,
                                  .scores = f->scores,
                                  .log = f->eval_log};
    return f->engine.kind->start_score(f->engine.context, &f->scorer, &order);
}

static rp_err take_score(rp_federation *f) {
    rp_err err;
    json_t *root = json_load_file(f->scores, 0, NULL);
    json_decref(f->score);
    f->score = json_incref(json_object_get(root, "eval"));
    json_decref(root);
    f->scored = f->round;
    if (f->score) {
        rp_federation_log_score(f);
    }
    (void)unlink(f->scores);
    RP_TRY(rp_federation_write_journal(f));
    err = rp_federation_enter(f, RP_FEDERATION_AT_SCORED);
fail:
    return err;
}

/* ---- the end --------------------------------------------------------------------------------- */

static const char *status_of(rp_err err) {
    return err == RP_OK ? "finished" : err == RP_ERR_INTERRUPTED ? "interrupted" : "failed";
}

static rp_err finish_run(rp_federation *f) {
    const char *program = f->options.program ? f->options.program : "ringpipe";
    const char *word = f->folder;
    const rp_err err = rp_federation_summarise(f, status_of(f->result));
    f->phase = RP_FEDERATION_ENDED;
    rp_federation_end_now(f);
    if (f->result != RP_OK && rp_shell_word(&f->arena, f->folder, &word) == RP_OK) {
        rp_print(f->options.progress, "%s\ngo on with: %s resume %s\n", f->note, program, word);
    }
    return err;
}

/* The run's result is the centre after the last round. */
static rp_err end_run(rp_federation *f) {
    rp_err err;
    RP_TRY(rp_average_export(f->center, f->weights));
    RP_TRY(rp_federation_enter(f, RP_FEDERATION_AT_EXPORTED));
    if (!f->has_test && f->finite && !isfinite(f->loss)) {
        f->result = RP_ERR_FAULT; /* only the loss tells how good the centre is */
        (void)snprintf(f->note, sizeof f->note,
                       "the result is of no use: the loss of the last round is not finite");
    }
    err = finish_run(f);
fail:
    return err;
}

static rp_err step_evaluation(rp_federation *f) {
    int code = 0;
    rp_err err;
    const bool needed = f->has_test && f->scored != f->round;
    if (needed && f->scorer.pid == 0) {
        return start_scorer(f);
    }
    if (needed) {
        f->engine.kind->press(f->engine.context, &f->scorer, f->now_ns);
        if (!f->engine.kind->reap(f->engine.context, &f->scorer, &code)) {
            return RP_OK;
        }
        if (code != 0) {
            return rp_federation_stop(f, f->interrupts > 0 ? RP_ERR_INTERRUPTED : RP_ERR_FAULT,
                                      "the centre could not be evaluated (exit %d); see %.300s",
                                      code, f->eval_log);
        }
        RP_TRY(take_score(f));
    }
    if (f->round >= f->keys.rounds) {
        return end_run(f);
    }
    f->phase = RP_FEDERATION_WORK;
    return RP_OK;
fail:
    return err;
}

/* ---- steps ----------------------------------------------------------------------------------- */

static bool is_quiet(const rp_federation *f) {
    bool quiet = f->scorer.pid == 0;
    for (uint32_t i = 0; i < f->sites; i++) {
        quiet = quiet && f->site[i].child.pid == 0;
    }
    return quiet;
}

static rp_err watch_children(rp_federation *f) {
    int code;
    rp_err err = RP_OK;
    for (uint32_t i = 0; i < f->sites; i++) {
        rp_site *site = &f->site[i];
        f->engine.kind->press(f->engine.context, &site->child, f->now_ns);
        if (f->engine.kind->reap(f->engine.context, &site->child, &site->exit_code)) {
            RP_TRY(rp_federation_note_ended(f, site));
        }
    }
    if (f->phase == RP_FEDERATION_STOP) {
        f->engine.kind->press(f->engine.context, &f->scorer, f->now_ns);
        (void)f->engine.kind->reap(f->engine.context, &f->scorer, &code);
    }
fail:
    return err;
}

static rp_err step_phase(rp_federation *f) {
    switch (f->phase) {
    case RP_FEDERATION_WORK:
        return rp_federation_step_round(f);
    case RP_FEDERATION_EVALUATE:
        return step_evaluation(f);
    case RP_FEDERATION_STOP:
        return is_quiet(f) ? finish_run(f) : RP_OK;
    default:
        return RP_OK;
    }
}

int64_t rp_federation_step(rp_federation *f, int64_t now_ns) {
    rp_err err = RP_OK;
    f->now_ns = now_ns;
    if (f->phase != RP_FEDERATION_ENDED) {
        err = watch_children(f);
        err = err == RP_OK ? step_phase(f) : err;
    }
    if (err != RP_OK && f->phase < RP_FEDERATION_STOP) { /* an error with its own files */
        (void)!rp_federation_stop(f, err, "%s", rp_err_message());
    } else if (err != RP_OK) {
        f->result = err;
        f->phase = RP_FEDERATION_ENDED;
    }
    if (f->phase != RP_FEDERATION_ENDED) {
        rp_federation_write_now(f);
    }
    const int64_t due_ns = rp_federation_due_ns(f);
    return due_ns < now_ns + LOOK_NS ? due_ns : now_ns + LOOK_NS;
}

bool rp_federation_has_ended(const rp_federation *f) {
    return f->phase == RP_FEDERATION_ENDED;
}

void rp_federation_interrupt(rp_federation *f) {
    f->interrupts++;
    if (f->phase == RP_FEDERATION_WORK || f->phase == RP_FEDERATION_EVALUATE) {
        (void)!rp_federation_stop(f, RP_ERR_INTERRUPTED, "interrupted after round %" PRIu64,
                                  f->round);
    } else if (f->phase == RP_FEDERATION_STOP) {
        for (uint32_t i = 0; i < f->sites; i++) {
            f->engine.kind->tell(f->engine.context, &f->site[i].child, f->now_ns);
        }
        f->engine.kind->tell(f->engine.context, &f->scorer, f->now_ns);
    }
}
