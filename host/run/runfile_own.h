/* Readers of the sections of a run file. Their errors name file, line and key. */
#ifndef RP_RUN_RUNFILE_OWN_H
#define RP_RUN_RUNFILE_OWN_H

#include "run/runfile.h"

/* sections.c: the map under a key; *out NULL: the key is missing. `like`: an example for the error,
 * or "". */
rp_err rp_section_map(rp_node *root, const char *key, const char *like,
                      rp_node **out) RP_MUST_CHECK;
rp_err rp_section_need(rp_node *root, const char *key, rp_node **out) RP_MUST_CHECK;

/* train.c: `train`, `checkpoint`, `record`; checks that need the whole run file. */
rp_err rp_runfile_read_train(rp_arena *arena, rp_node *root, rp_runfile *run) RP_MUST_CHECK;
rp_err rp_runfile_read_checkpoint(rp_node *root, rp_runfile *run) RP_MUST_CHECK;
rp_err rp_runfile_read_record(rp_node *root, rp_runfile *run) RP_MUST_CHECK;
rp_err rp_runfile_check_scores(const rp_runfile *run) RP_MUST_CHECK;
rp_err rp_runfile_check_micro(const rp_runfile *run) RP_MUST_CHECK;

/* ring.c: `ring`. */
rp_err rp_runfile_read_ring(rp_arena *arena, rp_node *root, rp_runfile *run) RP_MUST_CHECK;

/* plan.c: `plan` without its schedules; a check that needs the method and the cut. */
rp_err rp_runfile_read_plan(rp_node *root, rp_runfile *run) RP_MUST_CHECK;
rp_err rp_runfile_check_share(const rp_runfile *run) RP_MUST_CHECK;

#endif
