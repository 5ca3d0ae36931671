#include "run/federated.h"

#include <string.h>

enum { ROUNDS_MAX = 1000000, STEPS_MAX = 1 << 24, WAIT_MAX_S = 1000000 };

static const double TRACE_MAX_S = 1e9;
static const double RATE_MAX = 1000;

static const char *const rules[RP_RULES + 1] = {"fedavg",  "fedavgm",      "fedadam",
                                                "fedyogi", "fednova",      "elastic",
                                                "median",  "trimmed-mean", "gossip"};

const char *rp_rule_name(rp_rule_kind kind) {
    return kind < RP_RULES ? rules[kind] : "";
}

bool rp_rule_moves_sites(rp_rule_kind kind) {
    return kind == RP_RULE_ELASTIC || kind == RP_RULE_GOSSIP;
}

rp_err rp_federated_check_real(const rp_federated_keys *keys, rp_node *root) {
    return keys->rule.kind != RP_RULE_GOSSIP
               ? RP_OK
               : rp_node_fail(rp_node_at(root, "sites.rule"),
                              "gossip is simulated only, because sites have no lines to each "
                              "other: expected another rule, or `ringpipe sim`");
}

/* ---- rule ------------------------------------------------------------------------------------ */

/* A rule that other programs know, and the reason why it is missing here. */
static rp_err refuse_rule(const rp_node *node) {
    static const struct {
        const char *name, *why;
    } missing[] = {
        {"scaffold", "use {kind: fedavg, weights: equal} and sites.drift: true"},
        {"fedprox", "use fedavg and train.anchor"},
        {"fedadagrad", "use fedadam or fedyogi"},
        {"diloco", "use {kind: fedavgm, lr: 0.7, momentum: 0.9, nesterov: true, weights: equal}"},
        {"krum", "use median or trimmed-mean"},
        {"bulyan", "use median or trimmed-mean"},
    };
    const char *text = rp_node_is_scalar(node) ? rp_node_text(node) : "";
    for (size_t i = 0; i < sizeof missing / sizeof *missing; i++) {
        if (strcmp(text, missing[i].name) == 0) {
            return rp_node_fail(node, "'%s' is not a rule here: %s", text, missing[i].why);
        }
    }
    return RP_OK;
}

static rp_err read_variant(rp_node *node, rp_rule *rule) {
    static const char *const of_adam[] = {"paper", "adam", "flower", NULL};
    static const char *const of_yogi[] = {"paper", "flower", NULL};
    const bool adam = rule->kind == RP_RULE_FEDADAM;
    uint32_t index = 0;
    const rp_err err = rp_node_word(node, "variant", adam ? of_adam : of_yogi, &index);
    rule->variant = index == 0 ? RP_RULE_PAPER : adam && index == 1 ? RP_RULE_ADAM : RP_RULE_FLOWER;
    return err;
}

static rp_err read_above_0(rp_node *node, const char *key, double max, double *out) {
    const rp_err err = rp_node_f64(node, key, 0, max, out);
    return err == RP_OK && !(*out > 0)
               ? rp_node_fail(rp_node_find(node, key), "expected a number above 0")
               : err;
}

static rp_err read_below(rp_node *node, const char *key, double limit, double *out) {
    const rp_err err = rp_node_f64(node, key, 0, limit, out);
    return err == RP_OK && !(*out < limit)
               ? rp_node_fail(rp_node_find(node, key), "expected a number below %g", limit)
               : err;
}

static rp_err read_moments(rp_node *node, rp_rule *rule) {
    rp_err err;
    rule->lr = rule->kind == RP_RULE_FEDADAM ? 0.1 : 0.01;
    rule->beta1 = 0.9;
    rule->beta2 = 0.99;
    rule->tau = 1e-3;
    RP_TRY(read_variant(node, rule));
    RP_TRY(read_above_0(node, "lr", RATE_MAX, &rule->lr));
    RP_TRY(read_below(node, "beta1", 1, &rule->beta1));
    RP_TRY(read_below(node, "beta2", 1, &rule->beta2));
    RP_TRY(read_above_0(node, "tau", 1, &rule->tau));
fail:
    return err;
}

static rp_err read_momentum(rp_node *node, rp_rule *rule) {
    rp_err err;
    rule->lr = 1;
    rule->momentum = 0.9;
    RP_TRY(read_above_0(node, "lr", RATE_MAX, &rule->lr));
    RP_TRY(read_below(node, "momentum", 1, &rule->momentum));
    RP_TRY(rp_node_bool(node, "nesterov", &rule->nesterov));
fail:
    return err;
}

/* elastic, median and trimmed-mean give each site the same weight. */
static rp_err read_weights(rp_node *node, rp_rule *rule) {
    static const char *const words[] = {"held", "equal", NULL};
    uint32_t index = 0;
    const rp_err err = rp_node_word(node, "weights", words, &index);
    rule->equal = index == 1;
    return err;
}

static rp_err read_own_keys(rp_node *node, rp_rule *rule) {
    rp_err err = RP_OK;
    switch (rule->kind) {
    case RP_RULE_FEDAVG:
    case RP_RULE_FEDNOVA:
        return read_weights(node, rule);
    case RP_RULE_FEDAVGM:
        RP_TRY(read_weights(node, rule));
        return read_momentum(node, rule);
    case RP_RULE_FEDADAM:
    case RP_RULE_FEDYOGI:
        RP_TRY(read_weights(node, rule));
        return read_moments(node, rule);
    case RP_RULE_ELASTIC:
        rule->equal = true;
        return rp_node_find(node, "alpha") ? read_above_0(node, "alpha", 1, &rule->alpha) : RP_OK;
    default:
        rule->equal = true;
        rule->trim = rule->kind == RP_RULE_TRIMMED_MEAN ? 0.1 : 0;
        return rule->kind == RP_RULE_TRIMMED_MEAN ? read_below(node, "trim", 0.5, &rule->trim)
                                                  : RP_OK;
    }
fail:
    return err;
}

static rp_err read_rule(rp_node *sites, rp_rule *rule) {
    rp_node *node;
    uint32_t kind = RP_RULE_FEDAVG;
    rp_err err;
    *rule = (rp_rule){.kind = RP_RULE_FEDAVG};
    RP_TRY(rp_node_section(sites, "rule", "fedavg", &node));
    if (node && rp_node_is_scalar(node)) {
        RP_TRY(refuse_rule(node));
        RP_TRY(rp_node_word(sites, "rule", rules, &kind));
        rule->kind = (rp_rule_kind)kind;
        return read_own_keys(NULL, rule);
    }
    if (node && !rp_node_is_map(node)) {
        return rp_node_fail(node, "expected a rule like fedavg or {kind: fedavgm, lr: 0.7}");
    }
    if (node && rp_node_find(node, "kind")) {
        RP_TRY(refuse_rule(rp_node_find(node, "kind")));
    }
    RP_TRY(rp_node_word(node, "kind", rules, &kind));
    rule->kind = (rp_rule_kind)kind;
    RP_TRY(read_own_keys(node, rule));
    RP_TRY(node ? rp_node_done(node) : RP_OK);
fail:
    return err;
}

/* ---- who takes part, and when ---------------------------------------------------------------- */

static rp_err read_length(rp_node *sites, rp_federated_keys *out) {
    rp_err err;
    const bool both = rp_node_find(sites, "steps") && rp_node_find(sites, "epochs");
    if (both) {
        return rp_node_fail(rp_node_find(sites, "steps"), "excludes `epochs`: remove one of them");
    }
    RP_TRY(rp_node_u32(sites, "steps", 1, STEPS_MAX, &out->steps));
    out->epochs = out->steps > 0 ? 0 : 1;
    RP_TRY(out->steps > 0 ? RP_OK : rp_node_u32(sites, "epochs", 1, STEPS_MAX, &out->epochs));
fail:
    return err;
}

static rp_err read_sample(rp_node *sites, rp_federated_keys *out) {
    rp_err err;
    if (rp_node_find(sites, "share") && rp_node_find(sites, "count")) {
        return rp_node_fail(rp_node_find(sites, "count"), "excludes `share`: remove one of them");
    }
    RP_TRY(rp_node_find(sites, "count")
               ? rp_node_u32(sites, "count", 1, RP_FEDERATED_MEMBERS_MAX, &out->count)
               : RP_OK);
    if (rp_node_find(sites, "share")) {
        RP_TRY(read_above_0(sites, "share", 1, &out->share));
    }
fail:
    return err;
}

static rp_err read_take(rp_node *sites, rp_federated_keys *out) {
    rp_node *take = rp_node_find(sites, "take");
    rp_err err = RP_OK;
    if (!take) {
        return RP_OK;
    }
    if (!rp_node_is_map(take)) {
        return rp_node_fail(take, "expected a map like {least: 2, wait: 600}");
    }
    out->least = 1;
    RP_TRY(rp_node_u32(take, "least", 1, RP_FEDERATED_MEMBERS_MAX, &out->least));
    RP_TRY(rp_node_find(take, "wait") ? rp_node_u32(take, "wait", 1, WAIT_MAX_S, &out->wait_s)
                                      : RP_OK);
    RP_TRY(rp_node_done(take));
fail:
    return err;
}

/* Call it after read_take(). */
static rp_err read_availability(rp_node *sites, rp_federated_keys *out) {
    rp_node *node = rp_node_find(sites, "availability");
    rp_err err = RP_OK;
    if (!node) {
        return RP_OK;
    }
    if (!rp_node_is_map(node)) {
        return rp_node_fail(node, "expected a map like {trace: trace.json, seconds: 600}; sites "
                                  "that come and go in real time are not supported");
    }
    RP_TRY(rp_node_need(node, "trace"));
    RP_TRY(rp_node_string(node, "trace", &out->trace));
    out->trace_s = out->wait_s;
    if (out->wait_s == 0) {
        RP_TRY(rp_node_need(node, "seconds"));
    }
    RP_TRY(read_above_0(node, "seconds", TRACE_MAX_S, &out->trace_s));
    RP_TRY(rp_node_done(node));
fail:
    return err;
}

static rp_err read_files(rp_node *sites, rp_federated_keys *out) {
    const rp_node *files = rp_node_find(sites, "files");
    out->files = files;
    if (!files) {
        return RP_OK;
    }
    if (!rp_node_is_map(files)) {
        return rp_node_fail(files, "expected a map like {site-0: a.yaml, site-1: b.yaml}");
    }
    for (uint32_t i = 0; i < rp_node_count(files); i++) {
        if (!rp_node_is_scalar(rp_node_item(files, i))) {
            return rp_node_fail(rp_node_item(files, i), "expected the path of a run file");
        }
    }
    return RP_OK;
}

/* The cheap form of SCAFFOLD, whose formula holds for a plain mean of sites with equal work only.
 */
static rp_err check_drift(rp_node *sites, const rp_federated_keys *keys) {
    const rp_node *at = rp_node_find(sites, "drift");
    if (!keys->options.drift) {
        return RP_OK;
    }
    if (keys->rule.kind != RP_RULE_FEDAVG || !keys->rule.equal) {
        return rp_node_fail(at, "the drift is the difference from a mean in which all sites weigh "
                                "the same: expected `rule: {kind: fedavg, weights: equal}`");
    }
    return keys->steps > 0
               ? RP_OK
               : rp_node_fail(at, "the drift needs the same number of steps at all sites, but an "
                                  "epoch has as many as the site's samples give: expected `steps` "
                                  "instead of `epochs`");
}

/* Rules whose formula does not hold for differences with the error of earlier rounds. */
static rp_err check_delta(rp_node *sites, const rp_federated_keys *keys) {
    const rp_node *at = rp_node_find(sites, "delta");
    const rp_rule_kind rule = keys->rule.kind;
    if (keys->options.delta.kind == RP_DELTA_NONE) {
        return RP_OK;
    }
    if (rule == RP_RULE_FEDNOVA) {
        return rp_node_fail(at, "fednova divides a difference by the steps of its round, but the "
                                "coded one has a part of earlier rounds: expected another "
                                "sites.rule, or no `delta`");
    }
    const bool by_value = rule == RP_RULE_MEDIAN || rule == RP_RULE_TRIMMED_MEAN;
    return by_value && keys->options.delta.kind == RP_DELTA_TOPK
               ? rp_node_fail(at,
                              "%s takes each value from the middle of the sites', but with "
                              "topk most of them do not change: expected another sites.rule, "
                              "or `codec: int8`",
                              rules[rule])
               : RP_OK;
}

static rp_err read_keys(rp_node *sites, rp_federated_keys *out) {
    rp_err err;
    RP_TRY(rp_node_need(sites, "split"));
    RP_TRY(rp_node_string(sites, "split", &out->split));
    RP_TRY(read_rule(sites, &out->rule));
    RP_TRY(rp_node_need(sites, "rounds"));
    RP_TRY(rp_node_u32(sites, "rounds", 1, ROUNDS_MAX, &out->rounds));
    RP_TRY(read_length(sites, out));
    RP_TRY(read_sample(sites, out));
    RP_TRY(read_take(sites, out));
    RP_TRY(read_availability(sites, out));
    RP_TRY(rp_node_u32(sites, "at_once", 1, RP_FEDERATED_AT_ONCE_MAX, &out->at_once));
    RP_TRY(read_files(sites, out));
    RP_TRY(rp_site_options_read(sites, &out->options));
    RP_TRY(rp_node_done(sites));
    RP_TRY(check_drift(sites, out));
    RP_TRY(check_delta(sites, out));
fail:
    return err;
}

rp_err rp_federated_read(rp_node *root, rp_federated_keys *out) {
    rp_node *sites = rp_node_find(root, "sites");
    *out = (rp_federated_keys){.at_once = 1};
    if (!sites) {
        return RP_OK;
    }
    out->given = true;
    return rp_node_is_map(sites)
               ? read_keys(sites, out)
               : rp_node_fail(sites, "expected a map like {split: split.json, rounds: 20}");
}

/* FedNova's weights of the steps' gradients are those of plain SGD. */
static rp_err check_nova(const rp_federated_keys *keys, const rp_optim *optim, const rp_node *at) {
    if (keys->rule.kind != RP_RULE_FEDNOVA) {
        return RP_OK;
    }
    if (optim->momentum > 0 && (optim->anchor.mu > 0 || keys->options.keeps_optimizer)) {
        return rp_node_fail(at,
                            "fednova needs the weights of the steps' gradients, which are not "
                            "known with momentum and %s: expected one of the two, or another "
                            "sites.rule",
                            optim->anchor.mu > 0 ? "train.anchor" : "sites.optimizer keep");
    }
    return strcmp(optim->kind->name, "sgd") == 0 && !optim->nesterov && !(optim->dampening > 0) &&
                   !(optim->weight_decay > 0)
               ? RP_OK
               : rp_node_fail(at, "fednova needs the weights of the steps' gradients, which are "
                                  "known for sgd without nesterov, dampening and weight_decay: "
                                  "expected these, or another sites.rule");
}

rp_err rp_federated_check_optimizer(const rp_federated_keys *keys, const rp_optim *optim,
                                    const rp_lr_schedule *lr, const rp_node *at) {
    rp_err err;
    if (optim->anchor.drift) {
        return rp_node_fail(at, "train.anchor has a drift, which would start at zero in every "
                                "round: expected `sites: {drift: true}` instead");
    }
    RP_TRY(keys->options.drift ? rp_site_options_check_drift(optim, lr, at) : RP_OK);
    err = check_nova(keys, optim, at);
fail:
    return err;
}

rp_err rp_federated_refuse(const rp_federated_keys *keys, const char *run_path) {
    return keys->given
               ? rp_fail(RP_ERR_USAGE,
                         "%s: sites: only `ringpipe train`, `resume`, `plan`, `profile` and `sim` "
                         "support sites; remove the key for this verb",
                         run_path)
               : RP_OK;
}
