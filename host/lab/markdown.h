/* table.md: the same tables as report.html, as text that is aligned. */
#ifndef RP_LAB_MARKDOWN_H
#define RP_LAB_MARKDOWN_H

#include <stdio.h>

#include "lab/table.h"

rp_err rp_lab_markdown(const rp_lab_table *table, const rp_lab_report_options *options,
                       FILE *file) RP_MUST_CHECK;
/* The methods' table of one model. */
rp_err rp_lab_markdown_methods(const rp_lab_table *table, uint32_t model, FILE *file) RP_MUST_CHECK;

#endif
