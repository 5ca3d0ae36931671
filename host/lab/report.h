/* Writes the files of a comparison: table.md, table.json, report.html and curves/, each replaced
 * atomically. */
#ifndef RP_LAB_REPORT_H
#define RP_LAB_REPORT_H

#include <stdio.h>

#include "lab/table.h"

rp_err rp_lab_report_write(const rp_lab_table *table,
                           const rp_lab_report_options *options) RP_MUST_CHECK;

/* Prints the tables of methods, aligned for a terminal. */
void rp_lab_report_print(const rp_lab_table *table, FILE *file);
/* Prints the content of table.json in one line. */
rp_err rp_lab_report_print_json(const rp_lab_table *table, const rp_lab_report_options *options,
                                FILE *file) RP_MUST_CHECK;

#endif
