#include "lab/drawing.h"

/* Told apart without red and green, and by lightness; the second half repeats with dashes. */
const char rp_drawing_style[] =
    ":root,svg{--ink:#1f2933;--soft:#65707c;--grid:#e3e8ee;--paper:#ffffff;--good:#0a7d4f;"
    "--bad:#b3261e;--s0:#0b64b4;--s1:#d9541e;--s2:#0b8f6a;--s3:#a1489b;--s4:#c28a00;--s5:#2fa3d6;"
    "--s6:#6a4fc1;--s7:#8a5a2b;--s8:#5b6b7b;--s9:#d0417e}\n"
    "@media(prefers-color-scheme:dark){:root,svg{--ink:#e4e9ef;--soft:#97a3b0;--grid:#2b343e;"
    "--paper:#161b21;--good:#4cc38a;--bad:#ff8a80;--s0:#62aef5;--s1:#ff8f5c;--s2:#3fd0a4;"
    "--s3:#dd8bd7;--s4:#f0c04a;--s5:#7fd3f7;--s6:#ab98ff;--s7:#d0a071;--s8:#a9b7c6;--s9:#ff86b3}}\n"
    ".drawing text{font-family:system-ui,-apple-system,'Segoe UI','DejaVu Sans',sans-serif;"
    "font-size:12px;fill:var(--soft)}\n"
    ".drawing .title{font-size:15px;font-weight:600;fill:var(--ink)}\n"
    ".drawing .name{fill:var(--ink)}.drawing .paper{fill:var(--paper)}\n"
    ".drawing .grid{stroke:var(--grid);stroke-width:1;fill:none}\n"
    ".drawing .zero{stroke:var(--soft);stroke-width:1.5;fill:none}\n"
    ".drawing .end{text-anchor:end}.drawing .mid{text-anchor:middle}\n"
    ".drawing .line{fill:none;stroke:var(--c);stroke-width:2;stroke-linejoin:round}\n"
    ".drawing .dash{stroke-dasharray:6 4}.drawing .band{fill:var(--c);opacity:.14}\n"
    ".drawing .dot,.drawing .bar{fill:var(--c)}\n"
    ".drawing .ring{fill:none;stroke:var(--c);stroke-width:2}\n"
    ".drawing .cross{fill:none;stroke:var(--c);stroke-width:2.5}\n"
    ".drawing .faint{fill:var(--c);opacity:.4}\n"
    ".drawing .good{--c:var(--good)}.drawing .bad{--c:var(--bad)}.drawing .even{--c:var(--soft)}\n"
    ".c0{--c:var(--s0)}.c1{--c:var(--s1)}.c2{--c:var(--s2)}.c3{--c:var(--s3)}.c4{--c:var(--s4)}\n"
    ".c5{--c:var(--s5)}.c6{--c:var(--s6)}.c7{--c:var(--s7)}.c8{--c:var(--s8)}.c9{--c:var(--s9)}\n";

/* A file of its own is shown by programs that know no variables, and on white paper: the light
 * colours, by name. */
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
        default: /* XML has no control characters */
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
    if (percent) { /* digits of what is shown */
        shown.low *= 100;
        shown.high *= 100;
        for (uint32_t i = 0; i < shown.tick_count; i++) {
            shown.tick[i] *= 100;
        }
    }
    rp_axis_text(&shown, percent ? 100 * tick : tick, text);
}
