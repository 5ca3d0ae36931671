#include "run/init.h"

#include <stdio.h>
#include <string.h>

/* ---- reading --------------------------------------------------------------------------------- */

static size_t count_stars(const char *name) {
    size_t count = 0;
    for (; *name; name++) {
        count += *name == '*';
    }
    return count;
}

static rp_err check_rename(const rp_node *rename) {
    if (rename && !rp_node_is_map(rename)) {
        return rp_node_fail(rename, "expected a map like {name in the file: name in the model}");
    }
    for (uint32_t i = 0; rename && i < rp_node_count(rename); i++) {
        const rp_node *to = rp_node_item(rename, i);
        const char *name = rp_node_is_scalar(to) ? rp_node_text(to) : "";
        const char *from = rp_node_key(rename, i);
        if (!from[0] || !name[0] || count_stars(from) > 1 ||
            count_stars(name) != count_stars(from)) {
            return rp_node_fail(to,
                                "expected the name of a tensor or a layer on both sides, with one "
                                "`*` on both or on neither");
        }
    }
    return RP_OK;
}

rp_err rp_init_parse(rp_arena *arena, rp_node *train, const rp_init **out) {
    rp_node *node = rp_node_find(train, "init");
    rp_init *init;
    rp_err err;
    *out = NULL;
    if (!node || (rp_node_is_scalar(node) && strcmp(rp_node_text(node), "none") == 0)) {
        return RP_OK;
    }
    RP_TRY(RP_ARENA_NEW(arena, 1, &init));
    init->node = node;
    if (rp_node_is_map(node)) {
        RP_TRY(rp_node_need(node, "from"));
        RP_TRY(rp_node_string(node, "from", &init->from));
        init->only = rp_node_find(node, "only");
        init->except = rp_node_find(node, "except");
        init->rename = rp_node_find(node, "rename");
        RP_TRY(rp_node_done(node));
        RP_TRY(rp_patterns_check(init->only));
        RP_TRY(rp_patterns_check(init->except));
        RP_TRY(check_rename(init->rename));
    } else {
        RP_TRY(rp_node_string(train, "init", &init->from));
    }
    *out = init;
fail:
    return err;
}

/* ---- asking ---------------------------------------------------------------------------------- */

bool rp_init_takes(const rp_init *init, const char *name) {
    return (!init->only || rp_patterns_fit(init->only, name)) &&
           !rp_patterns_fit(init->except, name);
}

/* Does `rule`, which may have a `*`, match the whole name, or a prefix of it that ends before a '.'
 * (a layer's name)? Then the match ends at *rest, and the star stands for the text from *star. */
static bool match_rule(const char *rule, const char *name, size_t *star, size_t *rest) {
    const size_t all = strlen(name);
    const size_t head = strcspn(rule, "*");
    const size_t tail = rule[head] ? strlen(rule + head + 1) : 0;
    if (strncmp(rule, name, head) != 0) {
        return false;
    }
    *star = *rest = head;
    if (!rule[head]) {
        return !name[head] || name[head] == '.';
    }
    /* the longest match wins */
    for (size_t end = all; end >= head + tail; end--) {
        if ((end == all || name[end] == '.') &&
            strncmp(name + end - tail, rule + head + 1, tail) == 0) {
            *star = head;
            *rest = end;
            return true;
        }
    }
    return false;
}

/* `to` with its star filled in, then the rest of the name. */
static void apply_rule(const char *rule, const char *to, const char *name, size_t star, size_t rest,
                       char out[RP_INIT_NAME_BYTES]) {
    const size_t head = strcspn(to, "*");
    const size_t tail = rule[star] ? strlen(rule + star + 1) : 0;
    (void)snprintf(out, RP_INIT_NAME_BYTES, "%.*s%.*s%s%s", (int)head, to,
                   (int)(rest - tail - star), name + star, to[head] ? to + head + 1 : "",
                   name + rest);
}

void rp_init_rename(const rp_init *init, const char *name, char out[RP_INIT_NAME_BYTES],
                    uint32_t *rule) {
    size_t star;
    size_t rest;
    *rule = RP_INIT_NO_RULE;
    for (uint32_t i = 0; init->rename && i < rp_node_count(init->rename); i++) {
        const char *from = rp_node_key(init->rename, i);
        if (match_rule(from, name, &star, &rest)) {
            *rule = i;
            apply_rule(from, rp_node_text(rp_node_item(init->rename, i)), name, star, rest, out);
            return;
        }
    }
    (void)snprintf(out, RP_INIT_NAME_BYTES, "%s", name);
}
