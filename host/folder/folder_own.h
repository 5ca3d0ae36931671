/* Inside of the room `folder`. */
#ifndef RP_FOLDER_FOLDER_OWN_H
#define RP_FOLDER_FOLDER_OWN_H

#include "folder/folder.h"

struct rp_folder {
    rp_arena *arena;
    rp_folder_paths paths;
    int fd;        /* holds the lock; -1: none */
    bool is_owned; /* controller.json names this process */
    rp_record *record;
    rp_transfers *transfers;
};

/* resume_notes.c: in the log of a run that goes on: from which step, and with which other settings
 * than its run.yaml has, which is not written yet. errors IO */
rp_err rp_resumed_note(const rp_folder *folder, const rp_runfile *run, uint64_t step) RP_MUST_CHECK;
/* data.json of before, or NULL; the comparison with the new one takes it. errors IO */
void *rp_resumed_read_data(const rp_folder *folder);
rp_err rp_resumed_compare_data(const rp_folder *folder, void *before, uint64_t step) RP_MUST_CHECK;

#endif
