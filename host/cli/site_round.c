/* What a round of a site ends with: its result, the state that the site keeps, round.json. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "base/json_print.h"
#include "base/json_read.h"
#include "checkpoint/checkpoint.h"
#include "cli/site_round.h"
#include "sites/state.h"
#include "sites/update.h"
#include "sites/weights.h"

/* The sum of the rates of the updates that the optimiser has done in this round. */
static double sum_rates(const rp_runfile *run, uint64_t steps, uint64_t updates) {
    double sum = 0;
    for (uint64_t step = 0; step < steps; step++) {
        sum += (float)rp_lr_at(&run->lr, run->optim.lr, step, run->steps, run->epoch_steps);
    }
    return steps > 0 ? sum * (double)updates / (double)steps : 0; /* without skipped steps */
}

/* For norm_a. Earlier rounds' momentum is in no formula, and a skipped step has no weight. */
static rp_err find_norm_a(const rp_site_round *r, const rp_site_losses *loss, double *out) {
    const rp_optim *optim = &r->run.optim;
    const uint64_t all = r->asked.steps > 0 ? r->asked.steps : r->asked.epochs * r->run.epoch_steps;
    double *rate;
    rp_err err;
    *out = NAN;
    if (loss->skipped || (r->start.optimizer && optim->momentum > 0)) {
        return RP_OK;
    }
    RP_TRY(RP_ARENA_NEW(r->arena, loss->steps + 1, &rate));
    for (uint64_t step = 0; step < loss->steps; step++) {
        rate[step] = rp_lr_at(&r->run.lr, optim->lr, step, all, r->run.epoch_steps);
    }
    *out = rp_round_norm_a(&(rp_round_steps){.rate = rate,
                                             .count = loss->steps,
                                             .lr = optim->lr,
                                             .momentum = optim->momentum,
                                             .dampening = optim->dampening,
                                             .nesterov = optim->nesterov,
                                             .anchor = r->asked.rules.anchor});
fail:
    return err;
}

static uint64_t most_updates(const rp_applied *applied) {
    uint64_t most = 0;
    for (uint32_t s = 0; s < applied->stages; s++) {
        most = applied->of[s][0] > most ? applied->of[s][0] : most;
    }
    return most;
}

rp_err rp_site_round_has_run(const rp_site_round *r, bool *yes) {
    char *path;
    const rp_err err = rp_arena_printf(r->arena, &path, "%s/run.yaml", r->run_folder);
    *yes = err == RP_OK && access(path, F_OK) == 0;
    return err;
}

/* Finds the newest checkpoint of the run. */
rp_err rp_site_round_find_newest(rp_site_round *r) {
    char damaged[RP_CHECKPOINT_DAMAGE];
    rp_position position = {0};
    rp_runfile run = {0};
    bool began;
    char *folder;
    char *path = NULL;
    rp_err err;
    r->updates = r->start.updates;
    RP_TRY(rp_site_round_has_run(r, &began));
    if (!began) {
        return RP_OK;
    }
    RP_TRY(rp_arena_printf(r->arena, &folder, "%s/checkpoint", r->run_folder));
    RP_TRY(rp_runfile_read(r->arena, r->run_folder, NULL, 0, &run));
    RP_TRY(rp_checkpoint_find(r->arena, &run, folder, &path, &position, damaged));
    if (path) {
        r->newest = path;
        r->done = position.step;
        r->samples = position.samples;
        r->updates = most_updates(&position.applied);
        r->rates = r->updates > r->start.updates
                       ? sum_rates(&run, position.step, r->updates - r->start.updates)
                       : 0;
    }
fail:
    rp_runfile_close(&run);
    return err;
}

/* Does the site keep anything for its next round? */
bool rp_site_round_keeps_state(const rp_site_round *r) {
    const rp_round_rules *rules = &r->asked.rules;
    return rules->keep_count > 0 || rules->drift || rules->keeps_optimizer ||
           rp_site_round_is_coded(r);
}

/* Saves what the site keeps for its next round. The newest checkpoint is that of the last step,
 * because a finished run that is resumed makes it again if it is damaged. */
rp_err rp_site_round_save_state(const rp_site_round *r) {
    const rp_site_state state = {.rules = &r->asked.rules,
                                 .folder = r->args->round.state,
                                 .site = r->asked.site,
                                 .round = r->asked.round,
                                 .trained = r->newest ? r->newest : r->begin,
                                 .optimizer = r->run.optim.kind->name,
                                 .errors = rp_site_round_is_coded(r) ? r->errors : NULL,
                                 .updates = r->updates,
                                 .rates = r->rates};
    return rp_site_save_state(r->arena, &state);
}

static double real_of(const json_t *object, const char *key) {
    const json_t *value = json_object_get(object, key);
    return json_is_number(value) ? json_number_value(value) : 0;
}

static uint64_t link_bytes(const json_t *summary) {
    double bytes = 0;
    size_t i;
    const json_t *link;
    json_array_foreach(json_object_get(summary, "link"), i, link) {
        bytes += real_of(link, "bytes");
    }
    return (uint64_t)bytes;
}

/* NAN: a board's energy is unknown. That of a machine with several boards is in one of them. */
static double joules_of(const json_t *summary) {
    const json_t *stages = json_object_get(summary, "stage");
    double joules = 0;
    bool known = json_array_size(stages) > 0;
    size_t i;
    const json_t *stage;
    json_array_foreach(stages, i, stage) {
        const double own = real_of(stage, "energy_j");
        joules += own > 0 ? own : 0;
        known = known && (own > 0 || json_object_get(stage, "energy_with"));
    }
    return known ? joules : (double)NAN;
}

/* The given weights are read again for the answer, so they may not have changed. */
static rp_err check_given(const rp_site_round *r) {
    char digest[RP_SITES_DIGEST];
    const rp_err err = rp_sites_digest_file(r->args->round.in, digest);
    return err != RP_OK || strcmp(digest, r->asked.in) == 0
               ? err
               : rp_fail(RP_ERR_USAGE,
                         "%s: changed during the round: expected the file with digest %s",
                         r->args->round.in, r->asked.in);
}

/* Writes what leaves the site. */
rp_err rp_site_round_write_result(rp_site_round *r) {
    const rp_update_facts facts = {.rules = &r->asked.rules,
                                   .model = r->run.model,
                                   .given = r->args->round.in,
                                   .digest = r->asked.in};
    const rp_update_files files = {
        .trained = r->trained, .start = r->begin, .update = r->result, .errors = r->errors};
    rp_err err;
    RP_TRY(check_given(r));
    err = rp_site_round_is_coded(r) ? rp_update_write(r->arena, &facts, &files, &r->difference)
                                    : rp_site_write_weights(r->arena, facts.given, r->trained,
                                                            r->result, facts.rules, &r->difference);
fail:
    return err;
}

rp_err rp_site_round_write_answer(rp_site_round *r, bool partial, double seconds) {
    rp_round_answer answer = {.asked = &r->asked,
                              .difference = r->difference,
                              .start = &r->start,
                              .loss = {.first = NAN, .mean = NAN, .last = NAN},
                              .partial = partial,
                              .joules = NAN,
                              .held = r->run.data.count[RP_SPLIT_TRAIN],
                              .optimizer = r->run.optim.kind->name,
                              .lr = r->run.optim.lr,
                              .momentum = r->run.optim.momentum};
    json_t *summary = NULL;
    json_t *before = NULL;
    char *path;
    rp_err err;
    RP_TRY(rp_arena_printf(r->arena, &path, "%s/log.jsonl", r->run_folder));
    if (access(path, F_OK) == 0) {
        RP_TRY(rp_site_read_losses(path, partial ? r->done : UINT64_MAX, &answer.loss));
    }
    RP_TRY(find_norm_a(r, &answer.loss, &answer.norm_a));
    RP_TRY(rp_arena_printf(r->arena, &path, "%s/summary.json", r->run_folder));
    if (access(path, F_OK) == 0) { /* a kill after the last step may have prevented it */
        RP_TRY(rp_json_read(path, &summary));
    }
    if (access(r->before, F_OK) == 0) {
        RP_TRY(rp_json_read(r->before, &before));
        answer.before = json_object_get(before, "eval");
    }
    answer.samples = partial ? r->samples : (uint64_t)real_of(summary, "samples");
    answer.train_s = real_of(summary, "seconds");
    answer.start_s = seconds > answer.train_s ? seconds - answer.train_s : 0;
    answer.ring_bytes = link_bytes(summary);
    answer.joules = joules_of(summary);
    answer.after = json_object_get(summary, "validation");
    answer.after = answer.after ? answer.after : json_object_get(summary, "eval");
    RP_TRY(rp_sites_digest_file(r->result, answer.out));
    err = rp_round_write_answer(r->folder, &answer);
fail:
    json_decref(summary);
    json_decref(before);
    return err;
}

static void print_text(const rp_site_round *r, const json_t *answer) {
    const json_t *loss = json_object_get(answer, "loss");
    (void)printf("round %" PRIu64 " of %s: %s, %.0f steps, %.0f samples, loss %.4f to %.4f, "
                 "%s in %s\n",
                 r->asked.round, r->asked.site,
                 json_string_value(json_object_get(answer, "status")), real_of(answer, "steps"),
                 real_of(answer, "samples"), real_of(loss, "first"), real_of(loss, "last"),
                 rp_site_round_is_coded(r) ? "update" : "weights", r->result);
}

rp_err rp_site_round_print_answer(const rp_site_round *r, json_t *answer) {
    if (rp_cli_is_json(r->args)) {
        return rp_json_print(answer, 0, stdout);
    }
    print_text(r, answer);
    json_decref(answer);
    return RP_OK;
}
