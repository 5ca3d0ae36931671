/* Reads a CSV file of a table in two passes: measure, then store. Private to the room. */
#ifndef RP_DATA_TABLE_FILE_H
#define RP_DATA_TABLE_FILE_H

#include "data/columns.h"
#include "data/data.h"
#include "data/fields.h"
#include "data/labels.h"

/* State that both files of a set share, and their stored rows. */
typedef struct {
    rp_arena *arena;
    rp_data *data;
    rp_column_keys keys;
    char delimiter;
    bool class_target;
    uint32_t x_wanted; /* number of values in the model's input; 0: the model follows the file */
    bool named;        /* classes are names */
    bool first_known;  /* a class has been read, so `named` is valid */
    rp_labels labels;
    rp_columns train; /* columns of the training file */
    rp_fields fields; /* inputs of the training file */
    double *x[2];     /* by part: [rows][fields.count] (rp_fields_read) */
    float *y[2];
    int32_t *labels_of[2];
} rp_table;

/* Reads a file; the training file has to be first. Sets sample, targets, classes and count of
 * t->data. errors  IO; FORMAT naming file, line and column; USAGE; LIMIT */
rp_err rp_table_read_file(rp_table *t, rp_split split, const char *path) RP_MUST_CHECK;

#endif
