/* Files of pictures in folders, one a class: names only. Private to the room. */
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
    uint32_t count;   /* more than 0 */
    char *names;      /* one behind the other */
    uint64_t *offset; /* [count] */
} rp_class_folder;

typedef struct {
    rp_class_folder *folder; /* [folder_count], sorted by name */
    uint32_t folder_count, count;
    uint32_t passed;                           /* entries that are neither hidden nor taken */
    char passed_first[RP_FOLDERS_SHOWN_BYTES]; /* the path of the first of them by name */
} rp_folders;

/* The class folders in `path`, each with the names of its .jpg, .jpeg and .png files; hidden files
 * are passed over. With `known` labels (those of a training part, or given) a folder must be one of
 * them; otherwise they are added to `labels`, sorted.
 * errors  IO; FORMAT: no class folders, one without pictures, or one that is not known or whose
 *         name is not UTF-8; LIMIT */
rp_err rp_folders_list(rp_arena *arena, const char *path, bool known, rp_labels *labels,
                       rp_folders *out) RP_MUST_CHECK;

/* Takes the samples i with bad[i] out of the list. errors FORMAT: none is left in a folder */
rp_err rp_folders_drop(rp_folders *folders, const bool *bad) RP_MUST_CHECK;

/* Path of a sample's file. errors USAGE: too long */
rp_err rp_folders_path(const rp_folders *folders, uint32_t index, char *path, size_t bytes,
                       uint32_t *label) RP_MUST_CHECK;

#endif
