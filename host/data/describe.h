/* Description of a data set as one JSON object: data.json of a run folder. With it and the weights
 * a sample can be evaluated without the data set.
 *
 *   {"version": 1, "set": "table", "sample": [4], "channels": 0, "bytes": false,
 *    "target_width": 1, "classes": 3,
 *    "class_names": [...], "x_names": [...], "y_names": [...], "mean": [...], "std": [...],
 *    "delimiter": "comma", "columns": 6, "x_columns": [1, 2, 3, 4],
 *    "samples": {"train": 120, "validation": 15, "test": 15}}
 *
 * `inputs` exists if the model has several by name, such as {"source": 40, "target": 40}: the first
 * size of each, in the order in which a sample has them along its first dimension.
 *
 * `channels` is 0 if samples are not images; `channels_last` is true if arrays in the files are
 * [height, width, channels]. `bytes`: values are k / 255 before they are normalised. `class_names`,
 * `x_names`, `y_names` exist if classes or columns have names; `mean` and `std` if values are
 * normalised: one number for each channel of an image, or value of a table's sample.
 *
 * Keys of token ids: `type` is "i32" (missing: "f32"); `tokens` is "ids", "bytes", "chars", "words"
 * or "bpe"; `token_count`: ids are below it. For chars and words `vocab` has the token of each id,
 * of which the first `special` (0 or 4: padding, unknown, begin, end) are not of the text; for
 * words `lower` and `split` say how a text is split. For bpe `tokenizer` is a map as in
 * bpe_file.h, with all that changes an id. `text_tokens` is the number of tokens in the
 * training texts, `padding` the share of padding in the training part. `buckets`, if there are any:
 * the lengths of samples in shorter steps, ascending.
 *
 *   {"type": "i32", "tokens": "words", "token_count": 10000, "special": 4, "lower": true,
 *    "split": "punctuation", "vocab": ["<padding>", "<unknown>", "<begin>", "<end>", "the", ...],
 *    "text_tokens": 5000000, "padding": 0.12}
 *
 * Keys of a table: `delimiter`; `columns`, their number in its files; and lists with one entry for
 * each value of a sample. `x_columns`: column, from 1. `x_texts`, if some columns have texts: the
 * text for which the value is 1, or null for a number. `x_fill`, if `missing` lists texts that mark
 * a missing value: the number that replaces a missing one. */
#ifndef RP_DATA_DESCRIBE_H
#define RP_DATA_DESCRIBE_H

#include "data/data.h"

/* Writes the description: to a temporary file, which is then renamed. errors IO; FORMAT: a name is
 * not UTF-8 */
rp_err rp_data_describe(const rp_data *data, const char *path) RP_MUST_CHECK;

/* A description that was read. */
typedef struct {
    const char *set;
    rp_shape sample;
    uint32_t parts; /* inputs of the model by name, as in rp_data_input */
    rp_data_part part[RP_DATA_PARTS_MAX];
    rp_dtype type;
    uint32_t tokens;    /* ids are below it; 0: samples are not token ids */
    rp_vocab vocab;     /* of token ids; without names for `ids` and `bytes` */
    bool images;        /* sample is [channels, height, width], of 1 or 3 channels */
    rp_buckets buckets; /* of token ids */
    uint32_t target_width, classes;
    const char *const *class_name; /* [classes], or NULL */
    const char *const *y_name;     /* [target_width], or NULL */
    enum { RP_VALUES_UNKNOWN, RP_VALUES_BYTES, RP_VALUES_REAL } values; /* UNKNOWN: older file */
    bool channels_last;
    rp_norm norm;
    char delimiter;
    uint32_t columns; /* in files of a table; 0: unknown */
    rp_fields fields; /* count 0: unknown */
} rp_description;

/* Reads a description into `arena`. errors IO; FORMAT naming the file and the key */
rp_err rp_data_read_description(rp_arena *arena, const char *path,
                                rp_description *out) RP_MUST_CHECK;

/* Reads the bytes of a description. `path` is for messages. errors  FORMAT naming the key */
rp_err rp_data_parse_description(rp_arena *arena, const char *bytes, size_t count, const char *path,
                                 rp_description *out) RP_MUST_CHECK;

/* Checks that the token ids of the set mean the same as in the description at `path`, which a run
 * folder has; a missing file, or one without token ids, is not compared. errors  USAGE naming the
 * first difference; those of rp_data_read_description() */
rp_err rp_data_check_vocab(const rp_data *data, const char *path) RP_MUST_CHECK;
/* Like rp_data_check_vocab(), for the run folder that contains the file `weights`, if it is one. */
rp_err rp_data_check_weights(const rp_data *data, const char *weights) RP_MUST_CHECK;

#endif
