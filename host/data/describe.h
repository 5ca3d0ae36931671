/* What a data set is, in one JSON object: data.json of a run folder. It is what somebody needs who
 * has the weights and a sample, and not the set.
 *
 *   {"version": 1, "set": "table", "sample": [4], "channels": 0, "bytes": false,
 *    "target_width": 1, "classes": 3,
 *    "class_names": [...], "x_names": [...], "y_names": [...], "mean": [...], "std": [...],
 *    "delimiter": "comma", "columns": 6, "x_columns": [1, 2, 3, 4],
 *    "samples": {"train": 120, "validation": 15, "test": 15}}
 *
 * `channels` is 0 where samples are no images; `channels_last` is true where the files' arrays have
 * [height, width, channels]. `bytes`: values are k / 255 before they are normalised. `class_names`,
 * `x_names`, `y_names` are there when classes or columns have names; `mean` and `std` when values
 * are normalised: one number for each channel of an image, or value of a table's sample.
 *
 * A table has `delimiter`, and in `columns` how many its files have. For each value of a sample
 * `x_columns` has the column, from 1; `x_texts`, where columns have texts, the text that the value
 * is 1 for, or null for a number; `x_fill`, where `missing` lists texts that stand for a missing
 * value, what a missing number is taken for. */
#ifndef RP_DATA_DESCRIBE_H
#define RP_DATA_DESCRIBE_H

#include "data/data.h"

/* Beside `path` first and then renamed. errors IO; FORMAT when a name is not UTF-8 */
rp_err rp_data_describe(const rp_data *data, const char *path) RP_MUST_CHECK;

/* The same, read back. */
typedef struct {
    const char *set;
    rp_shape sample;
    bool images; /* sample is [channels, height, width], of 1 or 3 channels */
    uint32_t target_width, classes;
    const char *const *class_name; /* [classes], or NULL */
    const char *const *y_name;     /* [target_width], or NULL */
    enum { RP_VALUES_UNKNOWN, RP_VALUES_BYTES, RP_VALUES_REAL } values; /* UNKNOWN: older file */
    bool channels_last;
    rp_norm norm;
    char delimiter;
    uint32_t columns; /* of a table's files; 0: not known */
    rp_fields fields; /* count 0: not known */
} rp_description;

/* Lives in `arena`. errors IO; FORMAT naming the file and the key */
rp_err rp_data_read_description(rp_arena *arena, const char *path,
                                rp_description *out) RP_MUST_CHECK;

#endif
