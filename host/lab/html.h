/* report.html: one page that needs nothing else, no script, no font, no network. */
#ifndef RP_LAB_HTML_H
#define RP_LAB_HTML_H

#include <stdio.h>

#include "lab/figures.h"
#include "lab/table.h"

/* An error of the disk is seen in `file` when all is written. */
void rp_lab_html(const rp_lab_table *table, const rp_lab_report_options *options,
                 const rp_lab_figures *figures, FILE *file);

#endif
