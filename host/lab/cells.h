/* How a number is written in a cell of a table. */
#ifndef RP_LAB_CELLS_H
#define RP_LAB_CELLS_H

#include <stdbool.h>

enum { RP_LAB_CELL_BYTES = 1056 }; /* a line of a log fits */

#define RP_LAB_DASH "\xe2\x80\x93" /* stands for a number that is missing */

/* Texts of RP_LAB_CELL_BYTES each; RP_LAB_DASH where the number is not finite. */
void rp_lab_write_words(char *text, const char *words);
void rp_lab_add_words(char *text, const char *words);

typedef struct {
    double scale;
    bool sign;    /* "+" above zero, too */
    int decimals; /* or RP_LAB_SIGNIFICANT */
} rp_lab_format;
enum { RP_LAB_SIGNIFICANT = -1 /* four digits */ };

/* Decimals that suit the value: two of percentages, four of losses, four digits of what is large or
 * small. */
rp_lab_format rp_lab_format_for(double value, double scale, bool sign);
void rp_lab_add_number(char *text, double value, rp_lab_format format);
/* "97.31 ± 0.12": a deviation has the decimals of its mean, and is left out when it is NaN. */
void rp_lab_write_mean(char *text, double mean, double deviation, rp_lab_format format);

void rp_lab_write_number(double value, char *text);     /* four digits */
void rp_lab_write_duration(double seconds, char *text); /* "1:02:03 h", "12 s" */
void rp_lab_write_mib(double bytes, char *text);        /* "1.5" */
void rp_lab_write_share(double share, char *text);      /* "25 %" */

#endif
