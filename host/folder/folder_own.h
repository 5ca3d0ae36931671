/* The struct of this room, for its own files. */
#ifndef RP_FOLDER_FOLDER_OWN_H
#define RP_FOLDER_FOLDER_OWN_H

#include "folder/folder.h"

struct rp_folder {
    rp_arena *arena;
    rp_folder_paths paths;
    int fd;        /* descriptor with the lock; -1: none */
    bool is_owned; /* controller.json has this process as owner */
    rp_record *record;
    rp_transfers *transfers;
};

/* resume_notes.c: logs from which step the run continues, and which settings differ from the stored
 * run.yaml, which is still the old one. errors IO */
rp_err rp_resumed_note(const rp_folder *folder, const rp_runfile *run, uint64_t step) RP_MUST_CHECK;
/* Reads the stored data.json, or NULL. The comparison with the new one frees it. errors IO */
void *rp_resumed_read_data(const rp_folder *folder);
rp_err rp_resumed_compare_data(const rp_folder *folder, void *before, uint64_t step) RP_MUST_CHECK;

#endif
