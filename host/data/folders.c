#include "data/folders.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/utf8.h"

enum { FILES_MAX = 100 * 1000 * 1000, PATH_BYTES = 4096 };

static bool is_picture(const char *name) {
    static const char *const ends[] = {".jpg", ".jpeg", ".png"};
    const size_t length = strlen(name);
    for (size_t i = 0; i < sizeof ends / sizeof *ends && name[0] != '.'; i++) {
        const size_t end = strlen(ends[i]);
        if (length > end && strcasecmp(name + length - end, ends[i]) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_folder(const char *parent, const struct dirent *entry) {
    char path[PATH_BYTES];
    struct stat facts;
    const int length = snprintf(path, sizeof path, "%s/%s", parent, entry->d_name);
    return entry->d_name[0] != '.' && length > 0 && (size_t)length < sizeof path &&
           stat(path, &facts) == 0 && S_ISDIR(facts.st_mode);
}

static rp_err open_folder(const char *path, DIR **out) {
    *out = opendir(path);
    return *out ? RP_OK : rp_fail(RP_ERR_IO, "%s: cannot be read: %s", path, strerror(errno));
}

/* Counts an entry that is not a sample. */
static void pass_over(rp_folders *out, const char *folder, const char *name) {
    char path[PATH_BYTES];
    char shown[RP_FOLDERS_SHOWN_BYTES];
    if (name[0] == '.') {
        return;
    }
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    (void)rp_utf8_show(path, sizeof shown, shown, sizeof shown);
    if (out->passed++ == 0 || strcmp(shown, out->passed_first) < 0) {
        memcpy(out->passed_first, shown, sizeof shown);
    }
}

/* ---- the files of a class -------------------------------------------------------------------- */

/* Compares offsets by the names at them. */
static int compare_files(const void *a, const void *b, void *names) {
    return strcmp((const char *)names + *(const uint64_t *)a,
                  (const char *)names + *(const uint64_t *)b);
}

static void count_files(DIR *dir, const char *path, rp_folders *out, uint64_t *count,
                        size_t *bytes) {
    const struct dirent *entry;
    *count = *bytes = 0;
    while ((entry = readdir(dir))) {
        if (is_picture(entry->d_name)) {
            ++*count;
            *bytes += strlen(entry->d_name) + 1;
        } else {
            pass_over(out, path, entry->d_name);
        }
    }
}

static rp_err take_files(rp_arena *arena, DIR *dir, rp_folders *out, rp_class_folder *folder) {
    const struct dirent *entry;
    uint64_t count;
    size_t bytes;
    size_t used = 0;
    rp_err err;
    count_files(dir, folder->path, out, &count, &bytes);
    if (count == 0 || count > FILES_MAX) {
        return rp_fail(RP_ERR_FORMAT, "%s: has %llu .jpg, .jpeg or .png files, expected 1 to %d",
                       folder->path, (unsigned long long)count, FILES_MAX);
    }
    RP_TRY(RP_ARENA_NEW(arena, bytes, &folder->names));
    RP_TRY(RP_ARENA_NEW(arena, count, &folder->offset));
    rewinddir(dir);
    while (folder->count < count && (entry = readdir(dir))) {
        const size_t length = is_picture(entry->d_name) ? strlen(entry->d_name) + 1 : 0;
        if (length > bytes - used) {
            break; /* more files than counted: the folder has changed, and the rest is ignored */
        }
        if (length > 0) {
            memcpy(folder->names + used, entry->d_name, length);
            folder->offset[folder->count++] = used;
            used += length;
        }
    }
    if (folder->count != count) {
        return rp_fail(RP_ERR_IO, "%s: the folder changed while it was read; retry", folder->path);
    }
    qsort_r(folder->offset, folder->count, sizeof *folder->offset, compare_files, folder->names);
fail:
    return err;
}

static rp_err list_files(rp_arena *arena, rp_folders *out, rp_class_folder *folder) {
    DIR *dir;
    rp_err err = open_folder(folder->path, &dir);
    if (err == RP_OK) {
        err = take_files(arena, dir, out, folder);
        (void)closedir(dir);
    }
    return err;
}

/* ---- the classes ----------------------------------------------------------------------------- */

static rp_err add_name(rp_arena *arena, const char *path, const char *name, rp_labels *names) {
    char shown[PATH_BYTES];
    return rp_utf8_is_valid(name)
               ? rp_labels_add(arena, names, name)
               : rp_fail(RP_ERR_FORMAT, "%s/%s: expected the name of a class in UTF-8", path,
                         rp_utf8_show(name, sizeof shown, shown, sizeof shown));
}

static rp_err list_names(rp_arena *arena, const char *path, rp_folders *out, rp_labels *names) {
    const struct dirent *entry;
    DIR *dir;
    rp_err err = open_folder(path, &dir);
    while (err == RP_OK && (entry = readdir(dir))) {
        if (is_folder(path, entry)) {
            err = add_name(arena, path, entry->d_name, names);
        } else {
            pass_over(out, path, entry->d_name);
        }
    }
    if (dir) {
        (void)closedir(dir);
    }
    if (err == RP_OK && names->count == 0) {
        err = rp_fail(RP_ERR_FORMAT,
                      "%s: expected one folder for each class, but there are no "
                      "folders",
                      path);
    }
    return err;
}

rp_err rp_folders_list(rp_arena *arena, const char *path, bool known, rp_labels *labels,
                       rp_folders *out) {
    rp_labels names = {0};
    rp_err err;
    *out = (rp_folders){0};
    RP_TRY(list_names(arena, path, out, &names));
    if (!known) {
        *labels = names;
    }
    RP_TRY(RP_ARENA_NEW(arena, names.count, &out->folder));
    out->folder_count = names.count;
    for (uint32_t i = 0; i < names.count; i++) {
        rp_class_folder *folder = &out->folder[i];
        char *folder_path;
        RP_TRY(rp_arena_printf(arena, &folder_path, "%s/%s", path, names.name[i]));
        *folder = (rp_class_folder){.path = folder_path,
                                    .label = rp_labels_find(labels, names.name[i]),
                                    .first = out->count};
        if (folder->label == labels->count) {
            return rp_fail(RP_ERR_FORMAT, "%s: unknown class '%s': %s", folder_path, names.name[i],
                           labels->given ? "it is not in data.classes"
                                         : "the training part lacks it");
        }
        RP_TRY(list_files(arena, out, folder));
        if (folder->count > FILES_MAX - out->count) {
            return rp_fail(RP_ERR_LIMIT, "%s: has more than %d files", path, FILES_MAX);
        }
        out->count += folder->count;
    }
fail:
    return err;
}

rp_err rp_folders_drop(rp_folders *folders, const bool *bad) {
    uint32_t left = 0;
    for (uint32_t f = 0; f < folders->folder_count; f++) {
        rp_class_folder *folder = &folders->folder[f];
        uint32_t kept = 0;
        for (uint32_t i = 0; i < folder->count; i++) {
            if (!bad[folder->first + i]) {
                folder->offset[kept++] = folder->offset[i];
            }
        }
        if (kept == 0) {
            return rp_fail(RP_ERR_FORMAT, "%s: every picture of this class is damaged",
                           folder->path);
        }
        folder->first = left;
        folder->count = kept;
        left += kept;
    }
    folders->count = left;
    return RP_OK;
}

rp_err rp_folders_path(const rp_folders *folders, uint32_t index, char *path, size_t bytes,
                       uint32_t *label) {
    uint32_t low = 0;
    uint32_t high = folders->folder_count;
    while (high - low > 1) { /* finds the last folder with `first` up to the index */
        const uint32_t middle = low + (high - low) / 2;
        if (folders->folder[middle].first <= index) {
            low = middle;
        } else {
            high = middle;
        }
    }
    const rp_class_folder *folder = &folders->folder[low];
    const char *name = folder->names + folder->offset[index - folder->first];
    const int length = snprintf(path, bytes, "%s/%s", folder->path, name);
    *label = folder->label;
    return length > 0 && (size_t)length < bytes
               ? RP_OK
               : rp_fail(RP_ERR_USAGE, "%s/%s: the path is too long", folder->path, name);
}
