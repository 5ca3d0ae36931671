/* Settings that are valid but train badly: refused, or noted before the run begins. */
#ifndef RP_RUN_REMARKS_H
#define RP_RUN_REMARKS_H

#include "run/runfile.h"

/* Refuses a layer that normalises every value by itself in every microbatch: it outputs 0, so
 * layers before it are not trained. errors USAGE naming the layer and a remedy */
rp_err rp_runfile_check_values(const rp_runfile *run) RP_MUST_CHECK;
/* As rp_runfile_check_values(), for the layers [first, end) on a board with this share of the
 * samples of each step. */
rp_err rp_runfile_check_shared_values(const rp_runfile *run, uint32_t first, uint32_t end,
                                      const double share[2]) RP_MUST_CHECK;

/* Add notes on settings that are allowed but may not be intended. errors MEMORY */
rp_err rp_runfile_note(rp_arena *arena, const rp_runfile *run, rp_notes *out) RP_MUST_CHECK;
rp_err rp_runfile_note_shared(rp_arena *arena, const rp_runfile *run, uint32_t first, uint32_t end,
                              const double share[2], rp_notes *out) RP_MUST_CHECK;

#endif
