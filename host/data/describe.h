/* What a data set is, in one JSON object: data.json of a run folder. It is what somebody needs who
 * has the weights and a sample, and not the set.
 *
 *   {"version": 1, "set": "table", "sample": [4], "target_width": 1, "classes": 3,
 *    "class_names": [...], "x_names": [...], "y_names": [...], "mean": [...], "std": [...],
 *    "samples": {"train": 120, "validation": 15, "test": 15}}
 *
 * `class_names`, `x_names`, `y_names` are there when classes or columns have names; `mean` and
 * `std` when values are normalised: one number for each channel of an image, or column of a table.
 */
#ifndef RP_DATA_DESCRIBE_H
#define RP_DATA_DESCRIBE_H

#include "data/data.h"

/* Beside `path` first and then renamed. errors IO; FORMAT when a name is not UTF-8 */
rp_err rp_data_describe(const rp_data *data, const char *path) RP_MUST_CHECK;

#endif
