/* Data sets: find by name, open, and give batches in a named random order. */
#ifndef RP_DATA_DATA_H
#define RP_DATA_DATA_H

#include "base/arena.h"
#include "base/config.h"
#include "base/shape.h"
#include "data/augment.h"
#include "data/fields.h"
#include "data/norm.h"
#include "data/notes.h"

/* VALIDATION: samples of the training part that `validation:` holds out. A kind knows TRAIN, all of
 * them, and TEST. */
typedef enum { RP_SPLIT_TRAIN, RP_SPLIT_TEST, RP_SPLIT_VALIDATION, RP_SPLITS } rp_split;
const char *rp_split_name(rp_split split); /* "train", "test", "validation" */

typedef struct rp_data_kind rp_data_kind;

/* An open data set. Pixels stay as stored (u8) in memory; normalisation and augmentation happen
 * when a batch is made. */
typedef struct {
    const rp_data_kind *kind;
    rp_shape sample;               /* one sample */
    uint32_t classes;              /* 0 for regression */
    uint32_t target_width;         /* f32 target columns; 1 for labels */
    const char *const *class_name; /* [classes]; NULL: they have no names */
    const rp_fields *fields;       /* of a table: its inputs; otherwise NULL */
    const char *const *y_name;     /* of a table's [target_width] targets; NULL: no names */
    uint32_t columns;              /* of a table's files; 0: no table */
    char delimiter;                /* between columns */
    uint32_t count[RP_SPLITS];
    const uint32_t *part[RP_SPLITS]; /* [count]: which sample of the kind's; NULL: sample i is i */
    uint32_t share, shares; /* of each epoch's order, the training part is sample `share` of every
                               `shares`; 0: all of it */
    uint32_t shared;        /* training samples of all shares */
    uint32_t left_out;      /* of them, those that no share has in an epoch */
    const char *test_path;  /* of a set without a test part: where it would be; otherwise NULL */
    void *own;              /* of the kind */
    bool shuffle;
    rp_augment augment;
    bool soft;          /* mixup: the target of a class is a row of shares, one a class */
    uint32_t channels;  /* of images: sample is [channels, height, width]; 0: no images */
    bool channels_last; /* of arrays: the files have [height, width, channels] */
    rp_notes notes;
    bool bytes; /* every value that the kind reads is k / 255 */
    bool raw;   /* batches are not normalised: their receiver does that */
    rp_norm norm;
    uint32_t workers; /* threads that make batches ahead; 0 is 1 */
    uint64_t seed;
} rp_data;

struct rp_data_kind {
    const char *name;
    const char *source;
    /* Reads its own keys of `data:` (path ...), sets sample, classes, counts and norm. `input`: the
     * model's input when it is fixed (dims > 0), for tables. */
    rp_err (*open)(rp_arena *arena, rp_data *data, rp_node *keys, const rp_shape *input,
                   bool class_target);
    /* A sample before normalisation, and its target: class, or row; NULL: not wanted. A kind has
     * one of the two: `read` gives pixel / 255, `read_real` any numbers, which are rounded to
     * floats when they are normalised. */
    rp_err (*read)(const rp_data *data, rp_split split, uint32_t index, float *x, float *row,
                   int32_t *label);
    rp_err (*read_real)(const rp_data *data, rp_split split, uint32_t index, double *value,
                        float *row, int32_t *label);
    /* The class of a stored training sample, without reading the sample; NULL: each class has
     * samples. */
    rp_err (*read_label)(const rp_data *data, uint32_t index, int32_t *label);
    void (*close)(rp_data *data);
};

extern const rp_data_kind *const rp_data_kinds[];

/* For kinds: the file or folder that `path` names. errors USAGE with file, line and key: there is
 * none */
rp_err rp_data_find_path(rp_node *keys, const char **out) RP_MUST_CHECK;

/* `data:` of a run file: {set, path, shuffle, augment, mean, std, normalise,
 * validation} + the kind's own
 * keys. `seed`, the run's, orders, augments and chooses the validation part. */
rp_err rp_data_open(rp_arena *arena, rp_data *data, rp_node *node, const rp_shape *input,
                    bool class_target, uint64_t seed) RP_MUST_CHECK;
void rp_data_close(rp_data *data);

/* Floats in a row of targets. */
static inline uint32_t rp_data_row_width(const rp_data *data) {
    return data->soft ? data->classes : data->target_width;
}

/* Are the targets labels, else rows? */
static inline bool rp_data_has_labels(const rp_data *data) {
    return data->classes > 0 && !data->soft;
}

/* Are the values of a batch k / 255 before they are normalised? Otherwise *why says what they are.
 */
bool rp_data_has_bytes(const rp_data *data, const char **why);

/* The part that scores a training run on its way: VALIDATION where there is one, else TEST, which
 * may be empty. */
rp_split rp_data_scored(const rp_data *data);

/* From now on the training part is one of `shares`, which together have every sample once in every
 * epoch, in equally many steps of `batch` samples. Some shares have one sample more than others. If
 * that sample would need a step of its own, it is left out, and other samples are in other epochs.
 * errors  USAGE: there are fewer samples than shares */
rp_err rp_data_take_share(rp_data *data, uint32_t share, uint32_t shares,
                          uint32_t batch) RP_MUST_CHECK;

/* Samples that an order is drawn from: of all shares. */
static inline uint32_t rp_data_drawn(const rp_data *data, rp_split split) {
    return split == RP_SPLIT_TRAIN && data->shares > 0 ? data->shared : data->count[split];
}

/* Order of an epoch: stream "order/<epoch>" of the seed, or 0..count-1. `order` has room for
 * rp_data_drawn(), and then count[split] of them. */
void rp_data_order(const rp_data *data, rp_split split, uint32_t epoch, uint32_t *order);

/* Samples index[0..n) as floats, normalised; augmented when training from stream
 * "augment/<epoch>/<index>", with the index as the kind counts, so the augmented picture of a
 * sample depends neither on the batch nor on the order. x: n * sample floats; labels (classes) or
 * rows (f32) may be NULL when not of this kind. With mixup a sample is mixed with its partner, and
 * classes have rows; a label is then the sample's own class. */
rp_err rp_data_batch(const rp_data *data, rp_split split, uint32_t epoch, const uint32_t *index,
                     uint32_t n, bool training, float *x, int32_t *labels,
                     float *rows) RP_MUST_CHECK;

/* Batches in order first, first + 1, ... of an epoch. THREAD: the next ones are prepared by
 * data->workers threads while the ring works. DIRECT: a batch is made when it is taken, without a
 * thread, so that a simulated run depends on nothing but its arguments. */
typedef struct rp_feeder rp_feeder;
typedef enum { RP_FEEDER_THREAD, RP_FEEDER_DIRECT } rp_feeder_mode;
typedef struct {
    uint64_t step;
    uint32_t epoch, count;
    const float *x;
    const int32_t *labels;
    const float *rows;
} rp_batch;
/* Keeps at least `depth` batches ready while not more than `depth` are out. steps [step_first,
 * step_end) of `batch` samples, epochs follow on each other, the last batch of an epoch may be
 * short. */
rp_err rp_feeder_open(rp_arena *arena, const rp_data *data, rp_feeder_mode mode, rp_split split,
                      bool training, uint32_t batch, uint64_t step_first, uint64_t step_end,
                      uint32_t depth, rp_feeder **out) RP_MUST_CHECK;
/* Borrowed until returned; AGAIN when not ready yet or when all were taken. Several may be out at
 * once; they may be returned in any order. errors DATA: a sample is damaged; others of its read */
rp_err rp_feeder_take(rp_feeder *feeder, const rp_batch **out) RP_MUST_CHECK;
void rp_feeder_return(rp_feeder *feeder, const rp_batch *batch);
/* Readable when a batch became ready; DIRECT: -1, one is always ready. */
int rp_feeder_eventfd(const rp_feeder *feeder);
void rp_feeder_close(rp_feeder **feeder);

#endif
