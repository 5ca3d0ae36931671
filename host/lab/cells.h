/* How a number is written in a cell of a table. */
#ifndef RP_LAB_CELLS_H
#define RP_LAB_CELLS_H

#include <stdbool.h>

enum { RP_LAB_CELL_BYTES = 1056 }; /* a line of a log fits */

#define RP_LAB_DASH "\xe2\x80\x93" /* stands for a number that is missing */

/* Texts of RP_LAB_CELL_BYTES each; RP_LAB_DASH where the number is not finite. */
void rp_lab_write_words(char *text, const char *words);
void rp_lab_add_words(char *text, const char *words);

enum {
    RP_LAB_SUITED = -1,     /* four decimals; four digits of what is large or small */
    RP_LAB_ROUNDED = -2,    /* one decimal below a hundred */
    RP_LAB_FOUR_DIGITS = -3 /* none of a whole number */
};

typedef struct {
    double scale;
    int decimals;               /* or one of the above */
    const char *before, *after; /* "" is NULL */
    bool sign;                  /* "+" above zero, too */
    bool alone;                 /* without the deviation */
} rp_lab_format;

/* `decimals` for a value, where the format leaves them open. */
rp_lab_format rp_lab_format_for(double value, rp_lab_format format);
void rp_lab_add_number(char *text, double value, rp_lab_format format);
/* "97.31 ± 0.12": a deviation has the decimals of its mean, and is left out when it is NaN. */
void rp_lab_write_mean(char *text, double mean, double deviation, rp_lab_format format);
void rp_lab_write_duration(double seconds, char *text); /* "1:02:03 h", "12 s" */

#endif
