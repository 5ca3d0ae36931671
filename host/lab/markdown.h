/* table.md: the same tables as report.html, as text that is aligned. An error of the disk is seen
 * in `file` when all is written. */
#ifndef RP_LAB_MARKDOWN_H
#define RP_LAB_MARKDOWN_H

#include <stdio.h>

#include "lab/columns.h"

void rp_lab_markdown(const rp_lab_table *table, const rp_lab_report_options *options, FILE *file);
void rp_lab_markdown_sheet(const rp_lab_sheet *sheet, FILE *file);

#endif
