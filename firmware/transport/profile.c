#include "transport/profile.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* ---- keys ------------------------------------------------------------------------------------ */

typedef enum { NUMBER, OUTAGE, FLAG, TRACE, NAME } kind_of_key;

typedef struct {
    const char *name;
    kind_of_key kind;
    size_t at;
    double most; /* upper bound of a NUMBER */
} profile_key;

/* A key's bit in a set is its index here. */
static const profile_key keys[] = {
    {"rate_mbit", NUMBER, offsetof(rp_link_profile, rate_mbit), 1e6},
    {"delay_ms", NUMBER, offsetof(rp_link_profile, delay_ms), 60000},
    {"jitter_ms", NUMBER, offsetof(rp_link_profile, jitter_ms), 60000},
    {"loss", NUMBER, offsetof(rp_link_profile, loss), 0.9},
    {"outage", OUTAGE, offsetof(rp_link_profile, outage), 0},
    {"control", FLAG, offsetof(rp_link_profile, control), 0},
    {"shared", NAME, offsetof(rp_link_profile, shared), 0},
    {"trace", TRACE, offsetof(rp_link_profile, trace), 0},
};
enum { KEYS = sizeof keys / sizeof *keys };

/* Address of a key's value. */
static void *value_of(rp_link_profile *profile, const profile_key *key) {
    return (char *)profile + key->at;
}

static const void *value_in(const rp_link_profile *profile, const profile_key *key) {
    return (const char *)profile + key->at;
}

static bool is_set(const rp_link_profile *profile, const profile_key *key) {
    const void *value = value_in(profile, key);
    switch (key->kind) {
    case NUMBER:
        return *(const double *)value > 0;
    case OUTAGE:
        return profile->outage.every_s > 0 || profile->outages > 0;
    case FLAG:
        return *(const bool *)value;
    case TRACE:
        return profile->trace != NULL;
    case NAME:
        return profile->shared[0] != '\0';
    }
    return false;
}

bool rp_link_profile_has_line(const rp_link_profile *profile) {
    bool has = profile->cut || profile->hold || profile->mtu_bytes > 0 || profile->duplicate > 0 ||
               profile->reorder > 0 || profile->corrupt > 0;
    for (uint32_t i = 0; i < KEYS; i++) {
        has = has || (keys[i].kind != FLAG && keys[i].kind != NAME && is_set(profile, &keys[i]));
    }
    return has;
}

double rp_link_profile_held_s(const rp_link_profile *profile) {
    double longest_s = profile->outage.for_s;
    for (uint32_t i = 0; i < profile->outages; i++) {
        const double own_s = profile->away[i].for_s + profile->outage.for_s;
        longest_s = own_s > longest_s ? own_s : longest_s;
    }
    /* the time at a quarter of its mean rate, or less */
    if (profile->trace && profile->trace->has_rate) {
        const double little = rp_link_trace_mean_mbit(profile->trace) / 4;
        longest_s += rp_link_trace_longest_s(profile->trace, little);
    }
    return longest_s;
}

double rp_link_profile_rate_mbit(const rp_link_profile *profile) {
    return profile->trace && profile->trace->has_rate ? rp_link_trace_mean_mbit(profile->trace)
                                                      : profile->rate_mbit;
}

double rp_link_profile_delay_ms(const rp_link_profile *profile) {
    return profile->trace && profile->trace->has_delay ? rp_link_trace_mean_delay_ms(profile->trace)
                                                       : profile->delay_ms;
}

void rp_link_profile_lay_over(rp_link_profile *profile, const rp_link_profile *over, uint32_t set) {
    for (uint32_t i = 0; i < KEYS; i++) {
        const profile_key *key = &keys[i];
        void *to = value_of(profile, key);
        const void *from = value_in(over, key);
        if (!(set >> i & 1)) {
            continue;
        }
        switch (key->kind) {
        case NUMBER:
            *(double *)to = *(const double *)from;
            break;
        case OUTAGE:
            profile->outages = over->outages;
            memcpy(profile->away, over->away, sizeof profile->away);
            *(rp_link_period *)to = *(const rp_link_period *)from;
            break;
        case FLAG:
            *(bool *)to = *(const bool *)from;
            break;
        case TRACE:
            profile->trace = over->trace;
            break;
        case NAME:
            memcpy(profile->shared, over->shared, sizeof profile->shared);
            break;
        }
    }
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Parses "WORD 60s for 5s". */
static bool read_span(const char *text, const char *word, double *at_s, double *for_s) {
    const size_t length = strlen(word);
    char *end;
    if (strncmp(text, word, length) != 0) {
        return false;
    }
    *at_s = strtod(text + length, &end);
    if (end == text + length || strncmp(end, "s for ", 6) != 0) {
        return false;
    }
    text = end + 6;
    *for_s = strtod(text, &end);
    return end != text && strcmp(end, "s") == 0 && *at_s >= 0 && *at_s <= 86400 && *for_s > 0 &&
           *for_s <= 86400;
}

static bool read_period(const char *text, rp_link_period *out) {
    return read_span(text, "every ", &out->every_s, &out->for_s) && out->for_s < out->every_s;
}

/* Adds one span of an outage, recurring or single. */
static rp_err add_outage(const rp_node *node, rp_link_profile *profile) {
    const char *text = rp_node_is_scalar(node) ? rp_node_text(node) : "a list or a map";
    rp_link_outage away;
    if (profile->outage.every_s <= 0 && read_period(text, &profile->outage)) {
        return RP_OK;
    }
    if (!read_span(text, "at ", &away.at_s, &away.for_s)) {
        return rp_node_fail(node,
                            "expected \"every 60s for 5s\" (once, the second shorter than the "
                            "first), or \"at 10s for 3s\", found '%s'",
                            text);
    }
    if (profile->outages == RP_LINK_OUTAGES_MAX) {
        return rp_node_fail(node, "expected at most %d outages \"at ..\"", RP_LINK_OUTAGES_MAX);
    }
    const rp_link_outage *last = profile->outages ? &profile->away[profile->outages - 1] : NULL;
    if (last && !(away.at_s > last->at_s + last->for_s)) {
        return rp_node_fail(node,
                            "expected outages in the order of their times, each after the end of "
                            "the previous one (%g s), found '%s'",
                            last->at_s + last->for_s, text);
    }
    profile->away[profile->outages++] = away;
    return RP_OK;
}

static rp_err parse_outage(rp_node *node, rp_link_profile *profile) {
    rp_err err = RP_OK;
    profile->outage = (rp_link_period){0};
    profile->outages = 0;
    if (rp_node_is_list(node)) {
        for (uint32_t i = 0; i < rp_node_count(node); i++) {
            RP_TRY(add_outage(rp_node_item(node, i), profile));
        }
    } else if (!rp_node_is_scalar(node) || strcmp(rp_node_text(node), "none") != 0) {
        RP_TRY(add_outage(node, profile));
    }
fail:
    return err;
}

static rp_err parse_trace(const rp_node *node, const rp_link_reader *reader,
                          const rp_link_trace **out) {
    const char *text = rp_node_is_scalar(node) ? rp_node_text(node) : "";
    *out = NULL;
    if (!text[0]) {
        return rp_node_fail(node, "expected a trace, or none");
    }
    return strcmp(text, "none") == 0 ? RP_OK
                                     : reader->trace(reader->context, reader->arena, node, out);
}

static rp_err trace_of_text(void *context, rp_arena *arena, const rp_node *node,
                            const rp_link_trace **out) {
    (void)context;
    return rp_link_trace_parse(arena, rp_node_text(node), out);
}

rp_link_reader rp_link_reader_plain(rp_arena *arena) {
    return (rp_link_reader){.arena = arena, .trace = trace_of_text};
}

static rp_err parse_name(const rp_node *node, char out[RP_LINK_SHARED_BYTES]) {
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    const char *text = rp_node_is_scalar(node) ? rp_node_text(node) : "";
    const size_t bytes = strlen(text);
    if (bytes == 0 || bytes >= RP_LINK_SHARED_BYTES || strspn(text, letters) != bytes) {
        return rp_node_fail(node,
                            "expected a name of 1 to %d letters, digits, _ and -, common to wires "
                            "that share a medium, or none, found '%s'",
                            RP_LINK_SHARED_BYTES - 1, text);
    }
    memset(out, 0, RP_LINK_SHARED_BYTES);
    memcpy(out, text, strcmp(text, "none") == 0 ? 0 : bytes);
    return RP_OK;
}

static rp_err parse_key(rp_node *node, const profile_key *key, const rp_link_reader *reader,
                        rp_link_profile *profile) {
    void *value = value_of(profile, key);
    switch (key->kind) {
    case NUMBER:
        return rp_node_f64(node, key->name, 0, key->most, value);
    case OUTAGE:
        return parse_outage(rp_node_find(node, key->name), profile);
    case FLAG:
        return rp_node_bool(node, key->name, value);
    case TRACE:
        return parse_trace(rp_node_find(node, key->name), reader, &profile->trace);
    case NAME:
        return parse_name(rp_node_find(node, key->name), profile->shared);
    }
    return RP_OK;
}

rp_err rp_link_profile_parse(rp_link_profile *profile, rp_node *node, const rp_link_reader *reader,
                             uint32_t *set) {
    uint32_t there = 0;
    rp_err err;
    for (uint32_t i = 0; i < KEYS; i++) {
        if (rp_node_find(node, keys[i].name)) {
            RP_TRY(parse_key(node, &keys[i], reader, profile));
            there |= 1u << i;
        }
    }
    RP_TRY(rp_node_done(node));
    if (set) {
        *set = there;
    }
fail:
    return err;
}

/* ---- text ------------------------------------------------------------------------------------ */

static rp_err add_outages(const rp_link_profile *profile, rp_arena *arena, const char *indent,
                          char **text) {
    rp_err err;
    const char *comma = "";
    RP_TRY(rp_arena_printf(arena, text, "%s%soutage: [", *text, indent));
    if (profile->outage.every_s > 0) {
        RP_TRY(rp_arena_printf(arena, text, "%s\"every %.17gs for %.17gs\"", *text,
                               profile->outage.every_s, profile->outage.for_s));
        comma = ", ";
    }
    for (uint32_t i = 0; i < profile->outages; i++) {
        RP_TRY(rp_arena_printf(arena, text, "%s%s\"at %.17gs for %.17gs\"", *text, comma,
                               profile->away[i].at_s, profile->away[i].for_s));
        comma = ", ";
    }
    RP_TRY(rp_arena_printf(arena, text, "%s]\n", *text));
fail:
    return err;
}

static rp_err add_trace(const rp_link_trace *trace, rp_arena *arena, const char *indent,
                        char **text) {
    char *line = NULL;
    rp_err err = RP_OK;
    RP_TRY(trace ? rp_link_trace_text(trace, arena, &line) : RP_OK);
    RP_TRY(rp_arena_printf(arena, text, "%s%strace: %s\n", *text, indent, line ? line : "none"));
fail:
    return err;
}

static rp_err add_key(const rp_link_profile *profile, const profile_key *key, rp_arena *arena,
                      const char *indent, char **text) {
    const void *value = value_in(profile, key);
    switch (key->kind) {
    case NUMBER:
        return rp_arena_printf(arena, text, "%s%s%s: %.17g\n", *text, indent, key->name,
                               *(const double *)value);
    case OUTAGE:
        return add_outages(profile, arena, indent, text);
    case FLAG:
        return rp_arena_printf(arena, text, "%s%s%s: %s\n", *text, indent, key->name,
                               *(const bool *)value ? "true" : "false");
    case TRACE:
        return add_trace(profile->trace, arena, indent, text);
    case NAME:
        return rp_arena_printf(arena, text, "%s%s%s: %s\n", *text, indent, key->name,
                               profile->shared[0] ? profile->shared : "none");
    }
    return RP_OK;
}

rp_err rp_link_profile_text(const rp_link_profile *profile, uint32_t set, rp_arena *arena,
                            const char *indent, char **out) {
    char *text;
    rp_err err;
    RP_TRY(rp_arena_string(arena, "", &text));
    for (uint32_t i = 0; i < KEYS; i++) {
        /* the first key is always written, so that the mapping is not empty */
        const bool here = set ? set >> i & 1 : i == 0 || is_set(profile, &keys[i]);
        if (here) {
            RP_TRY(add_key(profile, &keys[i], arena, indent, &text));
        }
    }
    *out = text;
fail:
    return err;
}
