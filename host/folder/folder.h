/* The folder of a run: which one, its paths, its lock, the files written before the first step; and
 * the run's record. */
#ifndef RP_FOLDER_FOLDER_H
#define RP_FOLDER_FOLDER_H

#include "folder/about_file.h"
#include "folder/transfers.h"
#include "plan/plan.h"
#include "record/record.h"
#include "run/runfile.h"

typedef struct rp_folder rp_folder;

/* Paths, all NULL for a run without a folder; valid as long as the rp_folder. */
typedef struct {
    const char *folder;
    const char *checkpoints; /* a folder inside; all others are files */
    const char *weights, *best_weights, *run_yaml, *model_yaml, *plan_json, *data_json;
} rp_folder_paths;

/* Makes an rp_folder without path and record. Everything is allocated in `arena`. errors MEMORY */
rp_err rp_folder_open(rp_arena *arena, rp_folder **out) RP_MUST_CHECK;

/* Which folder to use: `resume`, else `out`, else runs/<time>-<model>-<schedule>. */
typedef struct {
    const char *resume;           /* folder of the run to resume; NULL: none */
    const char *out;              /* folder of a new run; NULL: none */
    const char *model, *schedule; /* names */
    bool temporary;               /* a simulation: no process is stored as the folder's owner */
} rp_folder_choice;
/* Chooses, checks, makes and locks the folder. errors USAGE: it contains another run, or no run to
 * resume, or another controller has locked it; IO */
rp_err rp_folder_choose(rp_folder *folder, const rp_folder_choice *choice) RP_MUST_CHECK;

const rp_folder_paths *rp_folder_paths_of(const rp_folder *folder);

/* Shows the command that resumes the run, if the folder has all required files. `program` NULL:
 * "ringpipe"; `keys` NULL: no option. */
void rp_folder_print_resume(const rp_folder *folder, FILE *progress, const char *program,
                            const char *keys);

/* Orderly end: removes the owner and releases the lock. Accepts a folder that was never chosen. */
void rp_folder_leave(rp_folder *folder);
/* Only releases the lock, as at the end of the process. */
void rp_folder_unlock(rp_folder *folder);

/* Checks that the data set of a run that is resumed fits the folder's weights. errors  USAGE: its
 * token ids mean other tokens than before; FORMAT: data.json is damaged */
rp_err rp_folder_check_data(const rp_folder *folder, const rp_runfile *run) RP_MUST_CHECK;

/* Files that are needed to resume or evaluate the run from any working directory. */
typedef struct {
    const rp_runfile *run; /* paths in its YAML tree are made absolute */
    const rp_plan *plan;
    const rp_about *about;
    bool resumed;  /* the first writing after a resume */
    uint64_t step; /* the step that it resumes from */
} rp_folder_contents;
/* Writes model.yaml, data.json, plan.json, about.json, and run.yaml with every --set. run.yaml is
 * written last, so its existence means that all files exist; without it the run starts with the
 * command that made the folder. For a resumed run, logs what has changed. errors IO, MEMORY */
rp_err rp_folder_write(rp_folder *folder, const rp_folder_contents *contents) RP_MUST_CHECK;

/* Finds the first setting of the run file that differs from the stored run.yaml and affects earlier
 * training; text "": none. errors MEMORY */
rp_err rp_folder_find_change(rp_folder *folder, const rp_runfile *run, char *text,
                             size_t bytes) RP_MUST_CHECK;

/* ---- the record ------------------------------------------------------------------------------ */

/* NULL: not open. `ringpipe plan`, `profile` and `boards warm` have no record. */
rp_record *rp_folder_record(const rp_folder *folder);
/* NULL: no trace is written. */
rp_transfers *rp_folder_transfers(const rp_folder *folder);
/* Opens the record at the run's position, and `transfers` if the folder is kept. errors of
 * rp_record_open() */
rp_err rp_folder_open_record(rp_folder *folder, const rp_record_run *run,
                             const rp_record_totals *start) RP_MUST_CHECK;
/* errors of rp_record_close() */
rp_err rp_folder_close_record(rp_folder *folder, const rp_record_end *end) RP_MUST_CHECK;
/* Frees the state of transfers. */
void rp_folder_close_transfers(rp_folder *folder);

#endif
