/* Command-line options: one table row per option, used to parse a command line and to print the
 * help text. No function here ends the process. */
#ifndef RP_BASE_OPTIONS_H
#define RP_BASE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"

enum { RP_OPTIONS_MAX = 32, RP_OPTION_ITEMS_MAX = 64 };

/* The kind of an option's value, and the type of the member that receives it. */
typedef enum {
    RP_OPTION_FLAG,   /* no value: bool */
    RP_OPTION_END,    /* no value: bool; parsing stops here, as after --help */
    RP_OPTION_TEXT,   /* const char *, or char *: borrowed from argv */
    RP_OPTION_CHOICE, /* const char *: one of the words in `value`, such as "text|json" */
    RP_OPTION_NUMBER, /* uint32_t, from 0 to `most` */
    RP_OPTION_REAL,   /* double, from 0 to `most` */
    RP_OPTION_RANGE,  /* rp_option_range: one number, or two if `value` is "A..B" */
    RP_OPTION_LIST    /* rp_option_list: the option may be repeated, up to `most` times */
} rp_option_kind;

typedef struct {
    uint64_t first, last; /* both included; first <= last <= INT64_MAX */
} rp_option_range;

typedef struct {
    const char *item[RP_OPTION_ITEMS_MAX];
    uint32_t count;
} rp_option_list;

typedef struct {
    const char *name; /* without dashes; NULL ends a table */
    char letter;      /* the short option, or 0 */
    rp_option_kind kind;
    const char *value; /* placeholder of the value in help texts, such as FILE; NULL: no value */
    size_t offset;     /* offset of the receiving member in the struct of values */
    const char *about; /* what the option does, without a full stop; NULL: not listed */
    uint32_t most;
    const char *variant; /* distinguishes rows of the same name; ignored by the parser */
    bool required;       /* the option must be given */
    uint8_t group;       /* options of one group exclude each other; 0: no group, at most 8 */
} rp_option;

/* The positional arguments of a command line. */
typedef struct {
    const char *about; /* placeholder in help texts, such as "DIR FILE..." */
    uint32_t least, most;
    const char **item; /* array owned by the caller, with room for argc words */
    uint32_t count;    /* number of words found */
} rp_option_words;

/* Parses argv (without the program and its verb) into *values, whose defaults the caller has set.
 * Options and positional words may be mixed; "--" ends the options; names cannot be abbreviated.
 * Every message begins with `verb`, unless that is "".
 * errors  RP_ERR_USAGE: an unknown option (the message suggests the nearest one), an invalid or
 *         missing value, options that exclude each other, a missing option or word */
rp_err rp_options_parse(const rp_option *table, const char *verb, int argc, char *const *argv,
                        void *values, rp_option_words *words);

/* Prints one entry per row, with the descriptions in their own column. */
void rp_options_print(FILE *file, const rp_option *table);

/* Prints `text` wrapped at 80 columns, indented to `column`, the file's current column. */
void rp_options_wrap(FILE *file, const char *text, int column);

#endif
