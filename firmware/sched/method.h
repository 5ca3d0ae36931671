/* A method as a run file asks for it: an order of ops, the weights that an op sees, and what is
 * averaged. `schedule:` names a kind, which brings defaults for all three; its options are keys
 * beside `kind`:
 *
 *   weights: current stash entry double pipeoptim spectrain xpipe   another rule over this order
 *   vertical_sync: true                  pipedream: the same as weights: entry
 *   horizon: paper released exact measured       of weights: pipeoptim
 *   decay: true                          of weights: pipeoptim; predicts adamw's decay too
 *   probe: 10                            measures every so many steps how far the weights that a
 *                                        forward saw are from those that were predicted
 *   replicas, alpha, period, order, lean         ea-pipe
 *   replicas, alpha                              avgpipe
 *   evaluate: centre mean latest                 ea-pipe, avgpipe: the model that is evaluated
 *   advance: 1                           forwards more per hop, where links are slow
 *   advance: auto                        as many as the host finds that the links need, up to 4
 *   advance: {max_staleness: 8}          the same, as far as rp_method_age() allows
 *   drain: true                          empty pipes at every epoch's end
 *   chunks: 2                            interleaved-1f1b: stages that a board holds
 *   ahead: auto, 4, [4, 2], measured     pipefb: steps that forwards run ahead of updates, of all
 *                                        stages or by stage; auto: the boards of the stages from
 *                                        this one on, 2 (D - k) where all are split; measured: the
 *                                        host finds the fewest with which no board waits
 *   publish: 1                           pipefb: updates from one publication to the next
 *   split: [true, false]                 pipefb: by stage, is it on two boards? Without: all are
 *   forward: [8, 4], backward: [4, 2]    umpipe: samples of a microbatch, by stage; 4: of all */
#ifndef RP_SCHED_METHOD_H
#define RP_SCHED_METHOD_H

#include "sched/sched.h"

enum { RP_REPLICAS_MAX = 16, RP_ADVANCE_MAX = 64, RP_CHUNKS_MAX = 8, RP_AHEAD_MAX = 256 };
/* `advance: auto` without another limit: so much, or more where that leaves no more staleness. */
enum { RP_ADVANCE_AUTO = 4, RP_STALENESS_AUTO = 12 };

/* How far PipeOptim predicts (METHODS 5). */
typedef enum {
    RP_HORIZON_PAPER,    /* the staleness of the steady state: D - 1 - k */
    RP_HORIZON_RELEASED, /* one more, along mu buf + (1 - dampening) g: the authors' code */
    RP_HORIZON_EXACT,    /* the staleness of this very microbatch: shorter while the pipes fill */
    RP_HORIZON_MEASURED  /* exact, times the prediction gain, from measured errors */
} rp_horizon;

/* Which of the models on the ring is evaluated and exported. */
typedef enum {
    RP_EVALUATE_CENTRE, /* EASGD's centre, AvgPipe's reference */
    RP_EVALUATE_MEAN,   /* of the replicas */
    RP_EVALUATE_LATEST  /* the replica that was updated last */
} rp_evaluate;

typedef struct {
    const rp_sched_kind *kind;
    rp_weights_rule weights;
    rp_horizon horizon;
    uint32_t probe;    /* steps between two measurements of the prediction, 0 = none */
    bool decay;        /* adamw's decoupled decay is predicted as well */
    uint32_t replicas; /* models on the ring, 1 without averaging */
    double alpha;      /* share that an average moves */
    uint32_t period;   /* updates of a replica between two elastic averages */
    bool before;       /* elastic term from the weights before the local step (EASGD algorithm 1) */
    bool lean;         /* stage k holds D - k replicas instead of `replicas` */
    rp_evaluate evaluate;
    uint32_t advance;
    uint32_t chunks; /* stages that a node holds */
    bool drain;
    bool advance_auto, replicas_given, alpha_given; /* what the file leaves to us */
    bool age_given;
    uint32_t age_max; /* advance: {max_staleness: N} */
    /* Kinds that split stages: 0 numbers: auto; 1: of all stages. */
    uint32_t ahead_count;
    bool ahead_measured; /* and no number was chosen yet */
    uint16_t ahead[RP_SPLIT_STAGES_MAX];
    uint32_t publish;
    uint32_t split_count; /* stages that `split` names; 0: all stages are split, however many */
    uint32_t whole;       /* bit k: stage k is not */
} rp_method;

/* `schedule:` of `parent`, a word or a map, for a ring of so many stages.
 * errors  USAGE: unknown words and keys; combinations that make no sense, with the reason */
rp_err rp_method_parse(rp_node *parent, uint32_t stages, rp_method *out) RP_MUST_CHECK;

/* `forward` and `backward` of a schedule with sizes, by stage and direction; what they leave out
 * stays as it is. `out` NULL: they are only checked.
 * errors  USAGE: no number from 1 on; a list of another length than `stages` */
rp_err rp_method_sizes(rp_node *parent, uint32_t stages, uint32_t (*out)[2]) RP_MUST_CHECK;

/* Sets `advance`, and what follows from it where the file gives no number: with more minibatches in
 * flight ea-pipe has as many replicas more, and each is drawn more weakly (METHODS 9). */
void rp_method_set_advance(rp_method *method, uint32_t stages, uint32_t advance);

/* What an advance costs, in steps, as `max_staleness` bounds it: the most own updates between a
 * forward and its backward on stage 0 or, where it brings replicas with it, the steps of others
 * between two of a replica. */
uint32_t rp_method_age(const rp_method *method, const rp_sched_shape *shape, uint32_t advance);
/* The largest advance that `advance: auto` may choose. */
uint32_t rp_method_advance_most(const rp_method *method, const rp_sched_shape *shape);

/* Replicas that stage `stage` of `stages` holds. */
uint32_t rp_method_replicas(const rp_method *method, uint32_t stages, uint32_t stage);
/* Stages of so many boards: `chunks` on each; of a kind that splits them as many as `split` names,
 * or one on two. */
uint32_t rp_method_stages(const rp_method *method, uint32_t boards);
/* Boards of so many stages. */
uint32_t rp_method_boards(const rp_method *method, uint32_t stages);
/* Does the kind split the stage, and which node has its backwards? */
bool rp_method_is_split(const rp_method *method, uint32_t stage);
uint32_t rp_method_backward_node(const rp_method *method, uint32_t stages, uint32_t stage);
/* Weights that replicas predict or stash: is a replica updated between a forward and its backward?
 */
bool rp_method_replicas_fit(const rp_method *method, uint32_t stages);
/* Of a kind that splits stages: do `ahead` and `split` fit so many? `node` is named where not.
 * errors USAGE */
rp_err rp_method_fit_stages(const rp_method *method, uint32_t stages,
                            const rp_node *node) RP_MUST_CHECK;
/* Is what an op sees moved ahead by the optimiser? */
bool rp_method_predicts(const rp_method *method);
/* Why a stage of this method can not compute forwards again for their backwards; NULL: it can.
 * `parts`: a backward may take other samples than its forward. */
const char *rp_method_refuses_again(const rp_method *method, uint32_t stage, bool parts);
/* Whose stage that is, for a message: "schedule 1f1b", or "stage 2 of schedule pipefb, which is
 * split". */
enum { RP_METHOD_WHOSE_BYTES = 96 };
const char *rp_method_whose(const rp_method *method, uint32_t stage,
                            char out[RP_METHOD_WHOSE_BYTES]);
/* Fills advance, steps_open, drain, chunks, ahead, publish and whole of a shape whose stage is set.
 */
void rp_method_order(const rp_method *method, rp_sched_shape *shape);

/* The most own updates of a replica that lie between a forward and its backward on the shape's
 * stage, in the steady state; 0 with a flush. What microbatch 0 of a full step meets. */
uint32_t rp_method_staleness(const rp_method *method, const rp_sched_shape *shape);

/* The method as one line of JSON, a map that rp_method_parse() reads back to the same method (but
 * for `advance: auto`, which has become a number). LIMIT when `bytes` do not hold it */
rp_err rp_method_write(const rp_method *method, char *out, size_t bytes) RP_MUST_CHECK;

enum { RP_METHOD_TEXT_BYTES = 1024 };
/* Everything that a checkpoint's bytes and numbers depend on, as one line of text. */
void rp_method_text(const rp_method *method, char *out, size_t bytes);
/* May a run of one such text go on as one of the other? Other stages may be split: the weights of a
 * checkpoint do not depend on that. */
bool rp_method_text_goes_on(const char *a, const char *b);
/* `ahead: measured`: the numbers that such a text has. False: it has none, or none that fit. */
bool rp_method_take_ahead(rp_method *method, const char *line);

/* Sets of the trained parameters in a checkpoint besides the evaluated model: the replicas and then
 * their centre unless that is evaluated, or what 2BW still needs. Their names begin with the
 * prefix. */
uint32_t rp_method_set_count(const rp_method *method);
/* The first so many sets have an optimiser each; 0: there is one, of the evaluated model. */
uint32_t rp_method_optimisers(const rp_method *method);
void rp_method_set_prefix(const rp_method *method, uint32_t set, char *out, size_t bytes);

#endif
