/* A data set of four arrays in files, for the kinds `npy` and `idx`. Private to the room. */
#ifndef RP_DATA_ARRAYS_H
#define RP_DATA_ARRAYS_H

#include "data/data.h"

/* Default names of the files: samples (x) and targets (y) of both parts. */
typedef struct {
    const char *train_x, *train_y, *test_x, *test_y;
    bool packed; /* NAME.gz is tried also */
} rp_arrays_names;

/* Reads `path`, keys with other names of files, `channels` and `classes`; opens the files. The test
 * part is empty if both of its default files are missing. If the model's input is i32, samples are
 * token ids, and targets may be a row of labels.
 * errors  IO, FORMAT naming the file; USAGE; LIMIT */
rp_err rp_arrays_open(rp_arena *arena, rp_data *data, rp_node *keys, const rp_data_input *input,
                      bool class_target, const rp_arrays_names *names) RP_MUST_CHECK;

/* `read_real`, `read_ids`, `read_label` and `close` of these kinds. */
rp_err rp_arrays_read(const rp_data *data, rp_split split, uint32_t index, double *value,
                      float *row, int32_t *label) RP_MUST_CHECK;
rp_err rp_arrays_read_ids(const rp_data *data, rp_split split, uint32_t index, int32_t *id,
                          float *row, int32_t *label) RP_MUST_CHECK;
rp_err rp_arrays_read_label(const rp_data *data, uint32_t index, int32_t *label) RP_MUST_CHECK;
void rp_arrays_close(rp_data *data);

#endif
