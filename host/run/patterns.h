/* Shell patterns of names in a run file, and lists of names in messages. */
#ifndef RP_RUN_PATTERNS_H
#define RP_RUN_PATTERNS_H

#include "base/config.h"

enum { RP_NAMES_BYTES = 420 };

/* Checks that `patterns` is NULL, a scalar, or a list of scalars, none empty. errors USAGE */
rp_err rp_patterns_check(const rp_node *patterns) RP_MUST_CHECK;
uint32_t rp_patterns_count(const rp_node *patterns); /* 0 for NULL */
const rp_node *rp_patterns_at(const rp_node *patterns, uint32_t index);
bool rp_pattern_fits(const rp_node *pattern, const char *name);
/* Does any pattern match? */
bool rp_patterns_fit(const rp_node *patterns, const char *name);

typedef const char *(*rp_name_at)(const void *of, uint32_t index);
/* Writes "a, b, c (3 in all)" to `out`, with fewer names if they do not fit, and returns it. */
const char *rp_names_list(rp_name_at at, const void *of, uint32_t count, char out[RP_NAMES_BYTES]);

#endif
