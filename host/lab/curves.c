#include "lab/curves.h"

#include <math.h>
#include <string.h>

#include "lab/drawing.h"

enum { BOTTOM = 52, DOTS_MAX = 24, X_TICKS = 6, NAMES_MAX = 256, NAME_HEIGHT = 14 };

static const double none = (double)NAN;

/* ---- axes ------------------------------------------------------------------------------------ */

static double plot_x(const rp_axis *axis, double value, double right) {
    return RP_DRAWING_LEFT + rp_axis_position(axis, value) * (right - RP_DRAWING_LEFT);
}

static double plot_y(const rp_axis *axis, double value) {
    return RP_DRAWING_TOP + (1 - rp_axis_position(axis, value)) * RP_DRAWING_PLOT;
}

static void put_axes(FILE *file, const rp_axis *x, const rp_axis *y, const rp_chart *chart,
                     double right) {
    for (uint32_t i = 0; i < y->tick_count; i++) {
        double at = plot_y(y, y->tick[i]);
        (void)fprintf(file,
                      "<path class=\"grid\" d=\"M%d %.1fH%.0f\"/><text class=\"end\" "
                      "x=\"%d\" y=\"%.1f\">",
                      RP_DRAWING_LEFT, at, right, RP_DRAWING_LEFT - 8, at + 4);
        rp_drawing_tick(file, y, y->tick[i], chart->percent);
        (void)fputs("</text>\n", file);
    }
    for (uint32_t i = 0; i < x->tick_count; i++) {
        double at = plot_x(x, x->tick[i], right);
        (void)fprintf(file,
                      "<path class=\"grid\" d=\"M%.1f %dv%d\"/><text class=\"mid\" "
                      "x=\"%.1f\" y=\"%d\">",
                      at, RP_DRAWING_TOP, RP_DRAWING_PLOT + 4, at,
                      RP_DRAWING_TOP + RP_DRAWING_PLOT + 18);
        rp_drawing_tick(file, x, x->tick[i], false);
        (void)fputs("</text>\n", file);
    }
    (void)fprintf(file, "<text class=\"end\" x=\"%.0f\" y=\"%d\">", right,
                  RP_DRAWING_TOP + RP_DRAWING_PLOT + 36);
    rp_drawing_text(file, chart->x_label);
    (void)fprintf(file, "</text>\n<text class=\"end\" x=\"%d\" y=\"22\">",
                  RP_DRAWING_WIDTH - RP_DRAWING_RIGHT);
    rp_drawing_text(file, chart->y_label);
    (void)fputs("</text>\n", file);
}

/* ---- ranges ---------------------------------------------------------------------------------- */

typedef struct {
    double low, high;
} range;

static void widen_range(range *r, double value) {
    if (isfinite(value)) {
        r->low = !(value >= r->low) ? value : r->low;
        r->high = !(value <= r->high) ? value : r->high;
    }
}

static double first_of(const rp_curve *curve) {
    for (uint32_t i = 0; i < curve->count; i++) {
        if (isfinite(curve->y[i])) {
            return curve->y[i];
        }
    }
    return none;
}

/* A value that half of the curve lies below; exact enough, and without a copy. */
static double middle_of(const rp_curve *curve) {
    range all = {none, none};
    for (uint32_t i = 0; i < curve->count; i++) {
        widen_range(&all, curve->y[i]);
    }
    for (int halvings = 0; halvings < 40 && isfinite(all.low); halvings++) {
        double guess = (all.low + all.high) / 2;
        uint32_t below = 0;
        uint32_t above = 0;
        for (uint32_t i = 0; i < curve->count; i++) {
            below += isfinite(curve->y[i]) && curve->y[i] <= guess;
            above += isfinite(curve->y[i]) && curve->y[i] > guess;
        }
        if (below < above) {
            all.low = guess;
        } else {
            all.high = guess;
        }
    }
    return all.high;
}

/* Above it a curve is cut: one and a half times its beginning or four times its middle. */
static double ceiling_of(const rp_curve *curve) {
    double start = 1.5 * first_of(curve);
    double middle = 4 * middle_of(curve);
    return middle > start ? middle : start;
}

/* One curve that shoots up must not press the others flat: those with a ceiling of more than ten
 * times the least one do not count. */
static double limit_of(const rp_chart *chart) {
    double least = none;
    double limit = none;
    for (uint32_t c = 0; c < chart->count; c++) {
        double ceiling = ceiling_of(&chart->curve[c]);
        least = ceiling > 0 && !(ceiling >= least) ? ceiling : least;
    }
    for (uint32_t c = 0; c < chart->count; c++) {
        double ceiling = ceiling_of(&chart->curve[c]);
        limit = ceiling <= 10 * least && !(ceiling <= limit) ? ceiling : limit;
    }
    return limit;
}

static void widen_by(range *r, const rp_chart *chart, const rp_curve *curve, double limit) {
    for (uint32_t i = 0; i < curve->count; i++) {
        if (chart->log_y && !(curve->y[i] > 0)) {
            continue;
        }
        widen_range(r, curve->y[i]);
        if (curve->low && !chart->log_y && !(curve->high[i] > limit)) {
            widen_range(r, curve->y[i] >= 0 && curve->low[i] < 0 ? 0 : curve->low[i]);
            widen_range(r, curve->high[i]);
        }
    }
}

static range y_range(const rp_chart *chart, bool *cut) {
    range r = {none, none};
    double limit = chart->log_y || chart->percent ? none : limit_of(chart);
    for (uint32_t c = 0; c < chart->count; c++) {
        widen_by(&r, chart, &chart->curve[c], limit);
    }
    *cut = r.high > limit;
    r.high = *cut ? limit : r.high;
    double room = 0.04 * (r.high - r.low);
    if (!chart->log_y) {
        r.low = r.low >= 0 && r.low < 0.35 * r.high ? 0 : r.low - room;
        r.high += room;
    }
    if (chart->percent) { /* from 0 to 100 %, room around a single value, too */
        const double more = r.high - r.low < 1e-9 ? 0.05 : 0;
        r.low -= more;
        r.high += more;
        r.low = r.low < 0 ? 0 : r.low;
        r.high = r.high > 1 ? 1 : r.high;
    }
    return r;
}

static range x_range(const rp_chart *chart) {
    range r = {none, none};
    if (!chart->x_from_low && !chart->log_x) {
        widen_range(&r, 0);
    }
    for (uint32_t c = 0; c < chart->count; c++) {
        for (uint32_t i = 0; i < chart->curve[c].count; i++) {
            double x = chart->curve[c].x[i];
            widen_range(&r, chart->log_x && x <= 0 ? none : x);
        }
    }
    if (chart->x_from_low && !chart->log_x) { /* points are not put on the edge */
        double room = 0.08 * (r.high - r.low);
        r.low -= r.low - room < 0 && r.low >= 0 ? r.low : room;
        r.high += room;
    } else if (chart->log_x) {
        r.low /= 1.25;
        r.high *= 1.25;
    }
    return r;
}

/* ---- curves ---------------------------------------------------------------------------------- */

typedef struct {
    FILE *file;
    const rp_chart *chart;
    rp_axis x, y;
    double right;
} plot;

static double px(const plot *p, double value) {
    return plot_x(&p->x, value, p->right);
}

/* Far outside is as good as outside, and keeps the numbers short. */
static double py(const plot *p, double value) {
    double y = plot_y(&p->y, value);
    return y < -4000 ? -4000 : y > 4000 ? 4000 : y;
}

static bool point_shown(const plot *p, const rp_curve *curve, uint32_t i) {
    return isfinite(px(p, curve->x[i])) && isfinite(py(p, curve->y[i]));
}

static bool point_banded(const plot *p, const rp_curve *curve, uint32_t i) {
    return point_shown(p, curve, i) && isfinite(curve->low[i]) && isfinite(curve->high[i]);
}

/* Below the axis of a log plot is at its bottom. */
static double band_y(const plot *p, double value) {
    return p->chart->log_y && value <= 0 ? RP_DRAWING_TOP + RP_DRAWING_PLOT : py(p, value);
}

static void put_band(const plot *p, const rp_curve *curve) {
    for (uint32_t first = 0; first < curve->count; first++) {
        if (!point_banded(p, curve, first)) {
            continue;
        }
        uint32_t end = first;
        while (end < curve->count && point_banded(p, curve, end)) {
            end++;
        }
        if (end - first > 1) {
            (void)fputs("<path class=\"band\" d=\"", p->file);
            for (uint32_t i = first; i < end; i++) {
                (void)fprintf(p->file, "%s%.1f %.1f", i == first ? "M" : "L", px(p, curve->x[i]),
                              band_y(p, curve->high[i]));
            }
            for (uint32_t i = end; i-- > first;) {
                (void)fprintf(p->file, "L%.1f %.1f", px(p, curve->x[i]), band_y(p, curve->low[i]));
            }
            (void)fputs("Z\"/>", p->file);
        }
        first = end;
    }
}

static void put_line(const plot *p, const rp_curve *curve) {
    bool pen = false;
    uint32_t points = 0;
    bool dash = curve->dashed || curve->line / RP_DRAWING_COLOURS % 2 == 1;
    (void)fprintf(p->file, "<path class=\"line%s\" d=\"", dash ? " dash" : "");
    for (uint32_t i = 0; i < curve->count; i++) {
        if (point_shown(p, curve, i)) {
            (void)fprintf(p->file, "%s%.1f %.1f", pen ? "L" : "M", px(p, curve->x[i]),
                          py(p, curve->y[i]));
            points++;
        }
        pen = point_shown(p, curve, i);
    }
    (void)fprintf(p->file, "%s\"><title>", points ? "" : "M0 0");
    rp_drawing_text(p->file, curve->name);
    (void)fputs("</title></path>", p->file);
}

static void put_dot_title(const plot *p, const rp_curve *curve, uint32_t i) {
    double scale = p->chart->percent ? 100 : 1;
    (void)fputs("<title>", p->file);
    rp_drawing_text(p->file, curve->name);
    (void)fputs(": ", p->file);
    rp_drawing_text(p->file, p->chart->x_label);
    (void)fprintf(p->file, " %g: %.4g%s", curve->x[i], scale * curve->y[i],
                  p->chart->percent ? " %" : "");
    if (curve->low && isfinite(curve->high[i])) {
        (void)fprintf(p->file, " \xc2\xb1 %.2g", scale * (curve->high[i] - curve->y[i]));
    }
    (void)fputs("</title>", p->file);
}

/* Points where there are few; bars where a band of one point would not be seen. */
static void put_dots(const plot *p, const rp_curve *curve) {
    uint32_t last = curve->count;
    for (uint32_t i = 0; i < curve->count; i++) {
        if (!point_shown(p, curve, i)) {
            continue;
        }
        last = i;
        double x = px(p, curve->x[i]);
        double y = py(p, curve->y[i]);
        if (curve->count == 1 && curve->low && point_banded(p, curve, i)) {
            (void)fprintf(p->file, "<path class=\"line\" d=\"M%.1f %.1fV%.1f\"/>", x,
                          band_y(p, curve->low[i]), band_y(p, curve->high[i]));
        }
        if (curve->count <= DOTS_MAX) {
            (void)fprintf(p->file, "<circle class=\"dot\" cx=\"%.1f\" cy=\"%.1f\" r=\"%s\">", x, y,
                          curve->count == 1 ? "5" : "3");
            put_dot_title(p, curve, i);
            (void)fputs("</circle>", p->file);
        }
        if (i == curve->marked) {
            (void)fprintf(p->file, "<circle class=\"ring\" cx=\"%.1f\" cy=\"%.1f\" r=\"7\"/>", x,
                          y);
        }
    }
    if (last + 1 < curve->count) { /* it ends before its time */
        double x = px(p, curve->x[last]);
        double y = py(p, curve->y[last]);
        (void)fprintf(p->file, "<path class=\"cross\" d=\"M%.1f %.1fl10 10m0 -10l-10 10\"><title>",
                      x - 5, y - 5);
        rp_drawing_text(p->file, curve->name);
        (void)fputs(": not finite from here on</title></path>", p->file);
    }
}

/* The lowest place at or below `y` where a name from x to x + wide lies on no other. */
static double free_place(const double (*taken)[3], uint32_t count, double x, double wide,
                         double y) {
    for (uint32_t i = 0; i < count; i++) {
        bool clear = x + wide < taken[i][0] || x > taken[i][0] + taken[i][1];
        if (!clear && fabs(y - taken[i][2]) < NAME_HEIGHT) {
            /* a little more: (t + h) - t may be less than h, and then this would never end */
            y = taken[i][2] + NAME_HEIGHT + 0.5;
            i = UINT32_MAX; /* from the first again: it only ever goes down */
        }
    }
    return y;
}

/* Beside the last point of each curve. */
static void put_names(const plot *p) {
    double taken[NAMES_MAX][3]; /* x, width, y */
    uint32_t count = 0;
    for (uint32_t c = 0; c < p->chart->count && count < NAMES_MAX; c++) {
        const rp_curve *curve = &p->chart->curve[c];
        uint32_t last = curve->count - 1;
        if (curve->count == 0 || !point_shown(p, curve, last)) {
            continue;
        }
        double wide = 7.0 * (double)strlen(curve->name);
        double x = px(p, curve->x[last]);
        bool left = x + 10 + wide > p->right;
        double from = left ? x - 10 - wide : x + 10;
        double y = free_place(taken, count, from, wide, py(p, curve->y[last]) + 4);
        taken[count][0] = from;
        taken[count][1] = wide;
        taken[count++][2] = y;
        (void)fprintf(p->file, "<text class=\"name%s m%u\" x=\"%.1f\" y=\"%.1f\">",
                      left ? " end" : "", curve->line, left ? x - 10 : x + 10, y);
        rp_drawing_text(p->file, curve->name);
        (void)fputs("</text>", p->file);
    }
}

/* ---- legend ---------------------------------------------------------------------------------- */

enum { ENTRY_HEIGHT = 20 };

/* Rows that it takes; draws when `file` is given. */
static uint32_t put_legend(FILE *file, const rp_chart *chart, double y) {
    double x = RP_DRAWING_LEFT;
    uint32_t rows = 1;
    for (uint32_t c = 0; c < chart->count; c++) {
        const rp_curve *curve = &chart->curve[c];
        double wide = 44 + 7.2 * (double)strlen(curve->name);
        if (x > RP_DRAWING_LEFT && x + wide > RP_DRAWING_WIDTH - RP_DRAWING_RIGHT) {
            x = RP_DRAWING_LEFT;
            rows++;
        }
        if (file) {
            double at = y + ENTRY_HEIGHT * (rows - 1.0);
            bool dash = curve->dashed || curve->line / RP_DRAWING_COLOURS % 2 == 1;
            rp_drawing_group(file, curve->line);
            (void)fprintf(file,
                          "<path class=\"line%s\" d=\"M%.0f %.0fh22\"/><text class=\"name\" "
                          "x=\"%.0f\" y=\"%.0f\">",
                          dash ? " dash" : "", x, at - 4, x + 28, at);
            rp_drawing_text(file, curve->name);
            (void)fputs("</text></g>\n", file);
        }
        x += wide;
    }
    return rows;
}

void rp_chart_write(FILE *file, const rp_chart *chart, bool standalone) {
    bool cut;
    bool legend = standalone && !chart->names;
    range x = x_range(chart);
    range y = y_range(chart, &cut);
    plot p = {.file = file,
              .chart = chart,
              .x = rp_axis_make(x.low, x.high, chart->log_x,
                                chart->whole_x && x.high < X_TICKS ? (uint32_t)x.high : X_TICKS),
              .y = rp_axis_make(y.low, y.high, chart->log_y, 5),
              .right = RP_DRAWING_WIDTH - RP_DRAWING_RIGHT};
    char note[256];
    (void)snprintf(note, sizeof note, "%s%s%s", chart->note, chart->note[0] && cut ? "; " : "",
                   cut ? "cut off above the range" : "");
    double legend_y = RP_DRAWING_TOP + RP_DRAWING_PLOT + BOTTOM + 10;
    double height = RP_DRAWING_TOP + RP_DRAWING_PLOT + BOTTOM + (note[0] ? 8 : 0) +
                    (legend ? 12 + (double)ENTRY_HEIGHT * put_legend(NULL, chart, 0) : 0);
    rp_drawing_open(file, chart->title, note, height, standalone);
    put_axes(file, &p.x, &p.y, chart, p.right);
    /* nested, so that what lies outside is cut without an id that pages would have to share */
    (void)fprintf(file,
                  "<svg x=\"0\" y=\"%d\" width=\"%d\" height=\"%d\" viewBox=\"0 %d %d %d\">\n",
                  RP_DRAWING_TOP - 6, RP_DRAWING_WIDTH, RP_DRAWING_PLOT + 12, RP_DRAWING_TOP - 6,
                  RP_DRAWING_WIDTH, RP_DRAWING_PLOT + 12);
    for (uint32_t pass = 0; pass < 2; pass++) { /* bands lie below all lines */
        for (uint32_t c = 0; c < chart->count; c++) {
            const rp_curve *curve = &chart->curve[c];
            rp_drawing_group(file, curve->line);
            if (pass == 0 && curve->low) {
                put_band(&p, curve);
            } else if (pass == 1) {
                put_line(&p, curve);
                put_dots(&p, curve);
            }
            (void)fputs("</g>\n", file);
        }
    }
    if (chart->names) {
        put_names(&p);
    }
    (void)fputs("</svg>\n", file);
    if (legend) {
        (void)put_legend(file, chart, legend_y);
    }
    (void)fputs("</svg>\n", file);
}
