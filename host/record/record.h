/* What a run leaves behind, and what is seen while it runs. The controller makes these few calls;
 * every sink (sink.h) in the registry writes its output from them.
 *
 * The record keeps the run's totals (samples, losses, seconds) and knows no board and no link: at
 * the end the controller hands it plain facts. */
#ifndef RP_RECORD_RECORD_H
#define RP_RECORD_RECORD_H

#include "record/sink.h"

typedef struct rp_record rp_record;

/* What an evaluation gave. */
typedef struct {
    bool known;
    double loss;                        /* mean over the targets that count */
    uint64_t samples, counted, correct; /* counted, correct: targets */
    double mean_iou;                    /* of the classes of pixels; NAN: unknown */
} rp_record_score;

/* Bits of a character or byte for a loss of 1, of each part; only if the targets are a text. */
typedef struct {
    double train, eval, validation;
} rp_record_bits;

/* Texts are borrowed until close. */
typedef struct {
    const char *model, *schedule;
    rp_sched_shape shape; /* of board 0, from step 0; its stages are boards */
    uint32_t stages;      /* of all boards; 0: one a board */
    bool classes;         /* the targets are classes */
    rp_targets targets;
    rp_record_bits bits;
    const char *folder;     /* of the run; NULL: no files are written (eval) */
    uint64_t trace_bytes;   /* of trace.json at most; 0: there is none */
    bool temporary;         /* the folder is gone after the run: nobody is told of it */
    FILE *progress;         /* borrowed; NULL: nobody watches */
    FILE *result;           /* borrowed; NULL: nobody asks */
    rp_format format;       /* of the result */
    const char *eval_split; /* what an evaluation is of; NULL: "test" */
    const char *executor;   /* what computes on the boards; NULL: "opencl" */
    const rp_clock *clock;  /* borrowed; NULL: the real one */
} rp_record_run;

/* What a run counts, and a resumed run goes on counting from. */
typedef struct {
    uint64_t step; /* next to train. Behind 0: what sinks hold of later steps is taken back */
    uint64_t samples;
    uint64_t epoch_samples;           /* of the epoch's steps so far whose loss is finite */
    uint64_t epoch_counted;           /* targets of these samples that count */
    double epoch_loss;                /* sum of the losses of these targets */
    double seconds, segment_s;        /* since the run began; wall time of all segments */
    rp_record_score eval, validation; /* of this step */
} rp_record_totals;

/* errors  IO, MEMORY; then every sink is closed again */
rp_err rp_record_open(rp_arena *arena, const rp_record_run *run, const rp_record_totals *start,
                      rp_record **out) RP_MUST_CHECK;

rp_err rp_record_step(rp_record *record, uint64_t step, double loss, double lr, uint32_t samples,
                      uint64_t counted) RP_MUST_CHECK;
/* Evaluation after `step` steps: of the validation part of a training run, or of eval_split. */
rp_err rp_record_eval(rp_record *record, bool validation, uint64_t step,
                      const rp_record_score *score) RP_MUST_CHECK;
/* An event with the facts of its kind (words.h). Accepts a NULL record. errors  those of sinks */
rp_err rp_record_event(rp_record *record, const rp_run_event *event) RP_MUST_CHECK;
/* The times in `prediction` are set here. */
rp_err rp_record_prediction(rp_record *record, const rp_sink_prediction *prediction) RP_MUST_CHECK;
/* The time in `codec` is set here. */
rp_err rp_record_codec(rp_record *record, const rp_sink_codec *codec) RP_MUST_CHECK;
rp_err rp_record_op(rp_record *record, const rp_sink_op *op) RP_MUST_CHECK;
rp_err rp_record_transfer(rp_record *record, const rp_sink_transfer *transfer) RP_MUST_CHECK;
/* The times in `facts` are set here. */
rp_err rp_record_facts(rp_record *record, const rp_sink_facts *facts) RP_MUST_CHECK;
/* The gradient's norm of a step, where the host sees it. */
rp_err rp_record_norm(rp_record *record, uint64_t step, double norm) RP_MUST_CHECK;
/* The values of a tensor after `step` steps. */
rp_err rp_record_histogram(rp_record *record, uint64_t step, const char *name,
                           const rp_histogram *values) RP_MUST_CHECK;
/* The newest step since the open; NULL: none yet. Valid until the next one. */
const rp_sink_step *rp_record_newest_step(const rp_record *record);
/* What is going on before the first step: "building kernels". Accepts NULL. */
void rp_record_phase(rp_record *record, const char *text);

/* How far that is, or an evaluation; call it as often as you like. Accepts NULL. */
void rp_record_part(rp_record *record, const rp_sink_part *part);

/* Wall seconds of a segment, for the summary's shares; `whole`: it has ended, so that every board
 * has told its busy time of it. */
void rp_record_segment(rp_record *record, double seconds, bool whole);

/* From now on the run has so many boards, at most those of the open; they hold `stages` stages. */
void rp_record_take_boards(rp_record *record, uint32_t boards, uint32_t stages);
/* .. and this schedule; borrowed. */
void rp_record_take_schedule(rp_record *record, const char *schedule);
/* The run goes back to an earlier position of its own, which `start` has; its seconds go on.
 * errors  IO */
rp_err rp_record_rewind(rp_record *record, const rp_record_totals *start) RP_MUST_CHECK;

/* Writes the counts of `totals` (not its step, nor the evaluation), for a checkpoint. */
void rp_record_read_totals(const rp_record *record, rp_record_totals *totals);

/* What the boards say at the end. */
typedef struct {
    const char *status; /* "finished", "interrupted", "failed" */
    const char *note;   /* in plain language; may be "" */
    rp_summary_best best;
    /* idle_s and utilisation are set here */
    rp_summary_stage *stage;
    uint32_t stage_count;
    rp_summary_link *link;
    uint32_t link_count;
    rp_summary_wire *wire; /* utilisation is set here */
    uint32_t wire_count;
    const uint64_t *micro_done; /* [stage_count]: whose gradient it has added since the open */
    rp_summary_ledger ledger;
    rp_summary_verify verify;
    rp_summary_prediction prediction;
    const rp_summary_recovery *recovery;
    uint32_t recovery_count;
    uint32_t boards_left, boards_joined;
    const double (*share)[2]; /* [stage_count]: of every step's samples; NULL: all of them each */
} rp_record_end;

/* Closes every sink, with the summary; the first error of any is returned. */
rp_err rp_record_close(rp_record **record, const rp_record_end *end) RP_MUST_CHECK;
/* For a simulation: as the end of the process would leave it; nothing is written. */
void rp_record_crash(rp_record *record);

#endif
