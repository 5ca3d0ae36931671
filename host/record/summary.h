/* summary.json, and the same object on standard output for --format json. */
#ifndef RP_RECORD_SUMMARY_H
#define RP_RECORD_SUMMARY_H

#include <stdbool.h>
#include <stdio.h>

#include "base/arena.h"

typedef struct {
    const char *board;
    const char *const *layers;
    uint32_t layer_count;
    const uint32_t *stages; /* that the board holds; left out when it is one */
    uint32_t stage_count;
    const char *role; /* "forward" or "backward": a half of its stage; NULL: both */
    double busy_s, idle_s;
    uint64_t weight_bytes, device_bytes_max;
    uint64_t flash_bytes; /* that its stashes have written to flash */
    uint32_t weight_versions_max, probe_copies, in_flight_max, gap_max;
} rp_summary_stage;

typedef struct {
    uint32_t from, to; /* boards */
    uint64_t bytes;
    double busy_s, utilisation;
    const char *codec; /* of what goes over it: "f32", or several, "f16 int8"; NULL: not known */
} rp_summary_link;

/* One way between two ends. */
typedef struct {
    const char *kind;  /* "hop", "feed", "control" */
    uint32_t from, to; /* boards; UINT32_MAX: the host */
    uint64_t bytes;
    double rate_mbit;           /* measured; NAN: not known, as the next two then */
    double busy_s, utilisation; /* that its bytes take at this rate; of the time trained, or of the
                                   run: control */
    double delay_ms[2]; /* to the ack: of half of the messages, of 95 %, at most; 0: unknown */
    uint64_t resent, resets;
    const char *codec; /* as in rp_summary_link */
    double l2_error;   /* relative, of what its codecs have lost; NAN: left out, nothing is known */
} rp_summary_wire;

typedef struct {
    uint32_t board;
    double detect_s, replan_s, restore_s;
    uint64_t replay_microbatches;
} rp_summary_recovery;

/* What every board said of the samples that contributed to its steps, compared with the plan. */
typedef struct {
    bool known; /* otherwise lost and repeated are microbatches, by what the boards counted */
    uint64_t samples, digest; /* of the steps up to the last pause */
    uint64_t lost, repeated;  /* samples, where it was not the plan's */
} rp_summary_ledger;

/* Microbatches that were computed again on other boards. */
typedef struct {
    bool known;                    /* otherwise it is left out */
    uint64_t microbatches, stages; /* of all of them, those that were */
    uint64_t wrong;                /* boards that were found to compute wrong */
} rp_summary_verify;

/* Of full microbatches, since the boards have got their stages last. */
typedef struct {
    uint32_t stage;
    const char *kind; /* "forward", "backward", "backward_input", "backward_weight", "update" */
    uint64_t count;
    double predicted_s, measured_s; /* of one */
} rp_summary_op;

/* What the plan was chosen by, and what became of it. */
typedef struct {
    double step_s;          /* 0: nothing was predicted, and it is left out */
    double measured_step_s; /* NAN: not known */
    const char *limits;     /* what the step waits for most, as predicted */
    const rp_summary_op *op;
    uint32_t op_count;
    uint32_t cuts; /* how often another cut was chosen on the way */
} rp_summary_prediction;

typedef struct {
    bool known; /* otherwise it is left out */
    double loss, accuracy;
    uint64_t samples;
} rp_summary_score;

/* The best evaluation on the way. */
typedef struct {
    uint64_t step;      /* 0: none, it is left out */
    const char *metric; /* "accuracy", "loss" */
    const char *split;  /* that was scored */
    double value;
    const char *path; /* of its weights, from the run folder; null when they are not kept */
} rp_summary_best;

/* Names and order of the fields are those of the file. Numbers that are not finite become null. */
typedef struct {
    const char *status, *model, *schedule;
    const char *executor;    /* what computed: "opencl"; left out when NULL */
    bool without_losses;     /* simulated: the text for a person has no losses */
    const char *note;        /* in plain language; left out when NULL or empty */
    uint32_t stages, boards; /* boards: left out when each has one stage */
    uint32_t epochs;
    uint64_t steps, samples;
    double seconds;
    double train_loss; /* mean of the last epoch's steps with a finite loss; NAN: it has none */
    uint64_t left_out; /* steps of that epoch whose loss is not finite */
    bool classes;      /* without them `accuracy` is left out */
    rp_summary_score eval;
    const char *eval_split;      /* that `eval` is of; said when it is not "test". NULL: that */
    rp_summary_score validation; /* of a training run */
    rp_summary_best best;
    double samples_per_s;
    const rp_summary_stage *stage; /* one a board */
    uint32_t stage_count;
    const rp_summary_link *link;
    uint32_t link_count;
    const rp_summary_wire *wire;
    uint32_t wire_count;
    double bubble; /* not a number where no segment has ended: busy times come at its end */
    uint64_t microbatches, lost, repeated;
    rp_summary_ledger ledger;
    rp_summary_verify verify;
    rp_summary_prediction prediction;
    const rp_summary_recovery *recovery;
    uint32_t recovery_count;
    uint32_t boards_left, boards_joined; /* again; how often, in all */
} rp_summary;

/* Temporary beside `path`, fsync, rename.
 * errors  IO; FORMAT when a text is not UTF-8 */
rp_err rp_summary_write(const rp_summary *summary, const char *path) RP_MUST_CHECK;
/* One line. */
rp_err rp_summary_print(const rp_summary *summary, FILE *file) RP_MUST_CHECK;

#endif
