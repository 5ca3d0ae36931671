#include "lab/cells.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define MINUS "\xe2\x88\x92"
#define PLUS_MINUS " \xc2\xb1 "

void rp_lab_write_words(char *text, const char *words) {
    (void)snprintf(text, RP_LAB_CELL_BYTES, "%s", words);
}

void rp_lab_add_words(char *text, const char *words) {
    size_t used = strlen(text);
    (void)snprintf(text + used, RP_LAB_CELL_BYTES - used, "%s", words);
}

rp_lab_format rp_lab_format_for(double value, rp_lab_format format) {
    const double size = fabs(value);
    const bool plain = size < 1000 && (size >= 0.01 || size == 0);
    format.decimals = format.decimals == RP_LAB_ROUNDED           ? (value < 100 ? 1 : 0)
                      : format.decimals == RP_LAB_SUITED && plain ? 4
                                                                  : format.decimals;
    return format;
}

/* Decimals for four digits of a size from 1e-3 to 1e7. */
static int four_digits(double size) {
    return size == floor(size) ? 0 : size >= 1000 ? 0 : size >= 100 ? 1 : size >= 1 ? 2 : 4;
}

void rp_lab_add_number(char *text, double value, rp_lab_format format) {
    char number[40];
    const double size = fabs(value * format.scale);
    if (!isfinite(value)) {
        rp_lab_add_words(text, RP_LAB_DASH);
        return;
    }
    if (format.decimals == RP_LAB_FOUR_DIGITS && (size >= 1e7 || (size < 1e-3 && size != 0))) {
        (void)snprintf(number, sizeof number, "%.3g", size);
    } else if (format.decimals == RP_LAB_SUITED) {
        (void)snprintf(number, sizeof number, "%.4g", size);
    } else {
        (void)snprintf(number, sizeof number, "%.*f",
                       format.decimals < 0 ? four_digits(size) : format.decimals, size);
    }
    bool zero = strspn(number, "0.") == strlen(number); /* no "-0.00" */
    rp_lab_add_words(text, value < 0 && !zero ? MINUS : format.sign ? "+" : "");
    rp_lab_add_words(text, number);
}

void rp_lab_write_mean(char *text, double mean, double deviation, rp_lab_format format) {
    format = rp_lab_format_for(mean, format);
    rp_lab_write_words(text, isfinite(mean) && format.before ? format.before : "");
    rp_lab_add_number(text, mean, format);
    if (isfinite(deviation) && !format.alone) {
        rp_lab_add_words(text, PLUS_MINUS);
        format.sign = false;
        rp_lab_add_number(text, deviation, format);
    }
    rp_lab_add_words(text, isfinite(mean) && format.after ? format.after : "");
}

void rp_lab_write_duration(double seconds, char *text) {
    if (!(seconds >= 0 && seconds < 1e9)) {
        rp_lab_write_words(text, RP_LAB_DASH);
        return;
    }
    unsigned long s = (unsigned long)(seconds + 0.5);
    if (seconds < 60) {
        (void)snprintf(text, RP_LAB_CELL_BYTES, seconds < 10 ? "%.1f s" : "%.0f s", seconds);
    } else if (s < 3600) {
        (void)snprintf(text, RP_LAB_CELL_BYTES, "%lu:%02lu min", s / 60, s % 60);
    } else {
        (void)snprintf(text, RP_LAB_CELL_BYTES, "%lu:%02lu:%02lu h", s / 3600, s / 60 % 60, s % 60);
    }
}
