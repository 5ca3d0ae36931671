/* A run file, read, checked and resolved: everything that `ringpipe train` needs before it starts
 * a run. Every error names file, line and key. */
#ifndef RP_RUN_RUNFILE_H
#define RP_RUN_RUNFILE_H

#include "data/data.h"
#include "link/link.h"
#include "run/codecs.h"
#include "run/federated.h"
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

/* Handling of boards that are lost or compute wrong results. */
typedef struct {
    uint32_t at_least;   /* smallest number of boards that may continue the run */
    uint32_t wait_s;     /* timeout for a lost board to return; 0: the run stops at once */
    double spare_wait_s; /* the same if its agent has ended and a spare is left */
    uint32_t orphan_s;   /* time for which boards keep their state after the host is lost */
    uint32_t copy_steps; /* steps between copies of a board's state to a neighbour; 0: no copies */
    bool copy_auto;  /* copy_steps is only the first interval; later ones follow from the cost */
    uint32_t verify; /* one microbatch of this number is computed again; 0: no verification */
} rp_runfile_safety;

/* When the model is scored, and the use of its scores. */
typedef struct {
    uint32_t eval_epochs;  /* epochs between evaluations; 0: only at the end of the run */
    uint64_t eval_steps;   /* steps between additional evaluations; 0: none */
    uint32_t recalibrate;  /* batches that renew the batch statistics of a centre */
    rp_best_by best_by;    /* score by which models are compared */
    bool keep_best;        /* write best.safetensors */
    uint32_t without_gain; /* stop after this many evaluations without improvement; 0: never */
    uint32_t
        non_finite_steps; /* stop after this many consecutive NaN or infinite losses; 0: never */
} rp_runfile_score;

/* Optional records of a run. */
typedef struct {
    uint32_t trace_mib;       /* largest size of trace.json in MiB; 0: no trace */
    bool histograms;          /* of the weights, with every checkpoint */
    uint64_t histogram_steps; /* steps between checkpoints made for histograms; 0: none */
} rp_runfile_record;

/* Keys of `plan`. */
typedef struct {
    double drift;   /* tolerated relative deviation from the predicted times; 0: no check */
    uint32_t share; /* largest number of boards that share a stage; 1: no sharing */
    double seconds; /* time limit of a search for a plan; 0: no limit */
} rp_runfile_plan;

typedef struct {
    rp_node *root;
    const char *path;   /* of the file */
    const char *folder; /* run folder that contains the file, or NULL */
    const char *model_name;
    rp_node *model_root;
    rp_model *model;
    rp_data data;
    bool data_open;

    uint32_t boards;
    uint32_t stages;         /* on all boards; each board holds method.chunks of them */
    bool local;              /* this host starts the agents */
    rp_roster_entry *roster; /* [boards + spares], spares last; NULL if local */
    uint32_t spares;
    const char *listen;            /* tcp://HOST:PORT at which boards dial this host, or NULL */
    const char *keys;              /* folder of this host's keys for a roster, or NULL */
    const char *board;             /* profile of local agents */
    uint32_t threads;              /* of a local agent; 0: the cores are divided evenly */
    const uint32_t *board_threads; /* [boards]: threads of each; NULL: all have `threads` */
    rp_runfile_safety safety;
    rp_memories memory;   /* limits on device memory */
    bool emulate;         /* apply `link` and `hops` */
    rp_link_profile link; /* of every wire */
    rp_link_hops hops;    /* exceptions from `link` for some wires */
    rp_throttles throttle;
    rp_codec input_codec;
    bool inputs_auto;           /* input_codec was chosen from the data set */
    const char *inputs_why;     /* why samples cannot travel as uint8; NULL: they can */
    const rp_codec (*codec)[2]; /* [stages - 1] boundaries; NULL: not set, so f32 */
    bool codec_auto;            /* the controller chooses the codecs */
    double codec_max_error;     /* largest relative L2 error that the controller accepts */

    rp_lanes_keys lanes;
    rp_federated_keys federated;
    uint32_t epochs;
    uint64_t steps; /* of the whole run: the smaller of both bounds */
    uint64_t epoch_steps;
    uint32_t batch, micro;
    bool micro_auto; /* the planner may change `micro` */
    uint64_t seed;
    rp_optim_anchor anchor; /* train.anchor */
    const rp_init *init;    /* a file of weights to start from, or NULL */
    const rp_node *freeze;  /* patterns of layers that are not trained, or NULL */
    bool guard;
    rp_dtype storage; /* of activations that wait for their backward: f32, bf16 or f16 */
    rp_runfile_score score;
    rp_runfile_record record;
    uint64_t step_first;       /* step of the checkpoint that the run resumes from, or 0 */
    uint64_t checkpoint_steps; /* steps between checkpoints; 0: only at the end of each epoch */
    rp_runfile_plan plan;
    bool boards_auto; /* a plan may leave out boards and change their order */

    const rp_loss_kind *loss;
    rp_loss_options loss_options;
    rp_method method;
    rp_sizes sizes; /* of microbatches, by stage and direction */
    rp_optim optim;
    rp_lr_schedule lr;
    rp_schedules schedules;  /* the run's own, then those of plan.schedules */
    uint32_t schedule_index; /* the one in effect; 0: the run's own */
    bool schedule_auto;      /* the planner may change schedule_index */
    rp_node *schedule_root;  /* map with the schedule in effect; NULL: `root` */
    bool cut_auto;
    rp_cut cut;          /* if not cut_auto */
    bool recompute_auto; /* `recompute: auto`: only where memory is short */
} rp_runfile;

/* Reads and checks a run. `path`: a run file, or a run folder, which contains everything but the
 * data. Paths in the file are relative to its folder. `set`: the --set assignments. Opens the data
 * set. *out borrows from `arena`; close it with rp_runfile_close(). errors  USAGE, SHAPE, IO,
 * FORMAT: exit code 2 */
rp_err rp_runfile_read(rp_arena *arena, const char *path, const char *const *set,
                       uint32_t set_count, rp_runfile *out) RP_MUST_CHECK;
void rp_runfile_close(rp_runfile *run);

/* Reads this host's keys from `folder`, else from the run file's `keys`, else from the home folder.
 * errors  those of rp_keys_read() */
rp_err rp_runfile_read_keys(const rp_runfile *run, const char *folder,
                            rp_keypair *out) RP_MUST_CHECK;
/* Checks of a run without a plan: there are enough layers for a cut, and of two neighbours one can
 * be dialled. errors USAGE */
rp_err rp_runfile_check_cut(const rp_runfile *run) RP_MUST_CHECK;

/* Index of the board with the forward of a stage: stages are dealt round the ring. A split stage
 * has its backward on a different board. */
static inline uint32_t rp_runfile_forward_place(const rp_runfile *run, uint32_t stage) {
    return stage % run->boards;
}
static inline uint32_t rp_runfile_backward_place(const rp_runfile *run, uint32_t stage) {
    return rp_method_is_split(&run->method, stage)
               ? rp_method_backward_node(&run->method, run->stages, stage)
               : rp_runfile_forward_place(run, stage);
}

/* Targets of a sample that can be right or wrong: the tokens of a sequence, or 1. */
static inline uint32_t rp_runfile_target_rows(const rp_runfile *run) {
    return run->loss->class_target ? run->data.target_width : 1;
}

/* Puts schedules.at[index] into effect. */
void rp_runfile_take_schedule(rp_runfile *run, uint32_t index);

/* The sizes of the run from `step_first` on, for the schedule of stage 0. */
rp_sched_shape rp_runfile_sched_shape(const rp_runfile *run, uint64_t step_first);

/* The throttle of the board with index `board`. */
const rp_throttle *rp_runfile_throttle_of(const rp_runfile *run, uint32_t board);

/* Bytes of device memory that the board with index `board` may use; 0: no limit. */
uint64_t rp_runfile_memory_of(const rp_runfile *run, uint32_t board);

/* Public keys of the peers that may connect to a board. */
typedef struct {
    const char *host;
    const char *const *board; /* of neighbours that dial it, in their order */
    uint32_t board_count;
    uint32_t place; /* the board's own index in the ring */
} rp_runfile_peers;

/* The assignment of one stage as YAML text, in `arena`: see stage/job.h. `peers`: NULL for a job
 * that is not sent to a board. errors MEMORY, LIMIT */
rp_err rp_runfile_assignment(rp_arena *arena, const rp_runfile *run, const rp_cut *cut,
                             uint32_t stage, const rp_runfile_peers *peers,
                             char **out) RP_MUST_CHECK;

#endif
