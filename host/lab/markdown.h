/* table.md: the tables of report.html as aligned text. Check `file` for write errors afterwards. */
#ifndef RP_LAB_MARKDOWN_H
#define RP_LAB_MARKDOWN_H

#include <stdio.h>

#include "lab/columns.h"

void rp_lab_markdown(const rp_lab_table *table, const rp_lab_report_options *options, FILE *file);
void rp_lab_markdown_sheet(const rp_lab_sheet *sheet, FILE *file);

#endif
