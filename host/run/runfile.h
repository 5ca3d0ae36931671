/* A run file, read, checked and resolved: everything `ringpipe train` needs before it starts
 * anything. Every error names file, line and key. */
#ifndef RP_RUN_RUNFILE_H
#define RP_RUN_RUNFILE_H

#include "data/data.h"
#include "link/link.h"
#include "run/codecs.h"
#include "run/freeze.h"
#include "run/init.h"
#include "run/lanes.h"
#include "run/memories.h"
#include "run/schedules.h"
#include "run/sizes.h"
#include "run/spares.h"
#include "run/throttles.h"
#include "stage/job.h"
#include "transport/hops.h"

enum { RP_COPY_STEPS_MAX = 1 << 30, RP_PLAN_SHARE_MAX = 8 };

typedef enum { RP_BEST_ACCURACY, RP_BEST_LOSS } rp_best_by;

/* What the run does about boards that are lost, or compute wrong. */
typedef struct {
    uint32_t at_least;   /* boards of a roster that a run may go on with */
    uint32_t wait_s;     /* for a board that is lost; 0: the run stops at once */
    double spare_wait_s; /* .. for one whose agent has ended, where a spare is left */
    uint32_t orphan_s;   /* that boards keep what they hold when this host is lost */
    uint32_t copy_steps; /* boards keep a copy of a neighbour's state so often; 0 = never */
    bool copy_auto;      /* .. the first ones; from then on as often as they may cost */
    uint32_t verify;     /* one of so many microbatches is computed again; 0: none */
} rp_runfile_safety;

/* When the model is scored, and what follows from that. */
typedef struct {
    uint32_t eval_epochs;      /* evaluate every so many epochs; 0: at the end only */
    uint64_t eval_steps;       /* and every so many steps; 0: not for that */
    uint32_t recalibrate;      /* batches that renew the batch statistics of a centre */
    rp_best_by best_by;        /* what makes one model better than another */
    bool keep_best;            /* best.safetensors */
    uint32_t without_gain;     /* stop after so many evaluations without a better one; 0: never */
    uint32_t non_finite_steps; /* stop when the loss of so many in a row is not finite; 0: never */
} rp_runfile_score;

/* What is recorded besides losses. */
typedef struct {
    uint32_t trace_mib;       /* of trace.json at most; 0: there is none */
    bool histograms;          /* of the weights, with every checkpoint */
    uint64_t histogram_steps; /* and a checkpoint every so many steps; 0: none for that */
} rp_runfile_record;

/* Keys of `plan`. */
typedef struct {
    double drift;   /* share that ops may differ from what was predicted; 0: none */
    uint32_t share; /* boards that may share a stage, at most; 1: none do */
    double seconds; /* that a search for a plan may take; 0: until it ends */
} rp_runfile_plan;

typedef struct {
    rp_node *root;
    const char *path;   /* of the file */
    const char *folder; /* of the run whose file it is, when a folder was named, or NULL */
    const char *model_name;
    rp_node *model_root;
    rp_model *model;
    rp_data data;
    bool data_open;

    uint32_t boards;
    uint32_t stages;         /* of all boards: each holds method.chunks of them */
    bool local;              /* agents are started here */
    rp_roster_entry *roster; /* when not local, one a board, and the spares behind them */
    uint32_t spares;
    const char *listen;            /* where boards dial this host, tcp://HOST:PORT, or NULL */
    const char *keys;              /* folder of this host's keys for a roster, or NULL */
    const char *board;             /* profile of local agents */
    uint32_t threads;              /* of a local agent; 0: cores shared out fairly */
    const uint32_t *board_threads; /* [boards]: of each; NULL: all have `threads` */
    rp_runfile_safety safety;
    rp_memories memory; /* that boards may use of their devices' */
    bool emulate;
    rp_link_profile link; /* of every wire, and what is different on some: */
    rp_link_hops hops;
    rp_throttles throttle;
    rp_codec input_codec;
    bool inputs_auto;           /* it was chosen here, */
    const char *inputs_why;     /* .. and this is why it is not uint8; NULL: it could be */
    const rp_codec (*codec)[2]; /* by boundary, [stages - 1]; NULL: nothing is said, so f32 */
    bool codec_auto;            /* the controller chooses them */
    double codec_max_error;     /* .. and backs off where they lose more: relative L2 error */

    rp_lanes_keys lanes;
    uint32_t epochs;
    uint64_t steps; /* of the whole run, both bounds applied */
    uint64_t epoch_steps;
    uint32_t batch, micro;
    bool micro_auto; /* the planner may choose another one */
    uint64_t seed;
    const rp_init *init;   /* a file of weights to start from, or NULL */
    const rp_node *freeze; /* patterns of layers that are not trained, or NULL */
    bool guard;
    rp_runfile_score score;
    rp_runfile_record record;
    uint64_t step_first;       /* set when a checkpoint is gone on from */
    uint64_t checkpoint_steps; /* besides every epoch's end; 0: only there */
    rp_runfile_plan plan;
    bool boards_auto; /* a plan may leave out boards, and change their order */

    const rp_loss_kind *loss;
    float label_smoothing;
    rp_method method;
    rp_sizes sizes; /* of microbatches, by stage and direction */
    rp_optim optim;
    rp_lr_schedule lr;
    rp_schedules schedules;  /* plan.schedules: the run's own, and others */
    uint32_t schedule_index; /* the one in effect; 0: the run's own */
    bool schedule_auto;      /* the planner may take one of the others */
    rp_node *schedule_root;  /* of the one in effect, where it is not `root` */
    bool cut_auto;
    rp_cut cut; /* when not auto */
    bool
        recompute_auto; /* `recompute: auto`: where memory is short; else as rp_again_read() says */
} rp_runfile;

/* `path`: a run file, or the folder of a run, which has all but the data. Paths in the file are
 * meant from its folder. `set` are the --set assignments. Opens the data set. Everything lives in
 * `arena`; close it with rp_runfile_close(). errors  USAGE, SHAPE, IO, FORMAT: exit code 2 */
rp_err rp_runfile_read(rp_arena *arena, const char *path, const char *const *set,
                       uint32_t set_count, rp_runfile *out) RP_MUST_CHECK;
void rp_runfile_close(rp_runfile *run);

/* This host's keys, for a roster: of `folder`, else of the run file's `keys`, else of the account.
 * errors  those of rp_keys_read() */
rp_err rp_runfile_read_keys(const rp_runfile *run, const char *folder,
                            rp_keypair *out) RP_MUST_CHECK;
/* `cut: auto` finds a cut: every board has a layer; of two neighbours one can be dialled. For runs
 * without a plan, in which boards may share a stage. errors USAGE */
rp_err rp_runfile_check_cut(const rp_runfile *run) RP_MUST_CHECK;

/* The board with the forward of a stage: each stage is on the next board, and round to the first
 * again. The one with its backward is another one where the stage is split. */
static inline uint32_t rp_runfile_forward_place(const rp_runfile *run, uint32_t stage) {
    return stage % run->boards;
}
static inline uint32_t rp_runfile_backward_place(const rp_runfile *run, uint32_t stage) {
    return rp_method_is_split(&run->method, stage)
               ? rp_method_backward_node(&run->method, run->stages, stage)
               : rp_runfile_forward_place(run, stage);
}

/* The schedule is schedules.at[index] from here on. */
void rp_runfile_take_schedule(rp_runfile *run, uint32_t index);

/* The run from `step_first` on, as stage 0's schedule sees it. */
rp_sched_shape rp_runfile_sched_shape(const rp_runfile *run, uint64_t step_first);

/* How slow the board at a place of the ring is made. */
const rp_throttle *rp_runfile_throttle_of(const rp_runfile *run, uint32_t board);

/* Bytes that the board at a place of the ring may use of its device's memory; 0: all of them. */
uint64_t rp_runfile_memory_of(const rp_runfile *run, uint32_t board);

/* A board's own: who may connect to it, by their keys. */
typedef struct {
    const char *host;
    const char *const *board; /* neighbours that dial it, in their order */
    uint32_t board_count;
    uint32_t place; /* its own in the ring */
} rp_runfile_peers;

/* The assignment of one stage as YAML text: see stage/job.h. `peers`: NULL for a job that no board
 * gets. */
rp_err rp_runfile_assignment(rp_arena *arena, const rp_runfile *run, const rp_cut *cut,
                             uint32_t stage, const rp_runfile_peers *peers,
                             char **out) RP_MUST_CHECK;

#endif
