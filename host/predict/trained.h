/* The net of a run folder, with the description of its data. */
#ifndef RP_PREDICT_TRAINED_H
#define RP_PREDICT_TRAINED_H

#include "data/describe.h"
#include "predict/network.h"

typedef struct {
    rp_description about;
    const char *weights; /* path */
    rp_network *network;
} rp_trained;

/* What a run folder has of its net. */
typedef struct {
    rp_description about;
    rp_node *model;         /* the tree of model.yaml */
    const char *model_path; /* for messages */
    const char *weights;    /* path */
} rp_trained_files;

/* Reads data.json and model.yaml of a run folder, and finds its weights. `weights`: another file;
 * NULL: the folder's. errors IO, FORMAT, USAGE naming the file and the problem */
rp_err rp_trained_find(rp_arena *arena, const char *folder, const char *weights,
                       rp_trained_files *out) RP_MUST_CHECK;

/* Reads data.json, model.yaml and weights from a run folder. `weights`: another file; NULL: the
 * folder's. errors IO, FORMAT, USAGE, SHAPE naming the file and the problem */
rp_err rp_trained_read(rp_arena *arena, const char *folder, const char *weights,
                       rp_trained *out) RP_MUST_CHECK;
void rp_trained_close(rp_trained *trained); /* before the device */

/* Outputs of a target: of a sample, or of a token or pixel if a sample has several targets. */
uint32_t rp_trained_outputs(const rp_trained *trained);
/* Class targets of a sample. */
uint32_t rp_trained_rows(const rp_trained *trained);

#endif
