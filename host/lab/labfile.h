/* The file of a comparison: a base run file and the settings that are put over it.
 *
 *   base: run.yaml                # relative to this file
 *   description: What is compared, and why.
 *   models: [cnn-small]           # default: the base's
 *   seeds: [1, 2, 3]
 *   baseline: gpipe               # optional: paired differences against it
 *   goal: 0.8                     # optional: report seconds until this accuracy
 *   methods:
 *     gpipe: {schedule: gpipe}
 *     async: {schedule: async, optimizer.lr: [0.01, 0.02]}
 *   tune: {metric: accuracy, seeds: [101], set: {train.epochs: 1}}
 *
 * A list under a key of a method is a sweep over its items. A value that is itself a list is
 * written inside another list: `cut: [[conv2, fc1]]`. */
#ifndef RP_LAB_LABFILE_H
#define RP_LAB_LABFILE_H

#include "base/config.h"

enum {
    RP_LAB_METHODS_MAX = 64,
    RP_LAB_MODELS_MAX = 32,
    RP_LAB_SEEDS_MAX = 256,
    RP_LAB_POINTS_MAX = 256, /* of one method */
    RP_LAB_RUNS_MAX = 20000,
    RP_LAB_NAME_BYTES = 41
};

/* One choice of values of a method. */
typedef struct {
    const char *label;      /* "lr=0.02", "" when the method has no sweep */
    const char *tag;        /* the label as part of a file name */
    const char *const *set; /* KEY=VALUE as for --set, in the file's order */
    uint32_t set_count;
} rp_lab_point;

typedef struct {
    const char *name;
    const rp_node *node; /* its map, for messages */
    const rp_lab_point *point;
    uint32_t point_count;
    const char *sweep;    /* the only swept key; NULL: none or several */
    const double *number; /* by point; NULL unless all values of that key are numbers */
} rp_lab_method;

typedef enum { RP_LAB_AUTO, RP_LAB_ACCURACY, RP_LAB_LOSS } rp_lab_metric;

typedef struct {
    const char *path;
    const char *description;   /* "": none */
    const char *base;          /* resolved against the file's folder */
    const char *const *model;  /* as written in the file */
    const char *const *folder; /* by model: its name as a folder name */
    uint32_t model_count;
    const uint64_t *seed; /* first all of `seeds`, then seeds that only tuning uses */
    uint32_t seed_count;  /* of `seeds` */
    uint32_t seed_all;    /* seeds that only tuning uses included */
    const rp_lab_method *method;
    uint32_t method_count;
    uint32_t baseline; /* method_count: none */
    double goal;       /* an accuracy; 0: none */
    bool tune;
    rp_lab_metric metric;
    const bool *tunes;             /* by seed: used for tuning */
    const rp_lab_method *tune_set; /* tune.set: one point, put over runs that tune; NULL: none */
} rp_labfile;

/* Reads and checks the file; *out points into `arena`. Of the base only the model is read; plan.h
 * checks the rest.
 * errors  USAGE with file and line */
rp_err rp_labfile_read(rp_arena *arena, const char *path, rp_labfile *out) RP_MUST_CHECK;

/* Node whose line an error names when the settings of a method are refused with `message`: the key
 * in the message, or the method. */
const rp_node *rp_labfile_blame(const rp_lab_method *method, const char *message);

#endif
