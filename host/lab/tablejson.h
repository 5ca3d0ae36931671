/* table.json: every number of the report, for programs. */
#ifndef RP_LAB_TABLEJSON_H
#define RP_LAB_TABLEJSON_H

#include <stdio.h>

#include "lab/table.h"

/* `flags`: of json_dumpf(). */
rp_err rp_lab_json(const rp_lab_table *table, const rp_lab_report_options *options, FILE *file,
                   size_t flags) RP_MUST_CHECK;

#endif
