/* report.html: one page without scripts, external fonts or network. */
#ifndef RP_LAB_HTML_H
#define RP_LAB_HTML_H

#include <stdio.h>

#include "lab/figures.h"
#include "lab/table.h"

/* Check `file` for write errors afterwards. */
void rp_lab_html(const rp_lab_table *table, const rp_lab_report_options *options,
                 const rp_lab_figures *figures, FILE *file);

#endif
