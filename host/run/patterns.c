#include "run/patterns.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

rp_err rp_patterns_check(const rp_node *patterns) {
    const char *const expected = "expected a pattern like 'layer1.*', or a list of them";
    if (patterns && !rp_node_is_scalar(patterns) &&
        (!rp_node_is_list(patterns) || rp_node_count(patterns) == 0)) {
        return rp_node_fail(patterns, "%s", expected);
    }
    for (uint32_t i = 0; i < rp_patterns_count(patterns); i++) {
        const rp_node *pattern = rp_patterns_at(patterns, i);
        if (!rp_node_is_scalar(pattern) || !rp_node_text(pattern)[0]) {
            return rp_node_fail(pattern, "%s", expected);
        }
    }
    return RP_OK;
}

uint32_t rp_patterns_count(const rp_node *patterns) {
    return !patterns ? 0 : rp_node_is_scalar(patterns) ? 1 : rp_node_count(patterns);
}

const rp_node *rp_patterns_at(const rp_node *patterns, uint32_t index) {
    return rp_node_is_scalar(patterns) ? patterns : rp_node_item(patterns, index);
}

bool rp_pattern_fits(const rp_node *pattern, const char *name) {
    return fnmatch(rp_node_text(pattern), name, 0) == 0;
}

bool rp_patterns_fit(const rp_node *patterns, const char *name) {
    for (uint32_t i = 0; i < rp_patterns_count(patterns); i++) {
        if (rp_pattern_fits(rp_patterns_at(patterns, i), name)) {
            return true;
        }
    }
    return false;
}

const char *rp_names_list(rp_name_at at, const void *of, uint32_t count, char out[RP_NAMES_BYTES]) {
    const size_t end = 40; /* room for what follows */
    size_t used = 0;
    uint32_t i = 0;
    out[0] = '\0';
    for (; i < count; i++) {
        const char *name = at(of, i);
        if (used + strlen(name) + 2 + end > RP_NAMES_BYTES) {
            break;
        }
        used += (size_t)snprintf(out + used, RP_NAMES_BYTES - used, "%s%s", i ? ", " : "", name);
    }
    (void)snprintf(out + used, RP_NAMES_BYTES - used, "%s (%u in all)", i < count ? ", ..." : "",
                   count);
    return out;
}
