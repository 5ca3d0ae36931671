#include "lab/bars.h"

#include <math.h>

#include "lab/drawing.h"

/* ---- differences ----------------------------------------------------------------------------- */

enum { FOREST_LEFT = 150, FOREST_TOP = 44, FOREST_ROW = 34, ENTRY_HEIGHT = 20, NAME_CHARS = 20 };

/* Wide enough for the seeds; an interval of two seeds may leave it. */
static double reach_of(const rp_forest *forest) {
    double reach = 0;
    for (uint32_t r = 0; r < forest->count; r++) {
        const rp_forest_row *row = &forest->row[r];
        for (uint32_t i = 0; i < row->count; i++) {
            reach = fabs(row->difference[i]) > reach ? fabs(row->difference[i]) : reach;
        }
        double end = fabs(row->low) > fabs(row->high) ? fabs(row->low) : fabs(row->high);
        double most = 3 * fabs(row->mean) + 1e-12;
        reach = isfinite(end) && end < most && end > reach ? end : reach;
    }
    return reach > 0 ? 1.3 * reach : 1;
}

static double clamped(double value, double low, double high) {
    return value < low ? low : value > high ? high : value;
}

/* What has room at the left; the rest is three dots. UTF-8. */
static void fit_name(const char *name, char *out, size_t bytes) {
    uint32_t chars = 0;
    size_t used = 0;
    size_t cut = 0; /* behind all but the last character that has room */
    for (; name[used]; used++) {
        if (((unsigned char)name[used] & 0xc0) != 0x80 && chars++ == NAME_CHARS - 1) {
            cut = used;
        }
    }
    (void)snprintf(out, bytes, "%.*s%s", (int)(chars > NAME_CHARS ? cut : used), name,
                   chars > NAME_CHARS ? "\xe2\x80\xa6" : "");
}

static void put_forest_row(FILE *file, const rp_forest_row *row, const rp_axis *axis, double y) {
    const double right = RP_DRAWING_WIDTH - RP_DRAWING_RIGHT;
    const double wide = right - FOREST_LEFT;
    char name[4 * NAME_CHARS + 8];
    fit_name(row->name, name, sizeof name);
    (void)fprintf(file, "<text class=\"name end\" x=\"%d\" y=\"%.0f\">", FOREST_LEFT - 14, y + 4);
    rp_drawing_text(file, name);
    (void)fprintf(file, "</text><g class=\"%s\">",
                  row->verdict > 0   ? "good"
                  : row->verdict < 0 ? "bad"
                                     : "even");
    if (isfinite(row->low) && isfinite(row->high)) {
        double from = FOREST_LEFT + wide * clamped(rp_axis_position(axis, row->low), 0, 1);
        double to = FOREST_LEFT + wide * clamped(rp_axis_position(axis, row->high), 0, 1);
        bool open_low = rp_axis_position(axis, row->low) < 0;
        bool open_high = rp_axis_position(axis, row->high) > 1;
        (void)fprintf(file, "<path class=\"line\" d=\"M%.1f %.1fH%.1fM%.1f %.1f%sM%.1f %.1f%s\">",
                      from, y, to, from, y - 5, open_low ? "l-5 5l5 5" : "v10", to, y - 5,
                      open_high ? "l5 5l-5 5" : "v10");
        (void)fprintf(file, "<title>95 %% interval %+.3g to %+.3g</title></path>", row->low,
                      row->high);
    }
    for (uint32_t i = 0; i < row->count; i++) {
        if (isfinite(row->difference[i])) {
            (void)fprintf(file,
                          "<circle class=\"faint\" cx=\"%.1f\" cy=\"%.1f\" r=\"4\"><title>"
                          "%+.4g</title></circle>",
                          FOREST_LEFT + wide * rp_axis_position(axis, row->difference[i]), y,
                          row->difference[i]);
        }
    }
    if (isfinite(row->mean)) {
        double x = FOREST_LEFT + wide * rp_axis_position(axis, row->mean);
        (void)fprintf(file,
                      "<path class=\"dot\" d=\"M%.1f %.1fl6 6l-6 6l-6 -6z\"><title>mean "
                      "%+.4g</title></path>",
                      x, y - 6, row->mean);
    }
    (void)fputs("</g>\n", file);
}

void rp_forest_write(FILE *file, const rp_forest *forest, bool standalone) {
    const double right = RP_DRAWING_WIDTH - RP_DRAWING_RIGHT;
    const double bottom = FOREST_TOP + FOREST_ROW * (double)forest->count;
    double reach = reach_of(forest);
    rp_axis axis = rp_axis_make(-reach, reach, false, 6);
    rp_drawing_open(file, forest->title, forest->note, bottom + 46 + (forest->note[0] ? 18 : 0),
                    standalone);
    for (uint32_t i = 0; i < axis.tick_count; i++) {
        double x = FOREST_LEFT + (right - FOREST_LEFT) * rp_axis_position(&axis, axis.tick[i]);
        (void)fprintf(file,
                      "<path class=\"%s\" d=\"M%.1f %d V%.0f\"/><text class=\"mid\" "
                      "x=\"%.1f\" y=\"%.0f\">%s",
                      axis.tick[i] == 0 ? "zero" : "grid", x, FOREST_TOP - 8, bottom, x,
                      bottom + 16, axis.tick[i] > 0 ? "+" : "");
        rp_drawing_tick(file, &axis, axis.tick[i], false);
        (void)fputs("</text>\n", file);
    }
    (void)fprintf(file, "<text class=\"end\" x=\"%.0f\" y=\"%.0f\">", right, bottom + 34);
    rp_drawing_text(file, forest->x_label);
    (void)fputs("</text>\n", file);
    for (uint32_t r = 0; r < forest->count; r++) {
        put_forest_row(file, &forest->row[r], &axis, FOREST_TOP + FOREST_ROW * (r + 0.5));
    }
    (void)fputs("</svg>\n", file);
}

/* ---- bars ------------------------------------------------------------------------------------ */

static double bar_y(const rp_axis *axis, double value) {
    return RP_DRAWING_TOP + (1 - rp_axis_position(axis, value)) * RP_DRAWING_PLOT;
}

static double highest_value(const rp_bars *bars) {
    double high = 0;
    for (uint32_t i = 0; i < bars->series_count * bars->group_count; i++) {
        high = bars->value[i] > high ? bars->value[i] : high;
    }
    return high;
}

static void put_bars(FILE *file, const rp_bars *bars, const rp_axis *y) {
    double group =
        (RP_DRAWING_WIDTH - RP_DRAWING_RIGHT - RP_DRAWING_LEFT) / (double)bars->group_count;
    double wide = 0.82 * group / bars->series_count;
    wide = wide > 36 ? 36 : wide;
    for (uint32_t s = 0; s < bars->series_count; s++) {
        rp_drawing_group(file, bars->line[s]);
        for (uint32_t g = 0; g < bars->group_count; g++) {
            double value = bars->value[s * bars->group_count + g];
            if (!isfinite(value)) {
                continue;
            }
            double x = RP_DRAWING_LEFT + group * (g + 0.5) + wide * (s - bars->series_count / 2.0);
            double top = bar_y(y, value);
            (void)fprintf(file,
                          "<rect class=\"bar\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
                          "height=\"%.1f\" rx=\"1.5\"><title>",
                          x, top, wide > 3 ? wide - 1 : wide,
                          RP_DRAWING_TOP + RP_DRAWING_PLOT - top);
            rp_drawing_text(file, bars->name[s]);
            (void)fprintf(file, ", %s %u: %.4g</title></rect>", bars->group_label, g, value);
        }
        (void)fputs("</g>\n", file);
    }
}

void rp_bars_write(FILE *file, const rp_bars *bars, bool standalone) {
    rp_axis y = rp_axis_make(0, 1.04 * highest_value(bars), false, 5);
    double legend_y = RP_DRAWING_TOP + RP_DRAWING_PLOT + 44;
    rp_drawing_open(file, bars->title, bars->note,
                    RP_DRAWING_TOP + RP_DRAWING_PLOT + 30 + (bars->note[0] ? 18 : 0) +
                        (standalone ? (double)ENTRY_HEIGHT * bars->series_count : 0),
                    standalone);
    for (uint32_t i = 0; i < y.tick_count; i++) {
        double at = bar_y(&y, y.tick[i]);
        (void)fprintf(file,
                      "<path class=\"grid\" d=\"M%d %.1fH%d\"/><text class=\"end\" x=\"%d\" "
                      "y=\"%.1f\">",
                      RP_DRAWING_LEFT, at, RP_DRAWING_WIDTH - RP_DRAWING_RIGHT, RP_DRAWING_LEFT - 8,
                      at + 4);
        rp_drawing_tick(file, &y, y.tick[i], false);
        (void)fputs("</text>\n", file);
    }
    (void)fprintf(file, "<text class=\"end\" x=\"%d\" y=\"22\">",
                  RP_DRAWING_WIDTH - RP_DRAWING_RIGHT);
    rp_drawing_text(file, bars->y_label);
    (void)fputs("</text>\n", file);
    put_bars(file, bars, &y);
    double group =
        (RP_DRAWING_WIDTH - RP_DRAWING_RIGHT - RP_DRAWING_LEFT) / (double)bars->group_count;
    for (uint32_t g = 0; g < bars->group_count; g++) {
        (void)fprintf(file, "<text class=\"mid\" x=\"%.1f\" y=\"%d\">%s %u</text>\n",
                      RP_DRAWING_LEFT + group * (g + 0.5), RP_DRAWING_TOP + RP_DRAWING_PLOT + 18,
                      bars->group_label, g);
    }
    for (uint32_t s = 0; standalone && s < bars->series_count; s++) {
        rp_drawing_group(file, bars->line[s]);
        (void)fprintf(file,
                      "<rect class=\"bar\" x=\"%d\" y=\"%.0f\" width=\"12\" height=\"12\"/>"
                      "<text class=\"name\" x=\"%d\" y=\"%.0f\">",
                      RP_DRAWING_LEFT, legend_y + ENTRY_HEIGHT * s - 10, RP_DRAWING_LEFT + 20,
                      legend_y + ENTRY_HEIGHT * s);
        rp_drawing_text(file, bars->name[s]);
        (void)fputs("</text></g>\n", file);
    }
    (void)fputs("</svg>\n", file);
}
