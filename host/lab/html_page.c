/* Writes markup and text into report.html. */
#include "lab/drawing.h"
#include "lab/html_own.h"

void rp_html_put(const rp_html_page *p, const char *html) {
    (void)fputs(html, p->file);
}

void rp_html_text(const rp_html_page *p, const char *text) {
    rp_drawing_text(p->file, text);
}

void rp_html_tag(const rp_html_page *p, const char *tag, const char *classes, const char *text) {
    (void)fprintf(p->file, "<%s%s%s%s>", tag, classes[0] ? " class=\"" : "", classes,
                  classes[0] ? "\"" : "");
    rp_html_text(p, text);
    (void)fprintf(p->file, "</%s>", tag);
}
