/* The folder of a run: which one, its paths, its lock, what is written there before the first step;
 * and the run's record, which the folder holds. */
#ifndef RP_FOLDER_FOLDER_H
#define RP_FOLDER_FOLDER_H

#include "folder/about_file.h"
#include "folder/transfers.h"
#include "plan/plan.h"
#include "record/record.h"
#include "run/runfile.h"

typedef struct rp_folder rp_folder;

/* All NULL where the run has no folder. They live as long as the folder. */
typedef struct {
    const char *folder;
    const char *checkpoints; /* a folder in it; the others are files */
    const char *weights, *best_weights, *run_yaml, *model_yaml, *plan_json, *data_json;
} rp_folder_paths;

/* Of no run yet: without a path and without a record. Everything lives in `arena`. errors MEMORY */
rp_err rp_folder_open(rp_arena *arena, rp_folder **out) RP_MUST_CHECK;

/* Which folder: the first of these that is there, else runs/<time>-<model>-<schedule>. */
typedef struct {
    const char *resume;           /* of a run that goes on; or NULL */
    const char *out;              /* of a new run; or NULL */
    const char *model, *schedule; /* names */
    bool temporary;               /* a simulation: the folder names no process as its owner */
} rp_folder_choice;
/* Chooses, checks, makes and locks the folder. errors USAGE: it holds another run, or none to
 * resume, or another controller has it; IO */
rp_err rp_folder_choose(rp_folder *folder, const rp_folder_choice *choice) RP_MUST_CHECK;

const rp_folder_paths *rp_folder_paths_of(const rp_folder *folder);

/* Shows the command that goes on with the run, if the folder has all that it needs. NULL: the
 * program's, and no keys. */
void rp_folder_print_resume(const rp_folder *folder, FILE *progress, const char *program,
                            const char *keys);

/* The end of an orderly life: nobody is named as its owner any more, and the lock goes. Accepts a
 * folder that was never chosen. */
void rp_folder_leave(rp_folder *folder);
/* The lock alone goes, as with the end of the process. */
void rp_folder_unlock(rp_folder *folder);

/* What the run needs to go on, or to be evaluated, from anywhere. */
typedef struct {
    const rp_runfile *run; /* its YAML gets absolute paths */
    const rp_plan *plan;
    const rp_about *about;
    bool resumed;  /* the first writing of a run that goes on */
    uint64_t step; /* that it goes on from */
} rp_folder_contents;
/* Writes model.yaml, data.json, plan.json, about.json and run.yaml with every --set. run.yaml comes
 * last: where it is there, all is, and where it is not, the command that made the folder begins the
 * run. Of a resumed run the log says what has changed. errors IO, MEMORY */
rp_err rp_folder_write(rp_folder *folder, const rp_folder_contents *contents) RP_MUST_CHECK;

/* The first setting of the run file that differs from run.yaml of before and matters to what was
 * trained before; "": there is none. errors MEMORY */
rp_err rp_folder_find_change(rp_folder *folder, const rp_runfile *run, char *text,
                             size_t bytes) RP_MUST_CHECK;

/* ---- the record ------------------------------------------------------------------------------ */

/* NULL: it is not open. `ringpipe plan`, `profile` and `boards warm` have none. */
rp_record *rp_folder_record(const rp_folder *folder);
/* NULL: nobody reads the trace. */
rp_transfers *rp_folder_transfers(const rp_folder *folder);
/* Opens the record where the run stands, and `transfers` for a run with a folder that is kept.
 * errors of rp_record_open() */
rp_err rp_folder_open_record(rp_folder *folder, const rp_record_run *run,
                             const rp_record_totals *start) RP_MUST_CHECK;
/* errors of rp_record_close() */
rp_err rp_folder_close_record(rp_folder *folder, const rp_record_end *end) RP_MUST_CHECK;
/* Frees what is known of transfers. */
void rp_folder_close_transfers(rp_folder *folder);

#endif
