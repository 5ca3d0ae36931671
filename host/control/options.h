/* What a controller is to do: verb, files and options of `ringpipe`. */
#ifndef RP_CONTROL_OPTIONS_H
#define RP_CONTROL_OPTIONS_H

#include "data/data.h"
#include "record/record.h"

typedef enum {
    RP_PURPOSE_TRAIN,
    RP_PURPOSE_EVALUATE,
    RP_PURPOSE_PLAN,    /* runs up to the assignment, then writes plan.json */
    RP_PURPOSE_PROFILE, /* runs up to the profile, then writes profile.json */
    RP_PURPOSE_WARM     /* runs up to the assignment; its kernels stay in the boards' caches */
} rp_controller_purpose;

/* All pointers are borrowed until the controller is closed. */
typedef struct {
    rp_controller_purpose purpose;
    const char *run_path;
    const char *const *set; /* --set assignments */
    uint32_t set_count;
    const char *out;         /* TRAIN: run folder; NULL: runs/<time>-<model>-<schedule>.
                                PLAN, PROFILE: file; NULL: env.result */
    const char *resume;      /* TRAIN: run folder to resume; NULL: a new run */
    const char *plan;        /* TRAIN: plan.json to use; NULL: one is made */
    const char *profile;     /* TRAIN, PLAN: profile.json; NULL: boards are measured */
    const char *profiles;    /* folder of cached board profiles; NULL: nothing is cached */
    const char *executor;    /* executor of the boards; NULL: opencl */
    bool temporary;          /* the folder is deleted after the run and never shown to the user */
    const char *weights;     /* EVALUATE: weights file */
    rp_split split;          /* EVALUATE */
    uint32_t within_s;       /* WARM: seconds that the boards have for it, at least 1 */
    const char *keys_folder; /* for a roster; NULL: the run file names it */
    const char *program;     /* program name in commands that are shown; NULL: ringpipe */
    const char *command;     /* command line that started the run, for about.json; NULL: unknown */
    rp_format format;        /* format of the result */
    double *step_s;          /* PLAN: gets the predicted seconds of a step, 0 if they are unknown;
                                NULL: not wanted */
} rp_controller_options;

#endif
