/* summary.json, and the same object on standard output for --format json. */
#ifndef RP_RECORD_SUMMARY_H
#define RP_RECORD_SUMMARY_H

#include <stdbool.h>
#include <stdio.h>

#include "base/arena.h"
#include "record/targets.h"

typedef struct {
    const char *board;
    const char *const *layers;
    uint32_t layer_count;
    const uint32_t *stages; /* of the board; omitted if it is board i with stage i only */
    uint32_t stage_count;
    const char *role; /* "forward" or "backward": half of a split stage; NULL: both */
    double busy_s, idle_s;
    uint64_t weight_bytes, device_bytes_max;
    uint64_t flash_bytes; /* written to flash for stashes */
    double energy_j;      /* drawn during the run; 0: unknown, omitted */
    uint32_t energy_with; /* 1 + index of the board that counts for its machine; 0: itself */
    uint32_t weight_versions_max, probe_copies, in_flight_max, gap_max;
} rp_summary_stage;

typedef struct {
    uint32_t from, to; /* boards */
    uint64_t bytes;
    double busy_s, utilisation;
    const char *codec; /* codecs in use: "f32", or several, "f16 int8"; NULL: unknown */
} rp_summary_link;

/* One direction between two ends. */
typedef struct {
    const char *kind;  /* "hop", "feed", "control" */
    uint32_t from, to; /* boards; UINT32_MAX: the host */
    uint64_t bytes;
    double rate_mbit;           /* measured; NAN: unknown, and the next two also */
    double busy_s, utilisation; /* time of the bytes at this rate; as a share of the time trained,
                                   for control of the whole run */
    double delay_ms[2];         /* time to the ack: median and 95th percentile; 0: unknown */
    uint64_t resent, resets;
    const char *codec; /* as in rp_summary_link */
    double l2_error;   /* relative error of its codecs; NAN: unknown, omitted */
} rp_summary_wire;

typedef struct {
    uint32_t board;
    double detect_s, replan_s, restore_s;
    uint64_t replay_microbatches;
} rp_summary_recovery;

/* Samples that contributed to the steps, as reported by the boards and compared with the plan. */
typedef struct {
    bool known;               /* false: `lost` and `repeated` of rp_summary count microbatches */
    uint64_t samples, digest; /* of the steps up to the last pause */
    uint64_t lost, repeated;  /* samples that differ from the plan */
} rp_summary_ledger;

/* Verification: microbatches that were computed again on a different board. */
typedef struct {
    bool known;                    /* false: omitted */
    uint64_t microbatches, stages; /* checked since the last start; stages of them computed again */
    uint64_t wrong;                /* boards that computed wrong results */
} rp_summary_verify;

/* Times of an op on full microbatches, since the last assignment of stages. */
typedef struct {
    uint32_t stage;
    const char *kind; /* "forward", "backward", "backward_input", "backward_weight", "update" */
    uint64_t count;
    double predicted_s, measured_s; /* of one op */
} rp_summary_op;

/* Predicted and measured times of the plan. */
typedef struct {
    double step_s;          /* predicted; 0: no prediction, omitted */
    double measured_step_s; /* NAN: unknown */
    const char *limits;     /* predicted bottleneck of a step */
    const rp_summary_op *op;
    uint32_t op_count;
    uint32_t cuts; /* number of changes of the cut during the run */
} rp_summary_prediction;

typedef struct {
    bool known; /* false: omitted */
    double loss, accuracy;
    double bits;               /* only if the targets are a text */
    double mean_iou;           /* only if the targets are pixels; NAN: omitted */
    uint64_t samples, counted; /* counted: targets that count */
} rp_summary_score;

/* The best evaluation during the run. */
typedef struct {
    uint64_t step;      /* 0: omitted */
    const char *metric; /* "accuracy", "loss" */
    const char *split;  /* part that was scored */
    double value;
    const char *path; /* of its weights, relative to the run folder; NULL: they are not kept */
} rp_summary_best;

/* Names and order of the fields are those of the file. Numbers that are not finite become null
 * there. */
typedef struct {
    const char *status, *model, *schedule;
    const char *executor;    /* "opencl", ..; NULL: omitted */
    bool without_losses;     /* simulated: text output has no losses */
    const char *note;        /* for the user; NULL or "": omitted */
    uint32_t stages, boards; /* boards: omitted if each has one stage */
    uint32_t epochs;
    uint64_t steps, samples;
    double seconds;
    double train_loss; /* mean of the last epoch's finite losses; NAN: none is finite */
    double train_bits; /* only if the targets are a text */
    uint64_t left_out; /* steps of that epoch with a loss that is not finite */
    bool classes;      /* false: `accuracy` is omitted */
    rp_targets targets;
    rp_summary_score eval;
    const char *eval_split;      /* part for `eval`; NULL or "test": omitted */
    rp_summary_score validation; /* of a training run */
    rp_summary_best best;
    double samples_per_s;
    double energy_j_per_sample;    /* of all boards; 0: unknown, omitted */
    double tokens_per_s;           /* targets that count; omitted if a sample has one target */
    const rp_summary_stage *stage; /* one for each board */
    uint32_t stage_count;
    const rp_summary_link *link;
    uint32_t link_count;
    const rp_summary_wire *wire;
    uint32_t wire_count;
    double bubble; /* NAN before the end of the first segment, which reports busy times */
    uint64_t microbatches, lost, repeated;
    rp_summary_ledger ledger;
    rp_summary_verify verify;
    rp_summary_prediction prediction;
    const rp_summary_recovery *recovery;
    uint32_t recovery_count;
    uint32_t boards_left, boards_joined; /* numbers of boards that left and rejoined the ring */
} rp_summary;

/* Writes a temporary file next to `path`, then fsync and rename.
 * errors  IO; FORMAT: a text is not UTF-8 */
rp_err rp_summary_write(const rp_summary *summary, const char *path) RP_MUST_CHECK;
/* Prints the object in one line. */
rp_err rp_summary_print(const rp_summary *summary, FILE *file) RP_MUST_CHECK;

#endif
