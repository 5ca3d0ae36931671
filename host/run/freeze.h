/* `train.freeze`: layers of the model, by patterns of their names, that are not trained. */
#ifndef RP_RUN_FREEZE_H
#define RP_RUN_FREEZE_H

#include "nn/model.h"
#include "run/patterns.h"

/* Gives every layer of the model file's tree whose name fits a pattern `train: false`; NULL: none
 * does. errors USAGE with file, line and key: not a pattern, or one that fits no layer */
rp_err rp_freeze_layers(rp_arena *arena, const rp_node *patterns, rp_node *model) RP_MUST_CHECK;

/* Is there anything left to be trained? errors USAGE naming `path`, the run file: frozen layers
 * have all the parameters */
rp_err rp_freeze_check(const char *path, const rp_model *model) RP_MUST_CHECK;

#endif
