/* Inputs of a table. A column of numbers is one value of a sample. A column of texts is one value
 * for each text that occurs in it in the training file (one-hot). Private to the room. */
#ifndef RP_DATA_FIELDS_H
#define RP_DATA_FIELDS_H

#include "base/arena.h"
#include "base/config.h"
#include "data/csv.h"
#include "data/labels.h"

enum { RP_FIELD_TEXTS_MAX = 1000, RP_FIELD_VALUES_MAX = 1 << 20 };

typedef struct {
    uint32_t column;  /* in the file, from 0 */
    const char *name; /* NULL without a header */
    rp_labels texts;  /* count 0: the column has numbers */
    double mean;      /* of the numbers in the training file */
    uint64_t numbers; /* count of numbers in the mean */
    uint64_t missing; /* count of missing values in the training file */
    bool known;       /* a row has decided between texts and numbers */
} rp_field;

typedef struct {
    rp_labels missing; /* texts that mark a missing value; count 0: none */
    rp_field *field;   /* [count], in the order of the values */
    uint32_t count;
} rp_fields;

/* Reads `missing:` of a run file: a text or a list of them. errors USAGE */
rp_err rp_fields_read_missing(rp_arena *arena, rp_node *node, rp_fields *out) RP_MUST_CHECK;

/* Learns from a row of the training file: texts of columns, and means of numbers if some may be
 * missing. A column's first value that is not missing decides between texts and numbers.
 * errors  FORMAT: a number in a column of texts, a text that is not UTF-8; LIMIT */
rp_err rp_fields_learn(rp_arena *arena, rp_fields *fields, const rp_csv_row *row) RP_MUST_CHECK;
/* Checks the fields after the last row. errors FORMAT: a column without a value; LIMIT */
rp_err rp_fields_finish(const rp_fields *fields, const char *path) RP_MUST_CHECK;

/* Number of values of a field, and of a sample. */
uint32_t rp_field_width(const rp_field *field);
uint32_t rp_fields_width(const rp_fields *fields);

/* Could the row be a sample: a number, a known text or a missing value in each of its fields? */
bool rp_fields_fit(const rp_fields *fields, const rp_csv_row *row);
/* Does the text mark a missing value? */
bool rp_fields_is_missing(const rp_fields *fields, const char *text);

/* Reads a row into [count] numbers: the value, the index of its text, or NaN if it is missing.
 * errors  FORMAT: not a finite number, or a text that the training file lacks */
rp_err rp_fields_read(const rp_fields *fields, const rp_csv_row *row, double *number) RP_MUST_CHECK;
/* Converts these numbers to the values of a sample: a missing number becomes the column's mean, a
 * missing text zeros. */
void rp_fields_spread(const rp_fields *fields, const double *number, double *value);

#endif
