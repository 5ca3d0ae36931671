/* What a controller is to do: the verb of `ringpipe`, its files and its options. */
#ifndef RP_CONTROL_OPTIONS_H
#define RP_CONTROL_OPTIONS_H

#include "data/data.h"
#include "record/record.h"

typedef enum {
    RP_PURPOSE_TRAIN,
    RP_PURPOSE_EVALUATE,
    RP_PURPOSE_PLAN,    /* up to the assignment, then plan.json */
    RP_PURPOSE_PROFILE, /* up to the profile, then profile.json */
    RP_PURPOSE_WARM     /* up to the assignment, whose kernels stay in the boards' caches */
} rp_controller_purpose;

/* Borrowed as long as the controller lives. */
typedef struct {
    rp_controller_purpose purpose;
    const char *run_path;
    const char *const *set; /* --set assignments */
    uint32_t set_count;
    const char *out;         /* TRAIN: run folder; NULL: runs/<time>-<model>-<schedule>.
                                PLAN, PROFILE: file; NULL: env.result */
    const char *resume;      /* TRAIN: run folder to go on in, or NULL */
    const char *plan;        /* TRAIN: plan.json to run by; NULL: one is made */
    const char *profile;     /* TRAIN, PLAN: profile.json; NULL: boards are measured */
    const char *profiles;    /* folder of profiles of boards, for other runs; NULL: none is kept */
    const char *executor;    /* that the boards have; NULL: opencl */
    bool temporary;          /* the folder is gone after the run: nobody is told of it */
    const char *weights;     /* EVALUATE: weights file */
    rp_split split;          /* EVALUATE */
    uint32_t within_s;       /* WARM: that the boards have for it, 1 at least */
    const char *keys_folder; /* for a roster; NULL: as the run file says */
    const char *program;     /* for commands that are shown; NULL: ringpipe */
    const char *command;     /* that started this, for about.json; NULL: not known */
    rp_format format;        /* of the result */
} rp_controller_options;

#endif
