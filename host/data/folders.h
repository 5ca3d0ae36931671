/* Names of picture files in folders, one for each class. Private to the room. */
#ifndef RP_DATA_FOLDERS_H
#define RP_DATA_FOLDERS_H

#include "base/arena.h"
#include "data/labels.h"

enum { RP_FOLDERS_SHOWN_BYTES = 256 };

/* The files of one class, sorted by name. */
typedef struct {
    const char *path; /* of the folder */
    uint32_t label;
    uint32_t first;   /* index of its first sample */
    uint32_t count;   /* above 0 */
    char *names;      /* concatenated, each zero-terminated */
    uint64_t *offset; /* [count] */
} rp_class_folder;

typedef struct {
    rp_class_folder *folder; /* [folder_count], sorted by name */
    uint32_t folder_count, count;
    uint32_t passed;                           /* ignored entries, without hidden ones */
    char passed_first[RP_FOLDERS_SHOWN_BYTES]; /* path of the first of them by name */
} rp_folders;

/* Lists the class folders in `path` and the .jpg, .jpeg and .png files in each, without hidden
 * files. `known`: `labels` are complete (from the training part, or given), and a folder must be
 * one of them; otherwise the folders' names are added to `labels`, sorted. errors  IO; FORMAT: no
 * class folders, a folder without pictures, an unknown class, or a name that is not UTF-8; LIMIT */
rp_err rp_folders_list(rp_arena *arena, const char *path, bool known, rp_labels *labels,
                       rp_folders *out) RP_MUST_CHECK;

/* Removes the samples i with bad[i] from the list. errors FORMAT: a folder would become empty */
rp_err rp_folders_drop(rp_folders *folders, const bool *bad) RP_MUST_CHECK;

/* Path of a sample's file, and its class. errors USAGE: too long */
rp_err rp_folders_path(const rp_folders *folders, uint32_t index, char *path, size_t bytes,
                       uint32_t *label) RP_MUST_CHECK;

#endif
