/* The run folder: its paths, its lock, and what the record is told. */
#ifndef RP_CONTROL_OWN_FOLDER_H
#define RP_CONTROL_OWN_FOLDER_H

#include "control/transfers.h"

typedef struct rp_controller rp_controller;

typedef struct {
    rp_record *record;       /* NULL: PLAN, PROFILE and WARM leave no record */
    rp_transfers *transfers; /* NULL: nobody reads the trace */
    const char *path;        /* NULL but for TRAIN */
    int fd;                  /* holds the folder's lock; -1: none */
    bool is_owned;           /* its controller.json names this process */
    /* paths in it */
    char *checkpoints, *weights, *run_yaml, *model_yaml, *best_weights, *plan_json, *data_json;
} rp_folder;

/* Chooses, checks, makes and locks the run folder. errors USAGE: it holds another run, or none to
 * resume, or another controller has it */
rp_err rp_controller_choose_folder(rp_controller *c) RP_MUST_CHECK;
void rp_controller_unlock_folder(rp_controller *c);
/* The same at the end of an orderly life: nobody is named as its owner any more. */
void rp_controller_leave_folder(rp_controller *c);
/* run.yaml with every --set, and plan.json. */
rp_err rp_controller_write_folder(rp_controller *c) RP_MUST_CHECK;
/* Whether a plan or a profile may be written to --out. errors USAGE: another file is there */
rp_err rp_controller_check_out(const rp_controller *c) RP_MUST_CHECK;
/* In the log of a run that goes on: from where, and with which other settings than its run.yaml,
 * which is not written yet, has. errors IO */
rp_err rp_controller_note_resumed(rp_controller *c) RP_MUST_CHECK;
/* Such a setting that matters to what was trained before; "": there is none. errors MEMORY */
rp_err rp_controller_find_changes(rp_controller *c, char *text, size_t bytes) RP_MUST_CHECK;
/* train.microbatch: auto: the number that the run was begun with. errors MEMORY */
rp_err rp_controller_resume_micro(rp_controller *c) RP_MUST_CHECK;
/* data.json of before, or NULL; the comparison, behind the new one, takes it. errors IO */
void *rp_controller_read_data_json(const rp_controller *c);
rp_err rp_controller_compare_data(rp_controller *c, void *before) RP_MUST_CHECK;
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
