/* Text of the report on how its numbers were made: a Markdown list, one item per line, with `code`
 * and **bold** as its only markup. */
#ifndef RP_LAB_HOW_H
#define RP_LAB_HOW_H

#include "lab/table.h"

/* Passes the text to `put` in pieces. */
void rp_lab_how(const rp_lab_table *table, void (*put)(void *to, const char *text), void *to);

#endif
