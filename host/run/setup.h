/* The settings of a ring that can change after the run file was read, as one value: boards, cut,
 * codecs, sizes of microbatches, chosen parts of the method.
 *
 * A setup is copied by assignment. Its arrays are borrowed: the maker of a setup keeps them as long
 * as the setup and run files made from it are in use, or calls rp_setup_copy(). To evaluate an
 * alternative, copy a setup, change its numbers or point to other arrays, and make a run file from
 * it with rp_setup_run(). */
#ifndef RP_RUN_SETUP_H
#define RP_RUN_SETUP_H

#include "run/runfile.h"

typedef struct {
    uint32_t boards;         /* in the ring, at least 1 */
    uint32_t spares;         /* after them in `roster` */
    rp_roster_entry *roster; /* [boards + spares], in order; NULL: agents of this machine */

    uint32_t stages; /* of the ring, at least 1 */
    rp_cut cut;      /* for the next plan; stage_count 0: not chosen yet. After a change of
                        `stages` it has the old number until a new cut is chosen */
    const uint32_t
        *group; /* first board of each stage of `cut`, then the end; NULL: one board each */
    const double *share;        /* by board, as in rp_plan_options; NULL if `group` is NULL */
    const rp_codec (*codec)[2]; /* by boundary: activations, gradients; NULL: not chosen */
    uint32_t codec_stages;      /* number of stages for `codec`; 0 if it is NULL */
    const uint32_t (*size)[2];  /* samples by stage: forward, backward; NULL: not chosen */
    uint32_t size_stages;       /* number of stages for `size`; 0 if it is NULL */
    uint32_t micro;             /* samples of a microbatch, 1 to the run's batch */
    rp_codec input_codec;

    uint32_t schedule;       /* index in the run's schedules; 0: the run's own */
    uint32_t split_count;    /* as in rp_method, for the present boards */
    uint32_t whole;          /* bit k: stage k is not split */
    uint32_t said_count;     /* split_count for all boards of the run, from run file or planner */
    uint32_t said_whole;     /* `whole` for all boards of the run, from run file or planner */
    uint32_t advance;        /* up to RP_ADVANCE_MAX */
    uint32_t advance_stages; /* stages for which replicas and alpha follow from `advance`; 0: the
                                method keeps its own */
    uint32_t ahead_count;    /* as in rp_method */
    uint16_t ahead[RP_SPLIT_STAGES_MAX];

    bool micro_auto, boards_auto, schedule_auto, ahead_auto; /* still to be chosen */

    uint64_t step_first; /* first step after this start of the run, or of this assignment */
    double lines_s;      /* age of emulated lines, in seconds */
} rp_setup;

/* Memory for the arrays of one setup. */
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
/* Copies a setup with its arrays into `arrays`, which may be the arrays of `setup` itself. */
rp_setup rp_setup_copy(const rp_setup *setup, rp_setup_arrays *arrays);

/* The setup of a run file. It borrows the arrays of `run`. */
rp_setup rp_setup_of(const rp_runfile *run);

/* Makes the run file with the values of this setup. `run`: the run file that was read, or a former
 * result. It may be `out` itself only if `setup` originates from rp_setup_of() it. *out borrows
 * from both. */
void rp_setup_run(const rp_runfile *run, const rp_setup *setup, rp_runfile *out);

/* Takes the run's schedules.at[index], and drops choices made for the former schedule. */
void rp_setup_take_schedule(rp_setup *setup, const rp_runfile *run, uint32_t index);
/* Sets `advance`; replicas and alpha follow from it for the setup's stages. */
void rp_setup_take_advance(rp_setup *setup, uint32_t advance);

/* Drops sizes of microbatches that the planner chose; those of the run file stay. */
void rp_setup_reopen_sizes(rp_setup *setup, const rp_runfile *run);

/* Are the choices equal? Compares contents; ignores step_first, lines_s and places of boards. */
bool rp_setup_equal(const rp_setup *a, const rp_setup *b);
/* What is wrong with it for this run; NULL: it is valid. */
const char *rp_setup_check(const rp_setup *setup, const rp_runfile *run);

/* Writes one line for a checkpoint, "version=2 boards=a,b,c stages=3 cut=conv1,fc1,fc2 ...",
 * without spares, step_first and lines_s. New optional words may be added to the format; any other
 * change needs a new version. errors MEMORY */
rp_err rp_setup_text(rp_arena *arena, const rp_setup *setup, const rp_runfile *run,
                     char **out) RP_MUST_CHECK;
/* Reads a setup from such a text. Values that it lacks are those of rp_setup_of(run); so are the
 * boards if not all are in the roster, and the schedule if its index is too large. The cut is empty
 * if it names unknown layers. errors FORMAT naming `path` and the word */
rp_err rp_setup_read(rp_arena *arena, const char *text, const rp_runfile *run, const char *path,
                     rp_setup *out) RP_MUST_CHECK;

/* Readers of parts of the text, which older checkpoints store separately. false: invalid. */
/* Names of first layers, with commas. *out is empty if a name is unknown. errors MEMORY */
rp_err rp_setup_read_cut(rp_arena *arena, const rp_model *model, const char *names,
                         rp_cut *out) RP_MUST_CHECK;
/* "f16/int8,f32/f32": activations/gradients of each boundary; out: [stages - 1]. */
bool rp_setup_read_codecs(const char *text, uint32_t stages, rp_codec (*out)[2]);
/* "8/16,4/4": samples forward/backward of each stage, 1 to `batch`; out: [stages]. */
bool rp_setup_read_sizes(const char *text, uint32_t stages, uint32_t batch, uint32_t (*out)[2]);

#endif
