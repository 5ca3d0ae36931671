/* The models that the program brings along: files NAME.yaml in one folder. */
#ifndef RP_RUN_ZOO_H
#define RP_RUN_ZOO_H

#include "nn/model.h"

/* The folder, of RINGPIPE_MODELS or the build's. */
const char *rp_zoo_folder(void);
/* Their names, sorted. errors  IO naming the folder; MEMORY */
rp_err rp_zoo_names(rp_arena *arena, const char *const **out, uint32_t *count) RP_MUST_CHECK;
/* The file that `name` means where a model is named: a path where it has a '/' or ends with .yaml,
 * else one of the zoo, which need not exist. errors MEMORY */
rp_err rp_zoo_path(rp_arena *arena, const char *name, const char **out) RP_MUST_CHECK;

/* What a model file leaves to its data. */
typedef struct {
    rp_shape input;   /* one sample; dims 0: not given */
    uint32_t classes; /* 0: not given */
} rp_zoo_data;

/* A model file outside of any run. What it leaves to its data and `data` does not say is assumed:
 * 3 x 224 x 224 and 1000 classes for torchvision's, else 3 x 32 x 32 and 10; *assumed says so.
 * errors  as rp_model_parse() */
rp_err rp_zoo_open(rp_arena *arena, const char *path, const rp_zoo_data *data, bool *assumed,
                   rp_model **out) RP_MUST_CHECK;

#endif
