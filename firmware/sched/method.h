/* A training method as given in a run file: an order of ops, the weights that an op sees, and an
 * averaging rule. `schedule:` names a kind with defaults for all three; these options are keys next
 * to `kind`:
 *
 *   weights: current stash entry double pipeoptim spectrain xpipe   another rule over this order
 *   vertical_sync: true                  pipedream: the same as weights: entry
 *   horizon: paper released exact measured       for weights: pipeoptim
 *   decay: true                          for weights: pipeoptim; also predicts adamw's decay
 *   probe: 10                            interval in steps of comparisons between predicted and
 *                                        actual weights
 *   replicas, alpha, period, order, lean         ea-pipe
 *   replicas, alpha                              avgpipe
 *   evaluate: centre mean latest                 ea-pipe, avgpipe: the model that is evaluated
 *   advance: 1                           additional forwards per hop, for slow links
 *   advance: auto                        as many as the host finds that the links need, up to 4
 *   advance: {max_staleness: 8}          the same, as far as rp_method_age() allows
 *   drain: true                          empty the pipes at the end of every epoch
 *   chunks: 2                            interleaved-1f1b: stages per board
 *   ahead: auto, 4, [4, 2], measured     pipefb: steps that forwards run before updates, for all
 *                                        stages or by stage; auto: the number of boards that hold
 *                                        stages from this one on, 2 (D - k) if all are split;
 *                                        measured: the host finds the fewest with which no board
 *                                        waits
 *   publish: 1                           pipefb: updates from one publication to the next
 *   split: [true, false]                 pipefb: by stage, whether it is on two boards;
 *                                        default: all
 *   forward: [8, 4], backward: [4, 2]    umpipe: samples of a microbatch, by stage; 4: for all */
#ifndef RP_SCHED_METHOD_H
#define RP_SCHED_METHOD_H

#include "sched/sched.h"

enum { RP_REPLICAS_MAX = 16, RP_ADVANCE_MAX = 64, RP_CHUNKS_MAX = 8, RP_AHEAD_MAX = 256 };
/* Upper bound of `advance: auto` if no other is given: this advance, or more as long as the
 * staleness does not exceed RP_STALENESS_AUTO. */
enum { RP_ADVANCE_AUTO = 4, RP_STALENESS_AUTO = 12 };

/* How far PipeOptim predicts (METHODS 5). */
typedef enum {
    RP_HORIZON_PAPER,    /* the staleness of the steady state: D - 1 - k */
    RP_HORIZON_RELEASED, /* one more, along mu buf + (1 - dampening) g: the authors' code */
    /* the staleness of the particular microbatch: smaller while the pipes fill */
    RP_HORIZON_EXACT,
    RP_HORIZON_MEASURED /* exact, times the prediction gain from measured errors */
} rp_horizon;

/* The model on the ring that is evaluated and exported. */
typedef enum {
    RP_EVALUATE_CENTRE, /* EASGD's centre, AvgPipe's reference */
    RP_EVALUATE_MEAN,   /* mean of the replicas */
    RP_EVALUATE_LATEST  /* the replica that was updated last */
} rp_evaluate;

typedef struct {
    const rp_sched_kind *kind;
    rp_weights_rule weights;
    rp_horizon horizon;
    uint32_t probe;    /* steps between two prediction-error samples, 0 = none */
    bool decay;        /* also predict adamw's decoupled decay */
    uint32_t replicas; /* models on the ring, 1 without averaging */
    double alpha;      /* fraction by which an average moves the weights */
    uint32_t period;   /* updates of a replica between two elastic averages */
    bool before;       /* elastic term from the weights before the local step (EASGD algorithm 1) */
    bool lean;         /* stage k holds D - k replicas instead of `replicas` */
    rp_evaluate evaluate;
    uint32_t advance;
    uint32_t chunks; /* stages per node */
    bool drain;
    /* advance is to be chosen by the host; the file gives a number */
    bool advance_auto, replicas_given, alpha_given;
    bool age_given;
    uint32_t age_max; /* advance: {max_staleness: N} */
    /* For kinds that split stages. Count 0: auto; 1: one number for all stages. */
    uint32_t ahead_count;
    bool ahead_measured; /* measured, and no number was chosen yet */
    uint16_t ahead[RP_SPLIT_STAGES_MAX];
    uint32_t publish;
    uint32_t split_count; /* number of stages that `split` lists; 0: all stages are split */
    uint32_t whole;       /* bit k: stage k is not split */
} rp_method;

/* Parses `schedule:` of `parent`, a word or a map, for a ring of `stages` stages.
 * errors  USAGE: unknown words and keys; combinations that make no sense, with the reason */
rp_err rp_method_parse(rp_node *parent, uint32_t stages, rp_method *out) RP_MUST_CHECK;

/* Samples of a microbatch by stage and direction, [stages]: those of `forward` and `backward` in
 * the file, and `micro` where it has none. NULL: the schedule has one size for all stages. errors
 * USAGE: a number below 1; a list whose length is not `stages`. MEMORY */
rp_err rp_method_sizes(rp_arena *arena, const rp_method *method, rp_node *parent, uint32_t stages,
                       uint32_t micro, uint32_t (**out)[2]) RP_MUST_CHECK;

/* Sets `advance`, and the values that depend on it unless the file gives them: with more
 * minibatches in flight ea-pipe needs as many more replicas, and each is pulled more weakly
 * (METHODS 9). */
void rp_method_set_advance(rp_method *method, uint32_t stages, uint32_t advance);

/* The cost of an advance in steps, which `max_staleness` bounds: the largest staleness on stage 0
 * or, if the advance adds replicas, the number of other replicas' steps between two steps of a
 * replica. */
uint32_t rp_method_age(const rp_method *method, const rp_sched_shape *shape, uint32_t advance);
/* The largest advance that `advance: auto` may choose. */
uint32_t rp_method_advance_most(const rp_method *method, const rp_sched_shape *shape);

/* Replicas that stage `stage` of `stages` holds. */
uint32_t rp_method_replicas(const rp_method *method, uint32_t stages, uint32_t stage);
/* Number of stages for `boards` boards: `chunks` on each; for a kind that splits stages the number
 * that `split` lists, or one stage on two boards. */
uint32_t rp_method_stages(const rp_method *method, uint32_t boards);
/* Number of boards for `stages` stages. */
uint32_t rp_method_boards(const rp_method *method, uint32_t stages);
/* Whether each board holds one whole stage, so that boards and stages form a row. Plain: and all
 * stages have one microbatch size in both directions. */
bool rp_method_is_row(const rp_method *method);
bool rp_method_is_plain(const rp_method *method);
/* The pairs of boards that send each other tensors, each once: pair `at`, from 0; false: there are
 * no more. They are neighbours, and the last board and the first if a board holds several stages;
 * if stages are split, the pairs of rp_sched_split_wires(). */
bool rp_method_wire(const rp_method *method, uint32_t boards, uint32_t stages, uint32_t at,
                    uint32_t out[2]);
/* Whether the kind splits the stage, and the node that does the stage's backwards. */
bool rp_method_is_split(const rp_method *method, uint32_t stage);
uint32_t rp_method_backward_node(const rp_method *method, uint32_t stages, uint32_t stage);
/* For weights that replicas predict or stash: whether the replica of a forward may be updated
 * before its backward. */
bool rp_method_replicas_fit(const rp_method *method, uint32_t stages);
/* For a kind that splits stages: checks that its stages need exactly `boards`, and that `ahead` and
 * `split` fit `stages`. Messages refer to `node`.
 * errors  USAGE */
rp_err rp_method_fit_boards(const rp_method *method, uint32_t boards,
                            const rp_node *node) RP_MUST_CHECK;
rp_err rp_method_fit_stages(const rp_method *method, uint32_t stages,
                            const rp_node *node) RP_MUST_CHECK;
/* Whether an op sees weights that the optimiser has predicted. */
bool rp_method_predicts(const rp_method *method);
/* Why a stage of this method cannot recompute its forwards for their backwards; NULL: it can.
 * `parts`: a backward may take other samples than its forward. */
const char *rp_method_refuses_again(const rp_method *method, uint32_t stage, bool parts);
/* Names the stage in messages: "schedule 1f1b", or "stage 2 of schedule pipefb, which is split". */
enum { RP_METHOD_WHOSE_BYTES = 96 };
const char *rp_method_whose(const rp_method *method, uint32_t stage,
                            char out[RP_METHOD_WHOSE_BYTES]);
/* Fills in advance, steps_open, drain, chunks, ahead, publish, whole; the stage is set. */
void rp_method_order(const rp_method *method, rp_sched_shape *shape);

/* Largest staleness on the shape's stage in the steady state, counting updates of one replica; 0
 * with a flush. It is the staleness of microbatch 0 of a full step. */
uint32_t rp_method_staleness(const rp_method *method, const rp_sched_shape *shape);

/* Writes the method as one line of JSON, a map that rp_method_parse() reads back to the same method
 * (except `advance: auto`, which has become a number). errors LIMIT when it does not fit `bytes` */
rp_err rp_method_write(const rp_method *method, char *out, size_t bytes) RP_MUST_CHECK;

enum { RP_METHOD_TEXT_BYTES = 1024 };
/* Writes one line of text with everything that a checkpoint's bytes and numbers depend on. */
void rp_method_text(const rp_method *method, char *out, size_t bytes);
/* Whether a run with text `a` may continue as a run with text `b`. Different stages may be
 * split, because the weights of a checkpoint do not depend on that. */
bool rp_method_text_goes_on(const char *a, const char *b);
/* For `ahead: measured`: takes the numbers in such a text; false: none that fit. */
bool rp_method_take_ahead(rp_method *method, const char *line);

/* Number of sets of trained parameters in a checkpoint in addition to the evaluated model: the
 * replicas, then their centre unless that is evaluated, or the second weights of 2BW. Their names
 * begin with the prefix. */
uint32_t rp_method_set_count(const rp_method *method);
/* Number of sets, from the first on, with their own optimiser; 0: only the evaluated model's. */
uint32_t rp_method_optimisers(const rp_method *method);
void rp_method_set_prefix(const rp_method *method, uint32_t set, char *out, size_t bytes);

#endif
