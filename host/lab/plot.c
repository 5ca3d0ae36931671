#include "lab/plot.h"

#include <math.h>
#include <string.h>

#include "lab/drawing.h"
#include "lab/plot_range.h"

enum {
    LEFT = 56,
    NAMES_LEFT = 150, /* for DIFFERENCES */
    RIGHT = RP_DRAWING_WIDTH - 18,
    TOP = 40,
    HEIGHT = 205,
    ROW_HEIGHT = 34,
    LABEL_HEIGHT = 18,
    ENTRY_HEIGHT = 20,
    BAR_MAX = 36,
    DOTS_MAX = 24,
    X_TICKS = 6,
    NAMES_MAX = 256,
    NAME_HEIGHT = 14,
    NAME_CHARS = 20
};

typedef struct {
    FILE *file;
    const rp_plot *plot;
    rp_axis x, y;
    double left, bottom;
} frame;

static double pixel_x(const frame *f, double value) {
    return f->left + rp_axis_position(&f->x, value) * (RIGHT - f->left);
}

/* Limits positions far outside, to keep the numbers short. */
static double pixel_y(const frame *f, double value) {
    const double y = f->bottom - rp_axis_position(&f->y, value) * HEIGHT;
    return y < -4000 ? -4000 : y > 4000 ? 4000 : y;
}

static void put_text(const frame *f, const char *classes, double x, double y, const char *text) {
    (void)fprintf(f->file, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\">", classes, x, y);
    rp_drawing_text(f->file, text);
    (void)fputs("</text>\n", f->file);
}

/* ---- axes ------------------------------------------------------------------------------------ */

static void put_y_axis(const frame *f) {
    char text[RP_AXIS_TEXT_BYTES];
    for (uint32_t i = 0; i < f->y.tick_count; i++) {
        const double at = pixel_y(f, f->y.tick[i]);
        (void)fprintf(f->file, "<path class=\"grid\" d=\"M%.0f %.1fH%d\"/>", f->left, at, RIGHT);
        rp_drawing_tick(&f->y, f->y.tick[i], f->plot->percent, text);
        put_text(f, "end", f->left - 8, at + 4, text);
    }
    put_text(f, "end", RIGHT, 22, f->plot->y_label);
}

static void put_x_axis(const frame *f) {
    const bool differences = f->plot->kind == RP_PLOT_DIFFERENCES;
    char text[RP_AXIS_TEXT_BYTES + 1];
    for (uint32_t i = 0; i < f->x.tick_count; i++) {
        const double tick = f->x.tick[i];
        const double at = pixel_x(f, tick);
        text[0] = '+';
        rp_drawing_tick(&f->x, tick, false, text + 1);
        (void)fprintf(f->file, "<path class=\"%s\" d=\"M%.1f %dV%.0f\"/>",
                      differences && tick == 0 ? "zero" : "grid", at, TOP, f->bottom + 4);
        put_text(f, "mid", at, f->bottom + LABEL_HEIGHT, text + !(differences && tick > 0));
    }
    put_text(f, "end", RIGHT, f->bottom + 2 * LABEL_HEIGHT, f->plot->x_label);
}

/* ---- curves ---------------------------------------------------------------------------------- */

static bool is_dashed(const rp_series *curve) {
    return curve->dashed || curve->line / RP_DRAWING_COLOURS % 2 == 1;
}

static bool point_shown(const frame *f, const rp_series *curve, uint32_t i) {
    return isfinite(pixel_x(f, curve->x[i])) && isfinite(pixel_y(f, curve->y[i]));
}

static bool point_banded(const frame *f, const rp_series *curve, uint32_t i) {
    return point_shown(f, curve, i) && isfinite(curve->low[i]) && isfinite(curve->high[i]);
}

/* A band that reaches below zero in a log plot ends at the bottom. */
static double band_y(const frame *f, double value) {
    return f->plot->log_y && value <= 0 ? f->bottom : pixel_y(f, value);
}

static void put_band(const frame *f, const rp_series *curve) {
    for (uint32_t first = 0; first < curve->count; first++) {
        uint32_t end = first;
        while (end < curve->count && point_banded(f, curve, end)) {
            end++;
        }
        if (end - first > 1) {
            (void)fputs("<path class=\"band\" d=\"", f->file);
            for (uint32_t i = first; i < end; i++) {
                (void)fprintf(f->file, "%s%.1f %.1f", i == first ? "M" : "L",
                              pixel_x(f, curve->x[i]), band_y(f, curve->high[i]));
            }
            for (uint32_t i = end; i-- > first;) {
                (void)fprintf(f->file, "L%.1f %.1f", pixel_x(f, curve->x[i]),
                              band_y(f, curve->low[i]));
            }
            (void)fputs("Z\"/>", f->file);
        }
        first = end;
    }
}

static void put_line(const frame *f, const rp_series *curve) {
    bool pen = false;
    uint32_t points = 0;
    (void)fprintf(f->file, "<path class=\"line%s\" d=\"", is_dashed(curve) ? " dash" : "");
    for (uint32_t i = 0; i < curve->count; i++) {
        if (point_shown(f, curve, i)) {
            (void)fprintf(f->file, "%s%.1f %.1f", pen ? "L" : "M", pixel_x(f, curve->x[i]),
                          pixel_y(f, curve->y[i]));
            points++;
        }
        pen = point_shown(f, curve, i);
    }
    (void)fprintf(f->file, "%s\"><title>", points ? "" : "M0 0");
    rp_drawing_text(f->file, curve->name);
    (void)fputs("</title></path>", f->file);
}

static void put_dot_title(const frame *f, const rp_series *curve, uint32_t i) {
    const double scale = f->plot->percent ? 100 : 1;
    (void)fputs("<title>", f->file);
    rp_drawing_text(f->file, curve->name);
    (void)fputs(": ", f->file);
    rp_drawing_text(f->file, f->plot->x_label);
    (void)fprintf(f->file, " %g: %.4g%s", curve->x[i], scale * curve->y[i],
                  f->plot->percent ? " %" : "");
    if (curve->low && isfinite(curve->high[i])) {
        (void)fprintf(f->file, " \xc2\xb1 %.2g", scale * (curve->high[i] - curve->y[i]));
    }
    (void)fputs("</title>", f->file);
}

/* Marks single points: dots if there are few, and a bar instead of a band with one point. */
static void put_dots(const frame *f, const rp_series *curve) {
    uint32_t last = curve->count;
    double x = 0;
    double y = 0;
    for (uint32_t i = 0; i < curve->count; i++) {
        if (!point_shown(f, curve, i)) {
            continue;
        }
        last = i;
        x = pixel_x(f, curve->x[i]);
        y = pixel_y(f, curve->y[i]);
        if (curve->count == 1 && curve->low && point_banded(f, curve, i)) {
            (void)fprintf(f->file, "<path class=\"line\" d=\"M%.1f %.1fV%.1f\"/>", x,
                          band_y(f, curve->low[i]), band_y(f, curve->high[i]));
        }
        if (curve->count <= DOTS_MAX) {
            (void)fprintf(f->file, "<circle class=\"dot\" cx=\"%.1f\" cy=\"%.1f\" r=\"%s\">", x, y,
                          curve->count == 1 ? "5" : "3");
            put_dot_title(f, curve, i);
            (void)fputs("</circle>", f->file);
        }
        if (i == curve->marked) {
            (void)fprintf(f->file, "<circle class=\"ring\" cx=\"%.1f\" cy=\"%.1f\" r=\"7\"/>", x,
                          y);
        }
    }
    if (last + 1 < curve->count) { /* the curve ends early */
        (void)fprintf(f->file, "<path class=\"cross\" d=\"M%.1f %.1fl10 10m0 -10l-10 10\"><title>",
                      x - 5, y - 5);
        rp_drawing_text(f->file, curve->name);
        (void)fputs(": not finite from here on</title></path>", f->file);
    }
}

/* First y, going down from `y`, where a name from x to x + wide overlaps no other name. */
static double free_place(const double (*taken)[3], uint32_t count, double x, double wide,
                         double y) {
    for (uint32_t i = 0; i < count; i++) {
        bool clear = x + wide < taken[i][0] || x > taken[i][0] + taken[i][1];
        if (!clear && fabs(y - taken[i][2]) < NAME_HEIGHT) {
            /* 0.5 more, because (t + h) - t may be less than h, which would loop for ever */
            y = taken[i][2] + NAME_HEIGHT + 0.5;
            i = UINT32_MAX; /* start over with the first name; y only grows, so this ends */
        }
    }
    return y;
}

/* Writes names next to the last points of curves. */
static void put_names(const frame *f) {
    double taken[NAMES_MAX][3]; /* x, width, y */
    char classes[40];
    uint32_t count = 0;
    for (uint32_t c = 0; c < f->plot->count && count < NAMES_MAX; c++) {
        const rp_series *curve = &f->plot->series[c];
        const uint32_t last = curve->count - 1;
        if (curve->count == 0 || !point_shown(f, curve, last)) {
            continue;
        }
        const double wide = 7.0 * (double)strlen(curve->name);
        const double x = pixel_x(f, curve->x[last]);
        const bool left = x + 10 + wide > RIGHT;
        const double from = left ? x - 10 - wide : x + 10;
        const double y = free_place(taken, count, from, wide, pixel_y(f, curve->y[last]) + 4);
        taken[count][0] = from;
        taken[count][1] = wide;
        taken[count++][2] = y;
        (void)snprintf(classes, sizeof classes, "name%s m%u", left ? " end" : "", curve->line);
        put_text(f, classes, left ? x - 10 : x + 10, y, curve->name);
    }
}

static void put_curves(const frame *f) {
    /* a nested <svg> clips the curves without an id, which would have to be unique in a page */
    (void)fprintf(f->file,
                  "<svg x=\"0\" y=\"%d\" width=\"%d\" height=\"%d\" viewBox=\"0 %d %d %d\">\n",
                  TOP - 6, RP_DRAWING_WIDTH, HEIGHT + 12, TOP - 6, RP_DRAWING_WIDTH, HEIGHT + 12);
    for (uint32_t pass = 0; pass < 2; pass++) { /* bands first, below all lines */
        for (uint32_t c = 0; c < f->plot->count; c++) {
            const rp_series *curve = &f->plot->series[c];
            rp_drawing_group(f->file, curve->line);
            if (pass == 0 && curve->low) {
                put_band(f, curve);
            } else if (pass == 1) {
                put_line(f, curve);
                put_dots(f, curve);
            }
            (void)fputs("</g>\n", f->file);
        }
    }
    if (f->plot->names) {
        put_names(f);
    }
    (void)fputs("</svg>\n", f->file);
}

/* ---- bars ------------------------------------------------------------------------------------ */

static void put_bars(const frame *f) {
    const rp_plot *plot = f->plot;
    const uint32_t groups = plot->count ? plot->series[0].count : 0;
    const double group = (RIGHT - f->left) / (groups ? groups : 1);
    const double wide = fmin(0.82 * group / (plot->count ? plot->count : 1), BAR_MAX);
    char text[40];
    for (uint32_t s = 0; s < plot->count; s++) {
        const rp_series *series = &plot->series[s];
        rp_drawing_group(f->file, series->line);
        for (uint32_t g = 0; g < groups; g++) {
            if (!isfinite(series->y[g])) {
                continue;
            }
            const double x = f->left + group * (g + 0.5) + wide * (s - plot->count / 2.0);
            const double top = pixel_y(f, series->y[g]);
            (void)fprintf(f->file,
                          "<rect class=\"bar\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
                          "height=\"%.1f\" rx=\"1.5\"><title>",
                          x, top, wide > 3 ? wide - 1 : wide, f->bottom - top);
            rp_drawing_text(f->file, series->name);
            (void)fprintf(f->file, ", %s %u: %.4g</title></rect>", plot->x_label, g, series->y[g]);
        }
        (void)fputs("</g>\n", f->file);
    }
    for (uint32_t g = 0; g < groups; g++) {
        (void)snprintf(text, sizeof text, "%s %u", plot->x_label, g);
        put_text(f, "mid", f->left + group * (g + 0.5), f->bottom + LABEL_HEIGHT, text);
    }
}

/* ---- differences ----------------------------------------------------------------------------- */

/* Shortens a UTF-8 name to NAME_CHARS, with an ellipsis. */
static void fit_name(const char *name, char *out, size_t bytes) {
    uint32_t chars = 0;
    size_t used = 0;
    size_t cut = 0; /* bytes of the first NAME_CHARS - 1 characters */
    for (; name[used]; used++) {
        if (((unsigned char)name[used] & 0xc0) != 0x80 && chars++ == NAME_CHARS - 1) {
            cut = used;
        }
    }
    (void)snprintf(out, bytes, "%.*s%s", (int)(chars > NAME_CHARS ? cut : used), name,
                   chars > NAME_CHARS ? "\xe2\x80\xa6" : "");
}

/* Draws an interval; an end outside of the plot is an arrow. */
static void put_interval(const frame *f, double low, double high, double y) {
    const double from = fmax(pixel_x(f, low), f->left);
    const double to = fmin(pixel_x(f, high), RIGHT);
    (void)fprintf(f->file,
                  "<path class=\"line\" d=\"M%.1f %.1fH%.1fM%.1f %.1f%sM%.1f %.1f%s\"><title>95 %% "
                  "interval %+.3g to %+.3g</title></path>",
                  from, y, to, from, y - 5, pixel_x(f, low) < f->left ? "l-5 5l5 5" : "v10", to,
                  y - 5, pixel_x(f, high) > RIGHT ? "l5 5l-5 5" : "v10", low, high);
}

static void put_differences(const frame *f) {
    char name[4 * NAME_CHARS + 8];
    for (uint32_t r = 0; r < f->plot->count; r++) {
        const rp_series *row = &f->plot->series[r];
        const double y = TOP + ROW_HEIGHT * (r + 0.5);
        fit_name(row->name, name, sizeof name);
        put_text(f, "name end", f->left - 14, y + 4, name);
        (void)fprintf(f->file, "<g class=\"%s\">",
                      row->verdict > 0   ? "good"
                      : row->verdict < 0 ? "bad"
                                         : "even");
        if (isfinite(row->low[0]) && isfinite(row->high[0])) {
            put_interval(f, row->low[0], row->high[0], y);
        }
        for (uint32_t i = 0; i < row->count; i++) {
            if (isfinite(row->x[i])) {
                (void)fprintf(f->file,
                              "<circle class=\"faint\" cx=\"%.1f\" cy=\"%.1f\" r=\"4\"><title>"
                              "%+.4g</title></circle>",
                              pixel_x(f, row->x[i]), y, row->x[i]);
            }
        }
        if (isfinite(row->y[0])) {
            (void)fprintf(f->file,
                          "<path class=\"dot\" d=\"M%.1f %.1fl6 6l-6 6l-6 -6z\"><title>mean "
                          "%+.4g</title></path>",
                          pixel_x(f, row->y[0]), y - 6, row->y[0]);
        }
        (void)fputs("</g>\n", f->file);
    }
}

/* ---- all ------------------------------------------------------------------------------------- */

/* Number of rows of the legend; draws it if `draw`. */
static uint32_t put_legend(const frame *f, bool draw, double y) {
    double x = LEFT;
    uint32_t rows = 1;
    for (uint32_t c = 0; c < f->plot->count; c++) {
        const rp_series *series = &f->plot->series[c];
        const double wide = 44 + 7.2 * (double)strlen(series->name);
        if (x > LEFT && x + wide > RIGHT) {
            x = LEFT;
            rows++;
        }
        if (draw) {
            const double at = y + ENTRY_HEIGHT * (rows - 1.0);
            rp_drawing_group(f->file, series->line);
            if (f->plot->kind == RP_PLOT_BARS) {
                (void)fprintf(f->file,
                              "<rect class=\"bar\" x=\"%.0f\" y=\"%.0f\" width=\"12\" "
                              "height=\"12\"/>",
                              x + 5, at - 10);
            } else {
                (void)fprintf(f->file, "<path class=\"line%s\" d=\"M%.0f %.0fh22\"/>",
                              is_dashed(series) ? " dash" : "", x, at - 4);
            }
            put_text(f, "name", x + 28, at, series->name);
            (void)fputs("</g>\n", f->file);
        }
        x += wide;
    }
    return rows;
}

void rp_plot_write(FILE *file, const rp_plot *plot, bool standalone) {
    bool cut;
    const bool legend = standalone && !plot->names && plot->kind != RP_PLOT_DIFFERENCES;
    const rp_plot_range x = rp_plot_range_x(plot);
    const rp_plot_range y = rp_plot_range_y(plot, &cut);
    frame f = {.file = file,
               .plot = plot,
               .x = rp_axis_make(x.low, x.high, plot->log_x,
                                 plot->whole_x && x.high < X_TICKS ? (uint32_t)x.high : X_TICKS),
               .y = rp_axis_make(y.low, y.high, plot->log_y, 5),
               .left = plot->kind == RP_PLOT_DIFFERENCES ? NAMES_LEFT : LEFT,
               .bottom = plot->kind == RP_PLOT_DIFFERENCES ? TOP + ROW_HEIGHT * (double)plot->count
                                                           : TOP + HEIGHT};
    char note[256];
    (void)snprintf(note, sizeof note, "%s%s%s", plot->note, plot->note[0] && cut ? "; " : "",
                   cut ? "cut off above the range" : "");
    const double below = f.bottom + (plot->kind == RP_PLOT_BARS ? 34 : 52);
    const double height = below + (note[0] ? 8 : 0) +
                          (legend ? 12 + (double)ENTRY_HEIGHT * put_legend(&f, false, 0) : 0);
    rp_drawing_open(file, plot->title, note, height, standalone);
    if (plot->kind != RP_PLOT_DIFFERENCES) {
        put_y_axis(&f);
    }
    if (plot->kind != RP_PLOT_BARS) {
        put_x_axis(&f);
    }
    (plot->kind == RP_PLOT_CURVES ? put_curves
     : plot->kind == RP_PLOT_BARS ? put_bars
                                  : put_differences)(&f);
    if (legend) {
        (void)put_legend(&f, true, below + 10);
    }
    (void)fputs("</svg>\n", file);
}
