/* round: one site's step of federated training. An ordinary run in DIR/run trains from the given
 * weights; its result leaves in their form, and round.json says that the round is done. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "base/folders.h"
#include "base/replace.h"
#include "base/rng.h"
#include "checkpoint/checkpoint.h"
#include "cli/site_round.h"
#include "run/runfile.h"
#include "sites/answer.h"
#include "sites/state.h"

enum { SETS_OF_ROUND = 5, PATH_BYTES = 4096 };

/* ---- what is asked --------------------------------------------------------------------------- */

static const char *split_key(const rp_site_round *r, const char *key) {
    const rp_node *node = rp_node_at(r->run.root, key);
    return node && rp_node_is_scalar(node) ? rp_node_text(node) : NULL;
}

static rp_err check_run(const rp_site_round *r) {
    const rp_node *validation = rp_node_at(r->run.root, "data.validation");
    const rp_node *lanes = rp_node_at(r->run.root, "lanes");
    if (validation && r->run.data.count[RP_SPLIT_VALIDATION] > 0) {
        return rp_node_fail(validation,
                            "each round would hold out other samples, so that all would be "
                            "trained: list the part in the split file instead");
    }
    return lanes && rp_node_is_map(lanes)
               ? rp_node_fail(lanes, "a round trains in one ring: remove this key")
               : RP_OK;
}

static bool keeps_optimizer(const rp_cli_round *args) {
    return args->optimizer && strcmp(args->optimizer, "keep") == 0;
}

/* Refuses rules that need a folder, or that do not go together. */
static rp_err check_rules(const rp_site_round *r) {
    const rp_cli_round *args = &r->args->round;
    const char *needs = args->drift             ? "--drift"
                        : args->keep.count > 0  ? "--keep"
                        : keeps_optimizer(args) ? "--optimizer keep"
                        : args->delta           ? "--delta"
                                                : NULL;
    if (needs && !args->state) {
        return rp_fail(RP_ERR_USAGE,
                       "round: %s needs --state DIR, the folder of what the site keeps from one "
                       "round to the next",
                       needs);
    }
    if (args->drift && args->clip > 0) {
        return rp_fail(RP_ERR_USAGE, "round: --drift and --clip exclude each other: a drift is "
                                     "computed from the whole difference that the site sent");
    }
    if (args->delta && (args->drift || args->clip > 0)) {
        return rp_fail(RP_ERR_USAGE, "round: --delta excludes --drift and --clip: what is sent is "
                                     "neither the difference of this round nor within its length");
    }
    if (r->run.anchor.drift && !args->drift) {
        return rp_fail(RP_ERR_USAGE, "round: train.anchor.drift: expected --drift instead, which "
                                     "gives the drift's values");
    }
    return RP_OK;
}

static rp_err read_rules(rp_site_round *r) {
    const rp_cli_round *args = &r->args->round;
    rp_round_rules *rules = &r->asked.rules;
    rp_err err;
    RP_TRY(check_rules(r));
    rules->keep = args->keep.item;
    rules->keep_count = args->keep.count;
    rules->anchor = args->anchor > 0 ? args->anchor : r->run.anchor.mu;
    rules->drift = args->drift;
    rules->keeps_optimizer = keeps_optimizer(args);
    rules->clip = args->clip;
    if (args->delta && !rp_delta_parse(args->delta, &rules->delta)) {
        return rp_fail(RP_ERR_USAGE,
                       "round: --delta: '%.40s': expected int8 or topk:SHARE, as in topk:0.01",
                       args->delta);
    }
    r->run.optim.anchor = (rp_optim_anchor){.mu = rules->anchor, .drift = rules->drift};
    RP_TRY(rp_optim_check_anchor(&r->run.optim, rp_node_find(r->run.root, "optimizer")));
    RP_TRY(rp_method_fit(&r->run.method, &r->run.optim, rp_node_find(r->run.root, "optimizer")));
fail:
    return err;
}

static rp_err digest_run(rp_site_round *r) {
    const char *file = split_key(r, "data.site.split");
    char *text;
    rp_err err;
    RP_TRY(rp_config_text(r->arena, r->run.root, &text));
    rp_sites_digest_text(text, r->asked.run);
    RP_TRY(rp_sites_digest_file(r->args->round.in, r->asked.in));
    if (file) {
        RP_TRY(rp_sites_digest_file(file, r->asked.split));
    }
fail:
    return err;
}

static rp_err read_asked(rp_site_round *r) {
    const rp_cli_args *args = r->args;
    const char *site;
    rp_err err;
    if (args->round.steps > 0 && args->round.epochs > 0) {
        return rp_fail(RP_ERR_USAGE, "round: --steps and --epochs exclude each other");
    }
    RP_TRY(
        rp_runfile_read(r->arena, args->words.item[0], args->set.item, args->set.count, &r->run));
    RP_TRY(check_run(r));
    RP_TRY(read_rules(r));
    site = split_key(r, "data.site.name");
    r->asked.round = args->round.number;
    r->asked.site = site ? site : "site";
    r->asked.steps = args->round.steps;
    r->asked.epochs = args->round.steps > 0 ? 0 : args->round.epochs > 0 ? args->round.epochs : 1;
    RP_TRY(digest_run(r));
fail:
    return err;
}

/* Locks a folder until the process ends. `what`: what it is, for the message. */
static rp_err lock_folder(const char *folder, const char *what, int *lock) {
    rp_err err;
    RP_TRY(rp_folders_make(folder, 0777));
    *lock = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*lock < 0) {
        return rp_fail(RP_ERR_IO, "%s: %s", folder, strerror(errno));
    }
    if (flock(*lock, LOCK_EX | LOCK_NB) != 0) {
        return errno == EWOULDBLOCK
                   ? rp_fail(RP_ERR_AGAIN, "%s: the %s is busy with another process", folder, what)
                   : rp_fail(RP_ERR_IO, "%s: %s", folder, strerror(errno));
    }
fail:
    return err;
}

/* Sites of one run file may train at the same time, a site only one round at a time. */
static rp_err lock_site(rp_site_round *r) {
    rp_err err;
    RP_TRY(lock_folder(r->args->out, "round", &r->lock));
    if (r->args->round.state) {
        RP_TRY(lock_folder(r->args->round.state, "site", &r->state_lock));
    }
fail:
    return err;
}

static rp_err open_folder(rp_site_round *r) {
    char *run_folder;
    char *result;
    char *errors;
    char *trained;
    char *begin;
    char *before;
    rp_err err;
    r->folder = r->args->out;
    RP_TRY(rp_arena_printf(r->arena, &run_folder, "%s/run", r->folder));
    RP_TRY(rp_arena_printf(r->arena, &result, "%s/%s.safetensors", r->folder,
                           rp_site_round_is_coded(r) ? "update" : "weights"));
    RP_TRY(rp_arena_printf(r->arena, &errors, "%s/error.safetensors", r->folder));
    RP_TRY(rp_arena_printf(r->arena, &trained, "%s/run/weights.safetensors", r->folder));
    RP_TRY(rp_arena_printf(r->arena, &begin, "%s/start.safetensors", r->folder));
    RP_TRY(rp_arena_printf(r->arena, &before, "%s/before.json", r->folder));
    r->before = before;
    r->begin = begin;
    r->run_folder = run_folder;
    r->result = result;
    r->errors = errors;
    r->trained = trained;
    err = rp_round_find_claim(r->folder, &r->asked, &r->claimed);
fail:
    return err;
}

/* ---- the start ------------------------------------------------------------------------------- */

/* Checks that a file has the model's tensors, with their shapes and finite values. */
static rp_err check_tensors(const rp_site_round *r, const char *path) {
    const rp_init init = {.from = path, .node = r->run.root};
    rp_runfile run = r->run;
    run.init = &init;
    return rp_checkpoint_check_start(&run);
}

/* Removes what a round that was refused has left. The file of another program is not removed. */
static rp_err clear_refused(rp_site_round *r) {
    rp_err err = RP_OK;
    RP_TRY(access(r->begin, F_OK) == 0 ? rp_site_read_start(r->arena, r->begin, &r->start) : RP_OK);
    (void)unlink(r->begin);
    (void)unlink(r->before);
fail:
    return err;
}

static rp_err write_start(const rp_site_round *r) {
    const char *folder = r->args->round.state;
    char digest[RP_SITES_DIGEST];
    char *state = NULL;
    uint64_t from = RP_SITE_NO_ROUND;
    rp_err err = RP_OK;
    RP_TRY(folder ? rp_site_find_state(r->arena, folder, r->asked.round, &state, &from) : RP_OK);
    const rp_site_start_order order = {.rules = &r->asked.rules,
                                       .given = r->args->round.in,
                                       .state = state,
                                       .round = r->asked.round,
                                       .from = from,
                                       .site = r->asked.site,
                                       .optimizer = r->run.optim.kind->name};
    RP_TRY(check_tensors(r, r->args->round.in));
    RP_TRY(rp_site_make_start(r->arena, &order, r->begin));
    RP_TRY(state ? check_tensors(r, r->begin) : RP_OK); /* also states of the optimiser */
    RP_TRY(rp_sites_digest_file(r->args->round.in, digest));
    if (strcmp(digest, r->asked.in) != 0) {
        err = rp_fail(RP_ERR_USAGE, "--in: %s: changed while it was read", r->args->round.in);
    }
fail:
    return err;
}

/* Makes start.safetensors unless it exists, and reads what it was made from. The folder is claimed
 * after all of its checks, so a round that they refuse, or that is killed before, leaves a folder
 * of no round. */
static rp_err make_start(rp_site_round *r) {
    rp_err err = RP_OK;
    if (!r->claimed || access(r->begin, F_OK) != 0) {
        RP_TRY(r->claimed ? RP_OK : clear_refused(r));
        err = write_start(r);
        if (err != RP_OK) {
            (void)unlink(r->begin);
            return err;
        }
    }
    RP_TRY(r->claimed ? RP_OK : rp_round_claim(r->folder, &r->asked));
    err = rp_site_read_start(r->arena, r->begin, &r->start);
fail:
    return err;
}

/* ---- the run --------------------------------------------------------------------------------- */

/* The seed of the round's order of samples and dropout. It is below 2^53, as JSON keeps it. */
static uint64_t seed_of(const rp_site_round *r) {
    char name[RP_SITE_NAME_MAX + 32];
    (void)snprintf(name, sizeof name, "round/%.64s/%" PRIu64, r->asked.site, r->asked.round);
    rp_rng rng = rp_rng_named(r->run.seed, name);
    const uint64_t high = rp_rng_u32(&rng) >> 11;
    return high << 32 | rp_rng_u32(&rng);
}

/* The path as a JSON string, which is YAML too. */
static rp_err quote_path(const char *path, char out[PATH_BYTES]) {
    json_t *value = json_string(path);
    const size_t used = value ? json_dumpb(value, out, PATH_BYTES - 1, JSON_ENCODE_ANY) : 0;
    json_decref(value);
    if (used == 0 || used >= PATH_BYTES) {
        return rp_fail(RP_ERR_USAGE, "round: --out: expected a path in UTF-8 of at most %d bytes",
                       PATH_BYTES);
    }
    out[used] = '\0';
    return RP_OK;
}

/* Appends what the round sets in the run file. */
static rp_err add_sets(const rp_site_round *r, rp_option_list *set) {
    const rp_round_rules *rules = &r->asked.rules;
    const char *item[SETS_OF_ROUND];
    uint32_t count = 4;
    char quoted[PATH_BYTES];
    char *text;
    rp_err err;
    if (set->count + SETS_OF_ROUND > RP_OPTION_ITEMS_MAX) {
        return rp_fail(RP_ERR_USAGE, "round: expected at most %d --set",
                       RP_OPTION_ITEMS_MAX - SETS_OF_ROUND);
    }
    RP_TRY(quote_path(r->begin, quoted));
    RP_TRY(rp_arena_printf(r->arena, &text, "train.init=%s", quoted));
    item[0] = text;
    RP_TRY(rp_arena_printf(r->arena, &text, "train.seed=%" PRIu64, seed_of(r)));
    item[1] = text;
    RP_TRY(rp_arena_printf(r->arena, &text, "train.steps=%" PRIu64, r->asked.steps));
    item[2] = text;
    RP_TRY(rp_arena_printf(r->arena, &text, "train.epochs=%" PRIu64, r->asked.epochs));
    item[3] = text;
    if (rules->anchor > 0 || rules->drift) {
        RP_TRY(rp_arena_printf(r->arena, &text, "train.anchor={mu: %.17g, drift: %s}",
                               rules->anchor, rules->drift ? "true" : "false"));
        item[count++] = text;
    }
    for (uint32_t i = 0; i < count; i++) {
        set->item[set->count++] = item[i];
    }
fail:
    return err;
}

/* Asks this process for an orderly end after --within. *made: the timer exists. */
static rp_err start_timer(const rp_site_round *r, timer_t *timer, bool *made) {
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
    const struct itimerspec due = {.it_value = {.tv_sec = r->args->round.within_s}};
    sigset_t own;
    *made = false;
    if (r->args->round.within_s == 0) {
        return RP_OK;
    }
    /* It may expire before the run reads signals, and must not end the process then. */
    (void)sigemptyset(&own);
    (void)sigaddset(&own, SIGUSR1);
    *made = sigprocmask(SIG_BLOCK, &own, NULL) == 0 &&
            timer_create(CLOCK_MONOTONIC, &event, timer) == 0;
    return *made && timer_settime(*timer, 0, &due, NULL) == 0
               ? RP_OK
               : rp_fail(RP_ERR_IO, "round: a timer for --within: %s", strerror(errno));
}

/* Trains, or goes on with a run that was interrupted. *partial: --within ended it. */
static rp_err train(const rp_site_round *r, bool *partial) {
    const char *const folder[] = {r->run_folder};
    rp_cli_args args = *r->args;
    struct itimerspec left = {0};
    timer_t timer;
    bool timed = false;
    bool began;
    rp_err err;
    RP_TRY(rp_site_round_has_run(r, &began));
    args.run.silent = true;
    args.out = r->run_folder;
    if (began) {
        args.words.item = (const char **)(uintptr_t)folder;
        args.set.count = 0;
    } else {
        RP_TRY(add_sets(r, &args.set));
    }
    RP_TRY(start_timer(r, &timer, &timed));
    err = began ? rp_verb_resume(r->arena, &args) : rp_verb_train(r->arena, &args);
    if (timed) {
        (void)timer_gettime(timer, &left);
        *partial =
            err == RP_ERR_INTERRUPTED && left.it_value.tv_sec == 0 && left.it_value.tv_nsec == 0;
        err = *partial ? RP_OK : err;
    }
fail:
    if (timed) {
        (void)timer_delete(timer);
    }
    return err;
}

/* Evaluates the start on the site's validation part, if it has one, unless that was done. */
static rp_err evaluate_start(const rp_site_round *r) {
    rp_cli_args args = *r->args;
    rp_err err;
    if (r->run.data.count[RP_SPLIT_VALIDATION] == 0 || access(r->before, F_OK) == 0) {
        return RP_OK;
    }
    args.run.silent = true;
    args.run.result = rp_replace_begin(r->before);
    args.format = "json";
    args.out = NULL;
    args.model.weights = r->begin;
    args.model.split = "validation";
    if (!args.run.result) {
        return rp_fail(RP_ERR_IO, "%s: %s", r->before, strerror(errno));
    }
    err = rp_verb_eval(r->arena, &args);
    if (err != RP_OK) {
        rp_replace_abandon(args.run.result, r->before);
        return err;
    }
    return rp_replace_end(args.run.result, r->before, true);
}

/* ---- all of it ------------------------------------------------------------------------------- */

static double now_s(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Gives the folder back if the round is refused before its run exists. */
static rp_err release_refused(const rp_site_round *r, rp_err refusal) {
    bool began = true;
    if (!r->claimed && rp_err_exit_code(refusal) == 2 &&
        rp_site_round_has_run(r, &began) == RP_OK && !began) {
        if (rp_round_release(r->folder) == RP_OK) { /* from here on the rest is of no round */
            (void)unlink(r->begin);
            (void)unlink(r->before);
        }
    }
    return refusal;
}

static rp_err start_and_train(rp_site_round *r, bool *partial) {
    rp_err err = make_start(r);
    if (err != RP_OK) {
        return err;
    }
    RP_TRY(evaluate_start(r));
    RP_TRY(*partial ? RP_OK : train(r, partial));
    return RP_OK;
fail:
    return release_refused(r, err);
}

/* `before`: an answer whose weights were removed, or NULL. A partial round does not go on. */
static rp_err make_answer(rp_site_round *r, const json_t *before) {
    const double began = now_s();
    const char *status = json_string_value(json_object_get(before, "status"));
    bool partial = status && strcmp(status, "partial") == 0;
    rp_err err;
    RP_TRY(start_and_train(r, &partial));
    RP_TRY(partial || rp_site_round_keeps_state(r) ? rp_site_round_find_newest(r) : RP_OK);
    if (partial) { /* the weights of its newest checkpoint, or those of the start */
        r->trained = r->newest ? r->newest : r->begin;
    }
    RP_TRY(rp_site_round_write_result(r));
    RP_TRY(rp_site_round_keeps_state(r) ? rp_site_round_save_state(r) : RP_OK);
    err = rp_site_round_write_answer(r, partial, now_s() - began);
fail:
    return err;
}

static void unlock(int lock) {
    if (lock >= 0) {
        (void)close(lock);
    }
}

rp_err rp_verb_round(rp_arena *arena, const rp_cli_args *args) {
    rp_site_round r = {.args = args, .arena = arena, .lock = -1, .state_lock = -1};
    json_t *answer = NULL;
    rp_err err;
    RP_TRY(read_asked(&r));
    RP_TRY(lock_site(&r));
    RP_TRY(open_folder(&r));
    RP_TRY(rp_round_read_answer(r.folder, &answer));
    if (!answer || access(r.result, F_OK) != 0) {
        err = make_answer(&r, answer);
        json_decref(answer);
        RP_TRY(err);
        RP_TRY(rp_round_read_answer(r.folder, &answer));
    }
    err = rp_site_round_print_answer(&r, answer);
fail:
    rp_runfile_close(&r.run);
    unlock(r.state_lock);
    unlock(r.lock);
    return err;
}
