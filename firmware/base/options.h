/* Options of a command line: one row each, from which a line is parsed and a help text is printed.
 * No function here ends the process. */
#ifndef RP_BASE_OPTIONS_H
#define RP_BASE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"

enum { RP_OPTIONS_MAX = 32, RP_OPTION_ITEMS_MAX = 64 };

/* What an option's value is, and the type of the member that takes it. */
typedef enum {
    RP_OPTION_FLAG,   /* no value: bool */
    RP_OPTION_END,    /* no value: bool; the rest of the line is not looked at, as after --help */
    RP_OPTION_TEXT,   /* const char *, or char *: borrowed from argv */
    RP_OPTION_CHOICE, /* const char *: one of the words of `value`, as in "text|json" */
    RP_OPTION_NUMBER, /* uint32_t, from 0 to `most` */
    RP_OPTION_REAL,   /* double, from 0 to `most` */
    RP_OPTION_RANGE,  /* rp_option_range: a number, or both ends where `value` is "A..B" */
    RP_OPTION_LIST    /* rp_option_list: the option may be repeated, `most` times */
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
    const char *value; /* the value's word in help texts, as in FILE; NULL: it has none */
    size_t offset;     /* of the member that takes the value, in the struct of values */
    const char *about; /* what it does, without a full stop; NULL: not listed */
    uint32_t most;
    const char *variant; /* tells rows of one name apart; the parser does not read it */
    bool required;       /* the line must have it */
    uint8_t group;       /* options of one group exclude each other; 0: no group, at most 8 */
} rp_option;

/* The words of a line, which are no options. */
typedef struct {
    const char *about; /* as in "DIR FILE..." */
    uint32_t least, most;
    const char **item; /* the caller's: has room for all of the line */
    uint32_t count;    /* of those found */
} rp_option_words;

/* Reads argv (without the program and its verb) into *values, whose defaults the caller has set.
 * Options and words may be mixed; "--" ends the options; names are not abbreviated. `verb` begins
 * every message, "" for none.
 * errors  RP_ERR_USAGE: an unknown option (the message names the one that may have been meant), an
 *         invalid or missing value, options that exclude each other, a missing option or word */
rp_err rp_options_parse(const rp_option *table, const char *verb, int argc, char *const *argv,
                        void *values, rp_option_words *words);

/* A line for each row, with its text in a column of its own. */
void rp_options_print(FILE *file, const rp_option *table);

/* Prints `text` in lines of 80 columns, which begin at `column`, where the file is now. */
void rp_options_wrap(FILE *file, const char *text, int column);

#endif
