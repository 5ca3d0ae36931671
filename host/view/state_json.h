/* The state of a run as JSON, for the page. */
#ifndef RP_VIEW_STATE_JSON_H
#define RP_VIEW_STATE_JSON_H

#include "view/run_files.h"
#include "view/text.h"

/* One object in one line, without a newline. */
void rp_view_state_json(const rp_view_facts *facts, rp_view_text *out);
/* A row of the list of runs, as an object. */
void rp_view_row_json(const rp_view_run *run, const rp_run_state *state, rp_view_text *out);

#endif
