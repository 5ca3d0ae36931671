/* `train.init`: a file of weights to start from, all of it or a part, under other names.
 *
 *   init: weights.safetensors
 *   init: {from: weights.safetensors, only: [conv*, bn1.*], except: fc.*, rename: {old: new}}
 *
 * `only` and `except` choose among the tensors of the model by shell patterns; those that are not
 * chosen start as they would without a file. A rename gives a tensor of the file another name: the
 * names of a tensor, of a layer (all of its tensors), or either with one `*`. The first one that
 * fits counts. */
#ifndef RP_RUN_INIT_H
#define RP_RUN_INIT_H

#include "run/patterns.h"

enum { RP_INIT_NAME_BYTES = 256 };

typedef struct {
    const char *from;    /* the safetensors file */
    const rp_node *node; /* what was written, for messages */
    /* NULL: not given. Patterns are a scalar or a list of scalars, `rename` is a map of scalars. */
    const rp_node *only, *except, *rename;
} rp_init;

/* *out is NULL where nothing or `none` is said. errors USAGE with file, line and key */
rp_err rp_init_parse(rp_arena *arena, rp_node *train, const rp_init **out) RP_MUST_CHECK;

/* Is the model's tensor `name` to come from the file? */
bool rp_init_takes(const rp_init *init, const char *name);
/* What the file's tensor `name` is called in the model: itself unless a rule fits. *rule: which,
 * or RP_INIT_NO_RULE. A name that does not fit into `out` is cut off. */
#define RP_INIT_NO_RULE UINT32_MAX
void rp_init_rename(const rp_init *init, const char *name, char out[RP_INIT_NAME_BYTES],
                    uint32_t *rule);

#endif
