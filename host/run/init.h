/* `train.init`: a file of weights to start from, whole or in part, with or without renaming.
 *
 *   init: weights.safetensors
 *   init: {from: weights.safetensors, only: [conv*, bn1.*], except: fc.*, rename: {old: new}}
 *
 * `only` and `except` choose tensors of the model by shell patterns; the rest are initialised as
 * without a file. A rename maps a name in the file to a name in the model: that of a tensor, of a
 * layer (all of its tensors), or either with one `*`. The first rule that matches applies. */
#ifndef RP_RUN_INIT_H
#define RP_RUN_INIT_H

#include "run/patterns.h"

enum { RP_INIT_NAME_BYTES = 256 };

typedef struct {
    const char *from;    /* the safetensors file */
    const rp_node *node; /* of the run file, for messages */
    /* NULL: not set. Patterns are a scalar or a list of scalars, `rename` is a map of scalars. */
    const rp_node *only, *except, *rename;
} rp_init;

/* *out is NULL if the key is missing or `none`. errors USAGE with file, line and key */
rp_err rp_init_parse(rp_arena *arena, rp_node *train, const rp_init **out) RP_MUST_CHECK;

/* Is the model's tensor `name` taken from the file? */
bool rp_init_takes(const rp_init *init, const char *name);
/* The name in the model of the file's tensor `name`, which is unchanged if no rule matches. *rule:
 * index of the rule, or RP_INIT_NO_RULE. A name that is too long for `out` is truncated. */
#define RP_INIT_NO_RULE UINT32_MAX
void rp_init_rename(const rp_init *init, const char *name, char out[RP_INIT_NAME_BYTES],
                    uint32_t *rule);

#endif
