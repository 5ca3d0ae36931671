/* Data sets: find by name, open, and make batches in a reproducible random order. */
#ifndef RP_DATA_DATA_H
#define RP_DATA_DATA_H

#include "base/arena.h"
#include "base/config.h"
#include "base/dtype.h"
#include "base/shape.h"
#include "data/augment.h"
#include "data/buckets.h"
#include "data/fields.h"
#include "data/norm.h"
#include "data/notes.h"
#include "data/split_file.h"
#include "data/vocab.h"

/* Parts of a data set. VALIDATION: samples that `validation:` holds out of the training part. A
 * kind knows only TRAIN, which includes them, and TEST. */
typedef enum { RP_SPLIT_TRAIN, RP_SPLIT_TEST, RP_SPLIT_VALIDATION, RP_SPLITS } rp_split;
const char *rp_split_name(rp_split split); /* "train", "test", "validation" */

/* errors  USAGE: `loss.ignore` excludes every target of the part, so that it has no loss */
rp_err rp_split_refuse_uncounted(rp_split split) RP_MUST_CHECK;

typedef struct rp_data_kind rp_data_kind;

enum { RP_DATA_PARTS_MAX = 8 };

/* One of several inputs of a model. */
typedef struct {
    const char *name; /* borrowed */
    uint32_t size;    /* the first size of its shape */
} rp_data_part;

/* An open data set. Pixels are kept as stored (u8); normalisation and augmentation are applied when
 * a batch is made. */
typedef struct rp_data {
    const rp_data_kind *kind;
    rp_shape sample; /* one sample */
    rp_dtype type;   /* of its elements: f32, or i32 for token ids */
    uint32_t inputs; /* of the model by name, as `parts` of rp_data_input */
    const rp_data_part *input;
    uint32_t tokens; /* ids are below it; 0: samples are not token ids */
    /* Targets are consecutive tokens of a text, so that a loss in bits has a meaning: of a
     * character or byte, which a token is, or of a byte of the text that tokens of a BPE are. */
    enum { RP_BITS_NONE, RP_BITS_OF_TOKEN, RP_BITS_OF_BYTE } bits;
    const rp_vocab *vocab; /* of token ids that are made from texts; NULL: not from texts */
    uint64_t text_tokens;  /* tokens of the training texts, without padding; 0: not from texts */
    double padding;        /* share of padding among the ids of the training part, 0 to 1 */
    bool pads_labels;      /* labels after the end of a text are 0 and should not count */
    uint32_t time;         /* tokens of a sample, or of each of its parts; 0: it has no length */
    uint32_t parts;        /* of a sample, each filled up to `time`: a source and a target, or 1 */
    bool by_token;         /* a sample has a label for each of `time` tokens */
    rp_buckets buckets;    /* shorter lengths of samples in a step */
    /* [elements of a sample]: the model can look up ids below it, 0: any; NULL: any everywhere */
    uint32_t *id_limit;
    uint32_t classes;      /* 0 for regression */
    uint32_t target_width; /* f32 target columns, or labels of a sample */
    bool masks;            /* the labels are a class for each pixel */
    bool ignores;          /* labels that are `ignore` do not count (see nn/loss.h) */
    int32_t ignore;
    const char *const *class_name;   /* [classes]; NULL: classes have no names */
    const rp_fields *fields;         /* inputs of a table; NULL: not a table */
    const char *const *y_name;       /* [target_width] targets of a table; NULL: no names */
    uint32_t columns;                /* in the files of a table; 0: not a table */
    char delimiter;                  /* of a table */
    uint32_t count[RP_SPLITS];       /* samples */
    const uint32_t *part[RP_SPLITS]; /* [count]: stored index of each sample; NULL: identity */
    bool sited;                      /* the training part is that of one site */
    uint32_t share, shares; /* the training part is sample `share` of every `shares` samples in each
                               epoch's order; shares 0: all samples */
    uint32_t shared;        /* training samples of all shares */
    uint32_t left_out;      /* samples of these that no share has in an epoch */
    const char *test_path;  /* expected path of a missing test part; NULL: there is one */
    void *own;              /* state of the kind */
    bool shuffle;
    rp_augment augment;
    bool soft;          /* mixup: the target is a row of [classes] shares */
    uint32_t channels;  /* sample is [channels, height, width]; 0: samples are not images */
    bool channels_last; /* arrays in the files are [height, width, channels] */
    rp_notes notes;
    bool bytes; /* every value that the kind reads is k / 255 */
    bool raw;   /* batches are not normalised, because their receiver does it */
    rp_norm norm;
    uint32_t workers; /* threads that prepare batches; 0 means 1 */
    uint64_t seed;
} rp_data;

/* What model and loss expect of the data. */
typedef struct {
    rp_shape shape; /* of the model's input; dims 0: it follows the data */
    rp_dtype type;  /* of the model's input; i32: samples are token ids */
    /* Inputs of the model by name; a sample has them one after another along axis 0. parts 0: it
     * has one input without a name. */
    uint32_t parts;
    rp_data_part part[RP_DATA_PARTS_MAX];
    bool masks;            /* targets are a class for each pixel: kinds with arrays read them */
    const int32_t *ignore; /* this label is no class; NULL: every label is */
} rp_data_input;

struct rp_data_kind {
    const char *name;
    const char *source;
    /* Reads the kind's own keys of `data:`, sets sample, type, classes, counts and norm. `input`:
     * NULL is the same as dims 0 and f32. */
    rp_err (*open)(rp_arena *arena, rp_data *data, rp_node *keys, const rp_data_input *input,
                   bool class_target);
    /* Reads a sample before normalisation, and its target as class or row; NULL: not wanted. A kind
     * has one of the two: `read` gives pixel / 255, `read_real` any numbers, which are rounded to
     * floats after normalisation. If samples are token ids, `read_ids` is called instead. */
    rp_err (*read)(const rp_data *data, rp_split split, uint32_t index, float *x, float *row,
                   int32_t *label);
    rp_err (*read_real)(const rp_data *data, rp_split split, uint32_t index, double *value,
                        float *row, int32_t *label);
    rp_err (*read_ids)(const rp_data *data, rp_split split, uint32_t index, int32_t *id, float *row,
                       int32_t *label);
    /* Reads only the class of a stored training sample; NULL: every class is known to have samples.
     */
    rp_err (*read_label)(const rp_data *data, uint32_t index, int32_t *label);
    /* Tokens of a stored sample before it is filled up to data->time: of its longest part. NULL:
     * all samples have one length. */
    uint32_t (*length)(const rp_data *data, rp_split split, uint32_t index);
    /* A stored sample's sentence and its translation, borrowed; NULL: samples are not pairs. */
    void (*read_texts)(const rp_data *data, rp_split split, uint32_t index, const char **source,
                       const char **target);
    void (*close)(rp_data *data);
};

extern const rp_data_kind *const rp_data_kinds[];

/* For kinds: reads `path` and checks that it exists. errors USAGE with file, line and key */
rp_err rp_data_find_path(rp_node *keys, const char **out) RP_MUST_CHECK;
/* For kinds with two files: reads `path`, a folder with train`end` and maybe test`end`, or a file,
 * to which the key `test` may add a test file. *test NULL: there is none, and data->test_path says
 * which. errors  as rp_data_find_path() */
rp_err rp_data_find_files(rp_arena *arena, rp_node *keys, const char *end, rp_data *data,
                          const char **train, const char **test) RP_MUST_CHECK;

/* Opens the set that `data:` of a run file describes: {set, path, shuffle, augment, mean, std,
 * normalise, validation} and the kind's own keys. `input`: as in rp_data_kind. `seed`: of the run;
 * it determines order, augmentation and the validation part. errors USAGE, IO, FORMAT, LIMIT */
rp_err rp_data_open(rp_arena *arena, rp_data *data, rp_node *node, const rp_data_input *input,
                    bool class_target, uint64_t seed) RP_MUST_CHECK;
void rp_data_close(rp_data *data);

/* Are the targets labels? Otherwise they are rows. */
static inline bool rp_data_has_labels(const rp_data *data) {
    return data->classes > 0 && !data->soft;
}

/* Number of labels of a sample. If some are ignored, one more value follows them: how many labels
 * of the batch count. */
static inline uint32_t rp_data_label_width(const rp_data *data) {
    return data->target_width + data->ignores;
}

/* Number of values of a sample's target: labels, or floats in a row. */
static inline uint32_t rp_data_row_width(const rp_data *data) {
    return data->soft                 ? data->classes
           : rp_data_has_labels(data) ? rp_data_label_width(data)
                                      : data->target_width;
}

/* Are the values of a batch k / 255 before they are normalised? If not, *why is the reason. */
bool rp_data_has_bytes(const rp_data *data, const char **why);

static inline bool rp_data_has_bits(const rp_data *data) {
    return data->bits != RP_BITS_NONE;
}
/* Bits of a character or byte for a loss of 1 nat of each target of the part: 1 / ln 2, times
 * targets / bytes for tokens of a BPE, where bytes are those of the text of all targets of the part
 * that count. *out 0: the part has none, or bits have no meaning. errors  of reading a sample */
rp_err rp_data_bits(const rp_data *data, rp_split split, double *out) RP_MUST_CHECK;

/* The part that is scored during training: VALIDATION if it exists, else TEST, which may be empty.
 */
rp_split rp_data_scored(const rp_data *data);

/* Reduces the training part to one of `shares`. Together the shares have every sample once in every
 * epoch, in equal numbers of steps of `batch` samples. Some shares have one sample more. If it
 * would need a step of its own it is left out; each epoch leaves out different samples. errors
 * USAGE: fewer samples than shares */
rp_err rp_data_take_share(rp_data *data, uint32_t share, uint32_t shares,
                          uint32_t batch) RP_MUST_CHECK;

/* Reads `site: {split, name}` or none: reduces the training part of an open set to the samples of a
 * site, and takes its validation part if it has one.
 * errors  USAGE with the key's line: another set, an unknown site; those of rp_split_file_read();
 *         of reading labels */
rp_err rp_data_take_site(rp_arena *arena, rp_data *data, rp_node *keys) RP_MUST_CHECK;
/* XXH3-64 of the kind, the sizes and the labels of the stored training samples, as text. */
rp_err rp_data_split_digest(const rp_data *data, char out[RP_SPLIT_DIGEST]) RP_MUST_CHECK;

/* Does a training sample have one class? */
bool rp_data_has_class(const rp_data *data);
/* The class of a stored training sample of such a set. errors  of reading it */
rp_err rp_data_class(const rp_data *data, uint32_t stored, int32_t *out) RP_MUST_CHECK;

/* Number of samples that an epoch's order is drawn from: those of all shares. */
static inline uint32_t rp_data_drawn(const rp_data *data, rp_split split) {
    return split == RP_SPLIT_TRAIN && data->shares > 0 ? data->shared : data->count[split];
}

/* Writes the order of an epoch, from stream "order/<epoch>" of the seed, or 0..count-1 without
 * `shuffle`. order: [rp_data_drawn()], of which the first count[split] are valid afterwards. */
void rp_data_order(const rp_data *data, rp_split split, uint32_t epoch, uint32_t *order);

/* Makes samples index[0..n) as normalised floats. With `training` they are augmented from streams
 * "augment/<epoch>/<index>" (augment.h) with the stored index, so the result does not depend on
 * batch or order. x: [n * sample] floats or int32 ids; labels or rows [n * row width], NULL if the
 * targets are not of this form. With mixup a sample is mixed with its partner and classes have
 * rows; a label is then the sample's own class. */
rp_err rp_data_batch(const rp_data *data, rp_split split, uint32_t epoch, const uint32_t *index,
                     uint32_t n, bool training, void *x, int32_t *labels,
                     float *rows) RP_MUST_CHECK;

/* Reads `buckets`: none, auto, or a list of lengths. auto: quartiles of the lengths of the training
 * part. Adds a note on the share of padding. errors  USAGE: the set has no lengths; MEMORY */
rp_err rp_data_read_buckets(rp_arena *arena, rp_data *data, rp_node *keys) RP_MUST_CHECK;

/* The part of the kind that has sample `index` of the split, and its index there. */
static inline rp_split rp_data_find_stored(const rp_data *data, rp_split split, uint32_t index,
                                           uint32_t *stored) {
    *stored = data->part[split] ? data->part[split][index] : index;
    return split == RP_SPLIT_TEST ? RP_SPLIT_TEST : RP_SPLIT_TRAIN;
}
/* Tokens of a sample without padding, of a kind that has `length`. */
static inline uint32_t rp_data_length(const rp_data *data, rp_split split, uint32_t index) {
    uint32_t stored;
    const rp_split from = rp_data_find_stored(data, split, index, &stored);
    return data->kind->length(data, from, stored);
}
/* Arranges the order of an epoch in batches of one bucket, as buckets.h says; unchanged without
 * buckets. spare: room as for the order. */
void rp_data_arrange(const rp_data *data, rp_split split, uint32_t batch, uint32_t *order,
                     uint32_t *spare);
/* Tokens of a sample in a step of these samples; 0: data->time. */
uint32_t rp_data_batch_time(const rp_data *data, rp_split split, const uint32_t *index, uint32_t n);
/* Cuts the n samples of a batch, and their labels by token (or NULL), to `time` tokens, in place.
 * Only padding is cut off. */
void rp_data_pack(const rp_data *data, uint32_t time, uint32_t n, int32_t *x, int32_t *labels);

/* A sample's sentence and its translation, borrowed, of a kind that has `read_texts`. */
void rp_data_texts(const rp_data *data, rp_split split, uint32_t index, const char **source,
                   const char **target);

/* A feeder gives batches in the order of steps. THREAD: data->workers threads prepare batches in
 * advance. DIRECT: a batch is made when it is taken, without threads, so that a simulated run
 * depends only on its arguments. */
typedef struct rp_feeder rp_feeder;
typedef enum { RP_FEEDER_THREAD, RP_FEEDER_DIRECT } rp_feeder_mode;
typedef struct {
    uint64_t step;
    uint32_t epoch, count;
    uint32_t time; /* tokens of a sample; 0: data->time, or samples have no length */
    const void *x; /* floats, or int32 for token ids */
    const int32_t *labels;
    const float *rows;
} rp_batch;
/* One sample of the batch. */
static inline rp_shape rp_batch_shape(const rp_data *data, const rp_batch *batch) {
    return batch->time > 0 ? rp_shape_1(data->parts * batch->time) : data->sample;
}
/* The values of sample `index` of the batch. */
static inline const void *rp_batch_sample(const rp_data *data, const rp_batch *batch,
                                          uint32_t index) {
    const rp_shape shape = rp_batch_shape(data, batch);
    return (const char *)batch->x + index * rp_shape_count(&shape) * rp_dtype_bytes(data->type);
}
/* Number of values of a sample's target in the batch, see rp_data_row_width(). */
static inline uint32_t rp_batch_row_width(const rp_data *data, const rp_batch *batch) {
    const bool shorter = batch->time > 0 && data->by_token;
    return rp_data_row_width(data) - (shorter ? data->time - batch->time : 0);
}
/* Opens a feeder for steps [step_first, step_end) of `batch` samples. The last batch of an epoch
 * may be short. At least `depth` batches are prepared while at most `depth` are borrowed. errors
 * USAGE: the part is empty; MEMORY; IO */
rp_err rp_feeder_open(rp_arena *arena, const rp_data *data, rp_feeder_mode mode, rp_split split,
                      bool training, uint32_t batch, uint64_t step_first, uint64_t step_end,
                      uint32_t depth, rp_feeder **out) RP_MUST_CHECK;
/* Takes the next batch, which is borrowed until it is returned. Several may be borrowed; they may
 * be returned in any order. errors  AGAIN: not ready yet, or all were taken; DATA: a sample is
 * damaged; errors of reading a sample */
rp_err rp_feeder_take(rp_feeder *feeder, const rp_batch **out) RP_MUST_CHECK;
void rp_feeder_return(rp_feeder *feeder, const rp_batch *batch);
/* Descriptor that is readable while a batch is ready; DIRECT: -1, because a batch always is. */
int rp_feeder_eventfd(const rp_feeder *feeder);
void rp_feeder_close(rp_feeder **feeder);

#endif
