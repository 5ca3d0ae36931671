/* `ringpipe inspect MODEL.yaml`: the layers of a model file, with what they cost. */
#ifndef RP_CLI_INSPECT_MODEL_H
#define RP_CLI_INSPECT_MODEL_H

#include "cli/cli.h"

/* Is the word a model: a file that ends with .yaml or .yml, or a name of the zoo and no file? */
bool rp_cli_is_model(const char *word);
/* errors  USAGE and SHAPE as of a run with this model */
rp_err rp_cli_inspect_model(rp_arena *arena, const rp_cli_args *args) RP_MUST_CHECK;

#endif
