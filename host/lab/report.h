/* The files of a comparison: table.md, table.json, report.html and curves/, each replaced as a
 * whole. */
#ifndef RP_LAB_REPORT_H
#define RP_LAB_REPORT_H

#include <stdio.h>

#include "lab/table.h"

rp_err rp_lab_report_write(const rp_lab_table *table,
                           const rp_lab_report_options *options) RP_MUST_CHECK;

/* The tables of methods alone, aligned for a terminal. */
void rp_lab_report_print(const rp_lab_table *table, FILE *file);
/* What table.json holds, in one line. */
rp_err rp_lab_report_print_json(const rp_lab_table *table, const rp_lab_report_options *options,
                                FILE *file) RP_MUST_CHECK;

#endif
