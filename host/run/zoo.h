/* The models that come with the program: files NAME.yaml in one folder. */
#ifndef RP_RUN_ZOO_H
#define RP_RUN_ZOO_H

#include "nn/model.h"

/* Their folder: RINGPIPE_MODELS, or the one set by the build. */
const char *rp_zoo_folder(void);
/* Sorted names of the models. errors  IO naming the folder; MEMORY */
rp_err rp_zoo_names(rp_arena *arena, const char *const **out, uint32_t *count) RP_MUST_CHECK;
/* The model file that `name` means: `name` itself if it contains '/' or ".yaml", else a file of the
 * zoo, which need not exist. errors MEMORY */
rp_err rp_zoo_path(rp_arena *arena, const char *name, const char **out) RP_MUST_CHECK;

/* Opens a model file outside of a run. Properties that neither the file nor `data` sets are
 * assumed: 3 x 224 x 224 and 1000 classes for models of torchvision, 64 of 65 tokens for models of
 * texts, else 3 x 32 x 32 and 10;
 * *assumed is true then. errors  as rp_model_parse() */
rp_err rp_zoo_open(rp_arena *arena, const char *path, const rp_model_data *data, bool *assumed,
                   rp_model **out) RP_MUST_CHECK;

#endif
