/* Inputs of a table: a column of numbers is one value of a sample, a column of texts one value for
 * each text that the training file has in it: 1 for the text of the row, otherwise 0. Private to
 * the room. */
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
    rp_labels texts;  /* count 0: numbers */
    double mean;      /* of the numbers that are not missing, of a training file */
    uint64_t numbers; /* that the mean is of */
    uint64_t missing; /* in a training file */
    bool known;       /* texts or numbers: a row has said it */
} rp_field;

typedef struct {
    rp_labels missing; /* texts that stand for a missing value; count 0: none */
    rp_field *field;   /* [count], in the order of the values */
    uint32_t count;
} rp_fields;

/* `missing:` of a run file: a text or a list of them. errors USAGE */
rp_err rp_fields_read_missing(rp_arena *arena, rp_node *node, rp_fields *out) RP_MUST_CHECK;

/* A row of the training file: whether columns have texts, and which; the mean of numbers where some
 * may be missing. The first value that is not missing decides.
 * errors  FORMAT: a number in a column of texts, a text that is not UTF-8; LIMIT */
rp_err rp_fields_learn(rp_arena *arena, rp_fields *fields, const rp_csv_row *row) RP_MUST_CHECK;
/* After the last row. errors FORMAT: a column without a value; LIMIT */
rp_err rp_fields_finish(const rp_fields *fields, const char *path) RP_MUST_CHECK;

/* How many values a field and a sample have. */
uint32_t rp_field_width(const rp_field *field);
uint32_t rp_fields_width(const rp_fields *fields);

/* Could the row be a sample: a number, a known text or a missing value in each of its fields? */
bool rp_fields_fit(const rp_fields *fields, const rp_csv_row *row);
/* Is the text one that stands for a missing value? */
bool rp_fields_is_missing(const rp_fields *fields, const char *text);

/* Reads a row into [count] numbers: the value, the place of its text, or NaN where it is missing.
 * errors  FORMAT: not a finite number, or a text that the training file does not have */
rp_err rp_fields_read(const rp_fields *fields, const rp_csv_row *row, double *number) RP_MUST_CHECK;
/* Those as values of a sample: a missing number is the column's mean, a missing text is 0. */
void rp_fields_spread(const rp_fields *fields, const double *number, double *value);

#endif
