/* The state of a run as text, for a terminal. */
#ifndef RP_VIEW_TERMINAL_H
#define RP_VIEW_TERMINAL_H

#include "view/run_files.h"
#include "view/text.h"

/* The texts are made safe for a terminal. */
void rp_view_terminal(const rp_view_facts *facts, rp_view_text *out);

#endif
