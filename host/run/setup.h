/* What a ring runs with, as far as that varies after the run file was read: its boards, the cut,
 * codecs, sizes of microbatches, the chosen parts of the method. One value holds all of it.
 *
 * A setup is copied by assignment. Its arrays are borrowed: whoever makes a setup keeps them as
 * long as the setup and the run files made of it are used, or takes rp_setup_copy(). To ask "what
 * if", copy a setup, point to other arrays or change numbers, and make the run file of it with
 * rp_setup_run(). */
#ifndef RP_RUN_SETUP_H
#define RP_RUN_SETUP_H

#include "run/runfile.h"

typedef struct {
    uint32_t boards;         /* in the ring, at least 1 */
    uint32_t spares;         /* after them in `roster` */
    rp_roster_entry *roster; /* [boards + spares], in order; NULL: agents of this machine */

    uint32_t stages;       /* of the ring, at least 1 */
    rp_cut cut;            /* for the next plan; stage_count 0: no cut is chosen yet. It may be of
                              another number of stages until the next one is chosen */
    const uint32_t *group; /* first board of each stage of `cut`, and the end; NULL: not shared */
    const double *share;   /* by board, as rp_plan_options has it; NULL if `group` is */
    const rp_codec (*codec)[2]; /* by boundary, activations and gradients; NULL: none is chosen */
    uint32_t codec_stages;      /* stages that `codec` is for; 0 if it is NULL */
    const uint32_t (*size)[2];  /* samples by stage, forward and backward; NULL: none is chosen */
    uint32_t size_stages;       /* stages that `size` is for; 0 if it is NULL */
    uint32_t micro;             /* samples of a microbatch, 1 to the run's batch */
    rp_codec input_codec;

    uint32_t schedule;       /* index in the run's schedules; 0: the run's own */
    uint32_t split_count;    /* as in rp_method, for the boards that there are now */
    uint32_t whole;          /* bit k: stage k is not split */
    uint32_t said_count;     /* the same two, for all boards of the run: as the run file says, or */
    uint32_t said_whole;     /* as the planner has chosen */
    uint32_t advance;        /* up to RP_ADVANCE_MAX */
    uint32_t advance_stages; /* stages for which replicas and alpha follow from `advance`; 0: the
                                method keeps what it has */
    uint32_t ahead_count;    /* as in rp_method */
    uint16_t ahead[RP_SPLIT_STAGES_MAX];

    /* still to be chosen */
    bool micro_auto, boards_auto, schedule_auto, ahead_auto;

    uint64_t step_first; /* step at which this life of the run, or this assignment, begins */
    double lines_s;      /* age of emulated lines, in seconds */
} rp_setup;

/* Room for the arrays of one setup. */
typedef struct {
    uint32_t first[RP_CUT_STAGES_MAX + 1], group[RP_CUT_STAGES_MAX + 1];
    double share[RP_CUT_STAGES_MAX];
    rp_codec codec[RP_CUT_STAGES_MAX][2];
    uint32_t size[RP_CUT_STAGES_MAX][2];
    rp_roster_entry *roster; /* [boards + spares] of the run; NULL without a roster */
} rp_setup_arrays;
/* errors MEMORY */
rp_err rp_setup_arrays_new(rp_arena *arena, const rp_runfile *run,
                           rp_setup_arrays **out) RP_MUST_CHECK;
/* A copy that has its arrays there. They may be those of `setup` already. */
rp_setup rp_setup_copy(const rp_setup *setup, rp_setup_arrays *arrays);

/* What the run file runs with. Its arrays are those of `run`. */
rp_setup rp_setup_of(const rp_runfile *run);

/* The run file as it runs with this setup. `run`: the run file that was read, or a former result,
 * which may be `out` itself only if rp_setup_of() it is the setup's origin. *out borrows from both.
 */
void rp_setup_run(const rp_runfile *run, const rp_setup *setup, rp_runfile *out);

/* The schedule is the run's schedules.at[index] from here on; what was chosen of the former one is
 * dropped. */
void rp_setup_take_schedule(rp_setup *setup, const rp_runfile *run, uint32_t index);
/* `advance`, with the replicas and alpha that follow from it for the setup's stages. */
void rp_setup_take_advance(rp_setup *setup, uint32_t advance);

/* Sizes of microbatches that the planner has chosen are open again; those of the run file stay. */
void rp_setup_reopen_sizes(rp_setup *setup, const rp_runfile *run);

/* The same choices? Compares contents; ignores step_first, lines_s and places of boards. */
bool rp_setup_equal(const rp_setup *a, const rp_setup *b);
/* What is wrong with it for this run; NULL: it is valid. */
const char *rp_setup_check(const rp_setup *setup, const rp_runfile *run);

/* One line for a checkpoint, "version=2 boards=a,b,c stages=3 cut=conv1,fc1,fc2 ...", without
 * spares, step_first and lines_s. An optional word may be added to it; anything else needs a new
 * version. errors MEMORY */
rp_err rp_setup_text(rp_arena *arena, const rp_setup *setup, const rp_runfile *run,
                     char **out) RP_MUST_CHECK;
/* The setup that such a text has; what the text lacks is as in rp_setup_of(run). The cut is empty
 * if it names layers that the model does not have; boards, if they are not all in the roster, and
 * the schedule, if the run has fewer, are the run's. errors FORMAT naming `path` and the word */
rp_err rp_setup_read(rp_arena *arena, const char *text, const rp_runfile *run, const char *path,
                     rp_setup *out) RP_MUST_CHECK;

/* Parts of the text, which checkpoints of older programs have by themselves. False: invalid. */
/* Names of first layers. *out is empty if they are not the model's. errors MEMORY */
rp_err rp_setup_read_cut(rp_arena *arena, const rp_model *model, const char *names,
                         rp_cut *out) RP_MUST_CHECK;
/* "f16/int8,f32/f32": of boundaries; `out` has room for `stages` - 1. */
bool rp_setup_read_codecs(const char *text, uint32_t stages, rp_codec (*out)[2]);
/* "8/16,4/4": of stages, 1 to `batch`. */
bool rp_setup_read_sizes(const char *text, uint32_t stages, uint32_t batch, uint32_t (*out)[2]);

#endif
