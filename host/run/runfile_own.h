/* Parts of reading a run file, one file for each section. Errors have file, line and key. */
#ifndef RP_RUN_RUNFILE_OWN_H
#define RP_RUN_RUNFILE_OWN_H

#include "run/runfile.h"

/* sections.c: the map under a key. NULL when there is none; `like`: what one looks like, or "". */
rp_err rp_section_map(rp_node *root, const char *key, const char *like,
                      rp_node **out) RP_MUST_CHECK;
rp_err rp_section_need(rp_node *root, const char *key, rp_node **out) RP_MUST_CHECK;

/* train.c: `train`, `checkpoint`, `record`; the checks, once all of the run is read. */
rp_err rp_runfile_read_train(rp_arena *arena, rp_node *root, rp_runfile *run) RP_MUST_CHECK;
rp_err rp_runfile_read_checkpoint(rp_node *root, rp_runfile *run) RP_MUST_CHECK;
rp_err rp_runfile_read_record(rp_node *root, rp_runfile *run) RP_MUST_CHECK;
rp_err rp_runfile_check_scores(const rp_runfile *run) RP_MUST_CHECK;
rp_err rp_runfile_check_micro(const rp_runfile *run) RP_MUST_CHECK;

/* ring.c: `ring`. */
rp_err rp_runfile_read_ring(rp_arena *arena, rp_node *root, rp_runfile *run) RP_MUST_CHECK;

/* plan.c: `plan`, but for its schedules; the checks, once the method and the cut are read. */
rp_err rp_runfile_read_plan(rp_node *root, rp_runfile *run) RP_MUST_CHECK;
rp_err rp_runfile_check_share(const rp_runfile *run) RP_MUST_CHECK;

#endif
