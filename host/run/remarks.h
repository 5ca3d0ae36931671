/* What a run file may say that trains wrong: refused, or said before the run begins. */
#ifndef RP_RUN_REMARKS_H
#define RP_RUN_REMARKS_H

#include "run/runfile.h"

/* Is there a layer that normalises every value by itself, in every microbatch? It makes all of them
 * 0, and what lies before it is not trained. errors USAGE naming the layer, and what would do */
rp_err rp_runfile_check_values(const rp_runfile *run) RP_MUST_CHECK;
/* The same of the layers [first, end) on a board with this share of the samples of each step. */
rp_err rp_runfile_check_shared_values(const rp_runfile *run, uint32_t first, uint32_t end,
                                      const double share[2]) RP_MUST_CHECK;

/* Adds what is allowed and may not be meant. errors MEMORY */
rp_err rp_runfile_note(rp_arena *arena, const rp_runfile *run, rp_notes *out) RP_MUST_CHECK;
rp_err rp_runfile_note_shared(rp_arena *arena, const rp_runfile *run, uint32_t first, uint32_t end,
                              const double share[2], rp_notes *out) RP_MUST_CHECK;

#endif
