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

rp_lab_format rp_lab_format_for(double value, double scale, bool sign) {
    const double size = fabs(value);
    const bool plain = size < 1000 && (size >= 0.01 || size == 0);
    return (rp_lab_format){scale, sign, scale == 100 ? 2 : plain ? 4 : RP_LAB_SIGNIFICANT};
}

void rp_lab_add_number(char *text, double value, rp_lab_format format) {
    char number[40];
    const double shown = fabs(value * format.scale);
    if (!isfinite(value)) {
        rp_lab_add_words(text, RP_LAB_DASH);
        return;
    }
    if (format.decimals == RP_LAB_SIGNIFICANT) {
        (void)snprintf(number, sizeof number, "%.4g", shown);
    } else {
        (void)snprintf(number, sizeof number, "%.*f", format.decimals, shown);
    }
    bool zero = strspn(number, "0.") == strlen(number); /* no "-0.00" */
    rp_lab_add_words(text, value < 0 && !zero ? MINUS : format.sign ? "+" : "");
    rp_lab_add_words(text, number);
}

void rp_lab_write_mean(char *text, double mean, double deviation, rp_lab_format format) {
    text[0] = '\0';
    rp_lab_add_number(text, mean, format);
    if (isfinite(deviation)) {
        rp_lab_add_words(text, PLUS_MINUS);
        format.sign = false;
        rp_lab_add_number(text, deviation, format);
    }
}

void rp_lab_write_number(double value, char *text) {
    const double size = fabs(value);
    int decimals = size >= 1000 ? 0 : size >= 100 ? 1 : size >= 1 ? 2 : 4;
    if (!isfinite(value)) {
        rp_lab_write_words(text, RP_LAB_DASH);
    } else if (size >= 1e7 || (size < 1e-3 && value != 0)) {
        (void)snprintf(text, RP_LAB_CELL_BYTES, "%.3g", value);
    } else {
        (void)snprintf(text, RP_LAB_CELL_BYTES, "%.*f", value == floor(value) ? 0 : decimals,
                       value);
    }
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

void rp_lab_write_mib(double bytes, char *text) {
    rp_lab_write_mean(text, bytes, (double)NAN, (rp_lab_format){1.0 / (1 << 20), false, 1});
}

void rp_lab_write_share(double share, char *text) {
    rp_lab_write_mean(text, share, (double)NAN, (rp_lab_format){100, false, 0});
    rp_lab_add_words(text, isfinite(share) ? " %" : "");
}
