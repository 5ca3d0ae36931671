/* How the numbers of a comparison were made: a list of Markdown, one item a line, with `code` and
 * **bold** as its only marks. */
#ifndef RP_LAB_HOW_H
#define RP_LAB_HOW_H

#include "lab/table.h"

/* The text goes to `put` in pieces, in order. */
void rp_lab_how(const rp_lab_table *table, void (*put)(void *to, const char *text), void *to);

#endif
