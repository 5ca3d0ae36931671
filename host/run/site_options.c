#include "run/site_options.h"

#include "run/patterns.h"

static const double CLIP_MAX = 1e9;

static rp_err read_keep(rp_node *sites, rp_site_options *out) {
    rp_err err;
    out->keep = rp_node_find(sites, "keep");
    RP_TRY(rp_patterns_check(out->keep));
    return rp_patterns_count(out->keep) <= RP_SITE_PATTERNS_MAX
               ? RP_OK
               : rp_node_fail(out->keep, "expected at most %d patterns", RP_SITE_PATTERNS_MAX);
fail:
    return err;
}

static rp_err read_clip(rp_node *sites, rp_site_options *out) {
    const rp_node *node = rp_node_find(sites, "clip");
    if (!node) {
        return RP_OK;
    }
    const rp_err err = rp_node_f64(sites, "clip", 0, CLIP_MAX, &out->clip);
    return err == RP_OK && !(out->clip > 0) ? rp_node_fail(node, "expected a number above 0") : err;
}

static rp_err read_share(rp_node *node, double *out) {
    rp_err err;
    *out = 0.01;
    err = rp_node_f64(node, "share", 0, 1, out);
    return err == RP_OK && !(*out > 0)
               ? rp_node_fail(rp_node_find(node, "share"), "expected a number above 0")
               : err;
}

static rp_err read_delta(rp_node *sites, rp_delta *out) {
    static const char *const words[] = {"int8", "topk", NULL};
    rp_node *node = rp_node_find(sites, "delta");
    uint32_t codec = 0;
    rp_err err;
    if (!node) {
        return RP_OK;
    }
    if (!rp_node_is_map(node)) {
        return rp_node_fail(node,
                            "expected a map like {codec: int8} or {codec: topk, share: 0.01}");
    }
    RP_TRY(rp_node_need(node, "codec"));
    RP_TRY(rp_node_word(node, "codec", words, &codec));
    out->kind = codec == 0 ? RP_DELTA_INT8 : RP_DELTA_TOPK;
    RP_TRY(out->kind == RP_DELTA_TOPK ? read_share(node, &out->share) : RP_OK);
    RP_TRY(rp_node_done(node));
fail:
    return err;
}

/* Two keys that exclude each other. */
static rp_err check_pairs(rp_node *sites, const rp_site_options *options) {
    const bool coded = options->delta.kind != RP_DELTA_NONE;
    if (options->drift && options->clip > 0) {
        return rp_node_fail(rp_node_find(sites, "clip"),
                            "excludes `drift`, which is computed from the whole difference that "
                            "a site sent: remove one of them");
    }
    if (options->drift && coded) {
        return rp_node_fail(rp_node_find(sites, "delta"),
                            "excludes `drift`, which is computed from the whole difference that "
                            "a site sent: remove one of them");
    }
    return options->clip > 0 && coded
               ? rp_node_fail(rp_node_find(sites, "delta"),
                              "excludes `clip`, because the error of earlier rounds is added to "
                              "the difference after it was clipped: remove one of them")
               : RP_OK;
}

rp_err rp_site_options_read(rp_node *sites, rp_site_options *out) {
    static const char *const words[] = {"fresh", "keep", NULL};
    uint32_t optimizer = 0;
    rp_err err;
    *out = (rp_site_options){0};
    RP_TRY(read_keep(sites, out));
    RP_TRY(rp_node_bool(sites, "drift", &out->drift));
    RP_TRY(rp_node_word(sites, "optimizer", words, &optimizer));
    out->keeps_optimizer = optimizer == 1;
    RP_TRY(read_clip(sites, out));
    RP_TRY(read_delta(sites, &out->delta));
    err = check_pairs(sites, out);
fail:
    return err;
}

bool rp_site_options_keep_state(const rp_site_options *options) {
    return options->keep || options->drift || options->keeps_optimizer ||
           options->delta.kind != RP_DELTA_NONE;
}

/* ---- checks ---------------------------------------------------------------------------------- */

/* Is the parameter a tensor of weights files? */
static bool is_stored(const rp_model *model, uint32_t p) {
    return model->param[p].owner == p && model->param[p].role != RP_PARAM_SCRATCH;
}

static bool fits_any(const rp_node *pattern, const rp_model *model) {
    for (uint32_t p = 0; p < model->param_count; p++) {
        if (is_stored(model, p) && rp_pattern_fits(pattern, model->param[p].name)) {
            return true;
        }
    }
    return false;
}

rp_err rp_site_options_check_model(const rp_site_options *options, const rp_model *model) {
    for (uint32_t i = 0; i < rp_patterns_count(options->keep); i++) {
        const rp_node *pattern = rp_patterns_at(options->keep, i);
        if (!fits_any(pattern, model)) {
            return rp_node_fail(pattern, "'%.200s' matches no tensor of the model",
                                rp_node_text(pattern));
        }
    }
    for (uint32_t p = 0; p < model->param_count; p++) {
        if (is_stored(model, p) && !rp_patterns_fit(options->keep, model->param[p].name)) {
            return RP_OK;
        }
    }
    return options->keep ? rp_node_fail(options->keep,
                                        "matches all tensors of the model, so that nothing would "
                                        "be averaged")
                         : RP_OK;
}

rp_err rp_site_options_check_drift(const rp_optim *optim, const rp_lr_schedule *lr,
                                   const rp_node *at) {
    rp_optim drifting = *optim;
    drifting.anchor.drift = true;
    const rp_err err = rp_optim_check_anchor(&drifting, at);
    return err == RP_OK && lr->kind == RP_LR_STEP
               ? rp_node_fail(at, "sites.drift needs the same sum of learning rates at all sites, "
                                  "but lr_schedule step follows the epochs of each site: expected "
                                  "constant, cosine or poly")
               : err;
}
