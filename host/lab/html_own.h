/* Internals of report.html; only for html*.c. */
#ifndef RP_LAB_HTML_OWN_H
#define RP_LAB_HTML_OWN_H

#include <stdio.h>

#include "lab/columns.h"
#include "lab/figures.h"

typedef struct {
    FILE *file;
    const rp_lab_table *table;
    const rp_lab_report_options *options;
    const rp_lab_figures *figures;
} rp_html_page;

/* report.css, which has the style of the drawings too. */
extern const char rp_html_style[];

/* html_page.c: writes markup unchanged. */
void rp_html_put(const rp_html_page *p, const char *html);
/* Writes text with markup characters escaped. */
void rp_html_text(const rp_html_page *p, const char *text);
/* <tag class="classes">text</tag>; no class when `classes` is empty. */
void rp_html_tag(const rp_html_page *p, const char *tag, const char *classes, const char *text);

/* html_cards.c: the best, fastest and smallest methods of a model. */
void rp_html_cards(const rp_html_page *p, uint32_t model);
/* Row with the best mean accuracy, or loss; NULL: no row has finished. */
const rp_lab_row *rp_html_best(const rp_html_page *p, uint32_t model);

/* html_tables.c: a table, and a list that explains its columns. */
void rp_html_sheet(const rp_html_page *p, const rp_lab_sheet *sheet);
void rp_html_hints(const rp_html_page *p, const rp_lab_sheet *sheet);

#endif
