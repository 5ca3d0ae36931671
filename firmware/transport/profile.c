#include "transport/profile.h"

#include <stdlib.h>
#include <string.h>

bool rp_link_profile_has_line(const rp_link_profile *profile) {
    return profile->rate_mbit > 0 || profile->delay_ms > 0 || profile->jitter_ms > 0 ||
           profile->loss > 0 || profile->duplicate > 0 || profile->reorder > 0 ||
           profile->corrupt > 0 || profile->outage.every_s > 0 || profile->clog.every_s > 0 ||
           profile->partition.every_s > 0 || profile->cut || profile->hold;
}

/* "every 60s for 5s" */
static bool read_period(const char *text, rp_link_period *out) {
    char *end;
    if (strncmp(text, "every ", 6) != 0) {
        return false;
    }
    out->every_s = strtod(text + 6, &end);
    if (end == text + 6 || strncmp(end, "s for ", 6) != 0) {
        return false;
    }
    text = end + 6;
    out->for_s = strtod(text, &end);
    return end != text && strcmp(end, "s") == 0 && out->every_s <= 86400 && out->for_s > 0 &&
           out->for_s < out->every_s;
}

static rp_err parse_period(rp_node *node, const char *key, rp_link_period *out) {
    const char *text = NULL;
    rp_err err = rp_node_string(node, key, &text);
    if (err == RP_OK && text && !read_period(text, out)) {
        return rp_node_fail(rp_node_find(node, key),
                            "expected \"every 60s for 5s\", the second shorter than the first, "
                            "found '%s'",
                            text);
    }
    return err;
}

rp_err rp_link_profile_parse(rp_link_profile *profile, rp_node *node) {
    rp_err err;
    RP_TRY(rp_node_f64(node, "rate_mbit", 0, 1e6, &profile->rate_mbit));
    RP_TRY(rp_node_f64(node, "delay_ms", 0, 60000, &profile->delay_ms));
    RP_TRY(rp_node_f64(node, "jitter_ms", 0, 60000, &profile->jitter_ms));
    RP_TRY(rp_node_f64(node, "loss", 0, 0.9, &profile->loss));
    RP_TRY(rp_node_f64(node, "duplicate", 0, 0.9, &profile->duplicate));
    RP_TRY(rp_node_f64(node, "reorder", 0, 0.9, &profile->reorder));
    RP_TRY(rp_node_f64(node, "corrupt", 0, 0.9, &profile->corrupt));
    RP_TRY(parse_period(node, "outage", &profile->outage));
    RP_TRY(parse_period(node, "clog", &profile->clog));
    RP_TRY(parse_period(node, "partition", &profile->partition));
    RP_TRY(rp_node_bool(node, "partition_one_way", &profile->partition_one_way));
    RP_TRY(rp_node_bool(node, "half_duplex", &profile->half_duplex));
    RP_TRY(rp_node_bool(node, "control", &profile->control));
    err = rp_node_done(node);
fail:
    return err;
}

typedef struct {
    rp_arena *arena;
    const char *indent;
    char *text;
} lines;

static rp_err add_number(lines *to, const char *key, double value) {
    return value > 0 ? rp_arena_printf(to->arena, &to->text, "%s%s%s: %.17g\n", to->text,
                                       to->indent, key, value)
                     : RP_OK;
}

static rp_err add_flag(lines *to, const char *key, bool value) {
    return value
               ? rp_arena_printf(to->arena, &to->text, "%s%s%s: true\n", to->text, to->indent, key)
               : RP_OK;
}

static rp_err add_period(lines *to, const char *key, const rp_link_period *period) {
    return period->every_s > 0
               ? rp_arena_printf(to->arena, &to->text, "%s%s%s: \"every %.17gs for %.17gs\"\n",
                                 to->text, to->indent, key, period->every_s, period->for_s)
               : RP_OK;
}

rp_err rp_link_profile_text(const rp_link_profile *profile, rp_arena *arena, const char *indent,
                            char **out) {
    rp_err err;
    lines to = {arena, indent, NULL};
    /* never empty, so that the mapping is one */
    RP_TRY(rp_arena_printf(arena, &to.text, "%srate_mbit: %.17g\n", indent, profile->rate_mbit));
    RP_TRY(add_number(&to, "delay_ms", profile->delay_ms));
    RP_TRY(add_number(&to, "jitter_ms", profile->jitter_ms));
    RP_TRY(add_number(&to, "loss", profile->loss));
    RP_TRY(add_number(&to, "duplicate", profile->duplicate));
    RP_TRY(add_number(&to, "reorder", profile->reorder));
    RP_TRY(add_number(&to, "corrupt", profile->corrupt));
    RP_TRY(add_period(&to, "outage", &profile->outage));
    RP_TRY(add_period(&to, "clog", &profile->clog));
    RP_TRY(add_period(&to, "partition", &profile->partition));
    RP_TRY(add_flag(&to, "partition_one_way", profile->partition_one_way));
    RP_TRY(add_flag(&to, "half_duplex", profile->half_duplex));
    RP_TRY(add_flag(&to, "control", profile->control));
    *out = to.text;
fail:
    return err;
}
