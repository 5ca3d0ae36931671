/* Numbers as text for the cells of a table. */
#ifndef RP_LAB_CELLS_H
#define RP_LAB_CELLS_H

#include <stdbool.h>

enum { RP_LAB_CELL_BYTES = 1056 }; /* holds a line of a log */

#define RP_LAB_DASH "\xe2\x80\x93" /* stands for a number that is missing */

/* All texts have RP_LAB_CELL_BYTES. Numbers that are not finite become RP_LAB_DASH. */
void rp_lab_write_words(char *text, const char *words);
void rp_lab_add_words(char *text, const char *words);

enum {
    RP_LAB_SUITED = -1,     /* four decimals; four digits for large and small values */
    RP_LAB_ROUNDED = -2,    /* one decimal below a hundred */
    RP_LAB_FOUR_DIGITS = -3 /* no decimals for whole numbers */
};

typedef struct {
    double scale;
    int decimals;               /* or an enum value above */
    const char *before, *after; /* text around the number; NULL: none */
    bool sign;                  /* write "+" above zero */
    bool alone;                 /* without the deviation */
} rp_lab_format;

/* Replaces an enum value in `decimals` by the decimals that fit `value`, where possible. */
rp_lab_format rp_lab_format_for(double value, rp_lab_format format);
void rp_lab_add_number(char *text, double value, rp_lab_format format);
/* "97.31 ± 0.12": a deviation has the decimals of its mean, and is left out when it is NaN. */
void rp_lab_write_mean(char *text, double mean, double deviation, rp_lab_format format);
void rp_lab_write_duration(double seconds, char *text); /* "1:02:03 h", "12 s" */

#endif
