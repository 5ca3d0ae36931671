/* A round of a site: its start, its result, and its end. */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "federation/federation_own.h"
#include "run/patterns.h"
#include "sites/answer.h"
#include "sites/state.h"
#include "sites/update.h"

static const double SECONDS_MAX = 1e9; /* of a site in a round, about 30 years */

/* ---- starting -------------------------------------------------------------------------------- */

/* With some rules a site goes on from weights of its own, once it has some. */
static const char *weights_of(const rp_federation *f, const rp_site *site) {
    return rp_rule_moves_sites(f->keys.rule.kind) && access(site->own, F_OK) == 0 ? site->own
                                                                                  : f->center;
}

rp_err rp_member_start(const rp_federation *f, rp_site *site) {
    char out[RP_FEDERATION_PATH];
    const uint64_t number = f->round + 1;
    rp_federation_name_round(f, number, site, out);
    const rp_round_order order = {.site = site->index,
                                  .name = site->name,
                                  .run_yaml = site->run_yaml,
                                  .log = site->log,
                                  .in = weights_of(f, site),
                                  .out = out,
                                  .kept = site->kept,
                                  .keys = f->options.keys,
                                  .options = &f->keys.options,
                                  .round = number,
                                  .steps = f->keys.steps,
                                  .epochs = f->keys.epochs};
    const rp_err err = f->engine.kind->start_round(f->engine.context, &site->child, &order);
    site->condition = err == RP_OK ? RP_SITE_TRAINS : site->condition;
    site->began_ns = f->now_ns;
    site->sent = site->sent || err == RP_OK;
    site->trains = number;
    return err;
}

/* ---- the result ------------------------------------------------------------------------------ */

static bool take_whole(const json_t *object, const char *key, uint64_t *out) {
    const json_t *value = json_object_get(object, key);
    *out = json_is_integer(value) ? (uint64_t)json_integer_value(value) : 0;
    return json_is_integer(value) && json_integer_value(value) >= 0;
}

static bool take_count(const json_t *object, const char *key, uint64_t *out) {
    return take_whole(object, key, out) && *out <= RP_SITE_COUNT_MAX;
}

static double real_of(const json_t *object, const char *key) {
    const json_t *value = json_object_get(object, key);
    return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

/* NAN: the value is outside of the range, or unknown. */
static double bound_real(double value, double low, double high) {
    return value >= low && value <= high ? value : (double)NAN;
}

static bool is_text(const json_t *object, const char *key, const char *wanted) {
    const char *text = json_string_value(json_object_get(object, key));
    return text && strcmp(text, wanted) == 0;
}

/* The weights of the steps are unknown with an anchor and momentum; only fednova needs them. */
static bool has_steps_weight(const rp_federation *f, const rp_site_answer *answer) {
    return f->keys.rule.kind != RP_RULE_FEDNOVA ||
           (answer->steps_weight >= 0 && isfinite(answer->steps_weight));
}

/* The round of the state with which the site began. */
static bool take_from(const rp_federation *f, const json_t *root, uint64_t *out) {
    const json_t *state = json_object_get(root, "state");
    const bool none = json_is_null(json_object_get(state, "from"));
    *out = RP_SITE_NO_ROUND;
    return !rp_site_options_keep_state(&f->keys.options) || none || take_whole(state, "from", out);
}

/* Returns the first key that is missing or invalid; NULL: all are good. */
static const char *take_answer(const rp_federation *f, const json_t *root, const rp_site *site,
                               rp_site_answer *out) {
    const json_t *seconds = json_object_get(root, "seconds");
    const json_t *before = json_object_get(root, "before");
    uint64_t round;
    out->accuracy = bound_real(real_of(before, "accuracy"), 0, 1);
    out->before_loss = real_of(before, "loss");
    out->partial = is_text(root, "status", "partial");
    out->loss = real_of(json_object_get(root, "loss"), "mean");
    out->steps_weight = real_of(root, "norm_a");
    out->delta_norm = real_of(root, "delta_norm");
    out->clipped = json_is_true(json_object_get(root, "clipped"));
    out->seconds =
        bound_real(real_of(seconds, "start") + real_of(seconds, "train"), 0, SECONDS_MAX);
    return !take_whole(root, "round", &round) || round != site->trains ? "round"
           : !is_text(root, "site", site->name)                        ? "site"
           : !take_count(root, "steps", &out->steps)                   ? "steps"
           : !take_count(root, "samples", &out->samples)               ? "samples"
           : !take_count(root, "held", &out->held) || out->held == 0   ? "held"
           : !take_from(f, root, &out->from)                           ? "state"
           : !has_steps_weight(f, out)                                 ? "norm_a"
           : !out->partial && !is_text(root, "status", "finished")     ? "status"
                                                                       : NULL;
}

static bool sends_updates(const rp_federation *f) {
    return f->keys.options.delta.kind != RP_DELTA_NONE;
}

void rp_member_name_weights(const rp_federation *f, const rp_site *site,
                            char out[RP_FEDERATION_PATH]) {
    char folder[RP_FEDERATION_PATH];
    rp_federation_name_round(f, site->trains, site, folder);
    (void)snprintf(out, RP_FEDERATION_PATH, "%.4060s/%s.safetensors", folder,
                   sends_updates(f) ? "received" : "weights");
}

/* Makes the weights of an update, which is relative to what the site was given. */
static rp_err decode_update(const rp_federation *f, const rp_site *site, const char *update) {
    const rp_round_rules rules = {.keep = f->pattern,
                                  .keep_count = rp_patterns_count(f->keys.options.keep),
                                  .delta = f->keys.options.delta};
    const char *given = weights_of(f, site);
    char weights[RP_FEDERATION_PATH];
    char digest[RP_SITES_DIGEST];
    const rp_update_facts facts = {
        .rules = &rules, .model = f->model, .given = given, .digest = digest};
    rp_arena arena;
    rp_err err;
    rp_arena_init(&arena, "update", 0);
    rp_member_name_weights(f, site, weights);
    RP_TRY(rp_sites_digest_file(given, digest));
    err = rp_update_read(&arena, &facts, update, weights);
fail:
    rp_arena_finish(&arena);
    return err;
}

/* What the site has sent is that of which round.json tells. */
static rp_err take_result(const rp_federation *f, const rp_site *site, const json_t *root,
                          const char *folder, uint64_t *bytes) {
    char path[RP_FEDERATION_PATH + 32];
    char digest[RP_SITES_DIGEST];
    rp_err err;
    (void)snprintf(path, sizeof path, "%s/%s.safetensors", folder,
                   sends_updates(f) ? "update" : "weights");
    RP_TRY(rp_sites_digest_file(path, digest));
    if (!is_text(root, "out", digest)) {
        return rp_fail(RP_ERR_FORMAT, "%s: its digest is %s, not that of round.json", path, digest);
    }
    *bytes = f->engine.kind->file_bytes(f->engine.context, path);
    err = sends_updates(f) ? decode_update(f, site, path) : RP_OK;
fail:
    return err;
}

rp_err rp_member_read_answer(const rp_federation *f, rp_site *site) {
    char folder[RP_FEDERATION_PATH];
    json_t *root = NULL;
    rp_err err;
    rp_federation_name_round(f, site->trains, site, folder);
    RP_TRY(rp_round_read_answer(folder, &root));
    const char *key = root ? take_answer(f, root, site, &site->answer) : "round";
    if (key) {
        RP_TRY(rp_fail(RP_ERR_FORMAT,
                       "%s/round.json: key '%s' is missing or invalid: expected the result of "
                       "round %" PRIu64 " of site %s",
                       folder, key, site->trains, site->name));
    }
    RP_TRY(take_result(f, site, root, folder, &site->answer.bytes));
fail:
    json_decref(root);
    return err;
}

/* ---- ending ---------------------------------------------------------------------------------- */

rp_err rp_federation_stop(rp_federation *f, rp_err result, const char *format, ...) {
    va_list args;
    va_start(args, format);
    (void)vsnprintf(f->note, sizeof f->note, format, args);
    va_end(args);
    f->phase = RP_FEDERATION_STOP;
    f->result = result;
    for (uint32_t i = 0; i < f->sites; i++) {
        f->engine.kind->tell(f->engine.context, &f->site[i].child, f->now_ns);
    }
    f->engine.kind->tell(f->engine.context, &f->scorer, f->now_ns);
    return RP_OK;
}
