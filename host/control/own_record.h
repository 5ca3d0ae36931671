/* What the record and the run folder are told, and what `ringpipe plan` and `profile` answer. */
#ifndef RP_CONTROL_OWN_RECORD_H
#define RP_CONTROL_OWN_RECORD_H

typedef struct rp_controller rp_controller;

/* run.yaml with every --set, and plan.json. */
rp_err rp_controller_write_folder(rp_controller *c) RP_MUST_CHECK;
/* Whether a plan or a profile may be written to --out. errors USAGE: another file is there */
rp_err rp_controller_check_out(const rp_controller *c) RP_MUST_CHECK;
/* The plan or the profile to `path`; NULL: to env.result. */
rp_err rp_controller_write_json(rp_controller *c, const char *path, bool profile) RP_MUST_CHECK;
/* To the file that the options name, and to the result, in its format. */
rp_err rp_controller_show(rp_controller *c, bool profile) RP_MUST_CHECK;
/* The record gets plain facts. Opens it for the position where the run stands. */
rp_err rp_controller_open_record(rp_controller *c) RP_MUST_CHECK;
/* The record goes back to the position. */
rp_err rp_controller_rewind_record(rp_controller *c) RP_MUST_CHECK;
/* What the record has counted goes into the position, for a checkpoint. */
void rp_controller_read_totals(rp_controller *c);
/* Packed records of ops that a stage has run (wire/trace.h). errors  PEER */
rp_err rp_controller_record_ops(rp_controller *c, uint32_t stage,
                                const rp_part *part) RP_MUST_CHECK;
/* What the boards have said so far goes to the record. */
rp_err rp_controller_record_facts(rp_controller *c) RP_MUST_CHECK;
rp_err rp_controller_close_record(rp_controller *c, const char *status,
                                  const char *note) RP_MUST_CHECK;

#endif
