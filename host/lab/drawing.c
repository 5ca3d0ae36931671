#include "lab/drawing.h"

/* Style of a standalone file: the light colours of report.css without CSS variables, which some
 * programs lack. Colours differ in lightness and without red and green; after RP_DRAWING_COLOURS
 * lines they repeat with dashes. */
static const char plain_style[] =
    "text{font-family:system-ui,-apple-system,'Segoe UI','DejaVu Sans',sans-serif;"
    "font-size:12px;fill:#65707c}\n"
    ".title{font-size:15px;font-weight:600;fill:#1f2933}.name{fill:#1f2933}\n"
    ".paper{fill:#ffffff}.grid{stroke:#e3e8ee;stroke-width:1;fill:none}\n"
    ".zero{stroke:#65707c;stroke-width:1.5;fill:none}\n"
    ".end{text-anchor:end}.mid{text-anchor:middle}\n"
    ".line,.ring,.cross{fill:none}.line{stroke-width:2;stroke-linejoin:round}\n"
    ".ring{stroke-width:2}.cross{stroke-width:2.5}.dash{stroke-dasharray:6 4}\n"
    ".band{opacity:.14}.faint{opacity:.4}\n";

static const struct {
    const char *name, *colour;
} plain_colours[] = {{"c0", "#0b64b4"},  {"c1", "#d9541e"}, {"c2", "#0b8f6a"},   {"c3", "#a1489b"},
                     {"c4", "#c28a00"},  {"c5", "#2fa3d6"}, {"c6", "#6a4fc1"},   {"c7", "#8a5a2b"},
                     {"c8", "#5b6b7b"},  {"c9", "#d0417e"}, {"good", "#0a7d4f"}, {"bad", "#b3261e"},
                     {"even", "#65707c"}};

static void put_plain_style(FILE *file) {
    (void)fputs(plain_style, file);
    for (size_t i = 0; i < sizeof plain_colours / sizeof *plain_colours; i++) {
        const char *name = plain_colours[i].name;
        const char *colour = plain_colours[i].colour;
        (void)fprintf(file,
                      ".%s .line,.%s .ring,.%s .cross{stroke:%s}"
                      ".%s .band,.%s .dot,.%s .bar,.%s .faint{fill:%s}\n",
                      name, name, name, colour, name, name, name, name, colour);
    }
}

void rp_drawing_text(FILE *file, const char *text) {
    for (; *text; text++) {
        switch (*text) {
        case '&':
            (void)fputs("&amp;", file);
            break;
        case '<':
            (void)fputs("&lt;", file);
            break;
        case '>':
            (void)fputs("&gt;", file);
            break;
        case '"':
            (void)fputs("&quot;", file);
            break;
        default: /* XML allows no control characters */
            (void)fputc((unsigned char)*text < ' ' ? ' ' : *text, file);
        }
    }
}

void rp_drawing_open(FILE *file, const char *title, const char *note, double height,
                     bool standalone) {
    (void)fprintf(
        file, "<svg%s class=\"drawing\" viewBox=\"0 0 %d %.0f\" role=\"img\" aria-label=\"",
        standalone ? " xmlns=\"http://www.w3.org/2000/svg\"" : "", RP_DRAWING_WIDTH, height);
    rp_drawing_text(file, title);
    (void)fputs("\"", file);
    if (standalone) {
        (void)fprintf(file, " width=\"%d\" height=\"%.0f\">\n<style>\n", RP_DRAWING_WIDTH, height);
        put_plain_style(file);
        (void)fprintf(file, "</style>\n<rect class=\"paper\" width=\"%d\" height=\"%.0f\"/>\n",
                      RP_DRAWING_WIDTH, height);
    } else {
        (void)fputs(">\n", file);
    }
    (void)fprintf(file, "<text class=\"title\" x=\"14\" y=\"22\">");
    rp_drawing_text(file, title);
    (void)fputs("</text>\n", file);
    if (note[0]) {
        (void)fprintf(file, "<text x=\"14\" y=\"%.0f\">", height - 8);
        rp_drawing_text(file, note);
        (void)fputs("</text>\n", file);
    }
}

void rp_drawing_group(FILE *file, uint32_t line) {
    (void)fprintf(file, "<g class=\"c%u m%u\">", line % RP_DRAWING_COLOURS, line);
}

void rp_drawing_tick(const rp_axis *axis, double tick, bool percent,
                     char text[RP_AXIS_TEXT_BYTES]) {
    rp_axis shown = *axis;
    if (percent) { /* so that the digits fit */
        shown.low *= 100;
        shown.high *= 100;
        for (uint32_t i = 0; i < shown.tick_count; i++) {
            shown.tick[i] *= 100;
        }
    }
    rp_axis_text(&shown, percent ? 100 * tick : tick, text);
}
