/* `train.freeze`: patterns of names of layers that are not trained. */
#ifndef RP_RUN_FREEZE_H
#define RP_RUN_FREEZE_H

#include "nn/model.h"
#include "run/patterns.h"

/* Sets `train: false` in every layer of the model file's tree whose name matches a pattern.
 * `patterns` NULL: no layer. errors USAGE with file, line and key: invalid pattern, or a pattern
 * that matches no layer */
rp_err rp_freeze_layers(rp_arena *arena, const rp_node *patterns, rp_node *model) RP_MUST_CHECK;

/* errors USAGE naming `path`, the run file: every layer with parameters is frozen */
rp_err rp_freeze_check(const char *path, const rp_model *model) RP_MUST_CHECK;

#endif
