/* What a disk does to files that it was given: the newest checkpoint, once the controller has
 * ended. The one before stays whole, so the run goes on from there. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sim/cluster_own.h"

enum { BLOCK_BYTES = 512, NAME_BYTES = 64, FILES_MAX = 8 };

typedef struct {
    char name[FILES_MAX][NAME_BYTES];
    uint32_t count;
    bool is_only; /* there is no older checkpoint */
} newest_files;

/* step-<number>.<what>: all of the largest number. Numbers have the same length, so that names sort
 * as they do. */
static void find_newest(const char *folder, newest_files *out) {
    enum { STEM = 15 };
    DIR *all = opendir(folder);
    out->count = 0;
    out->is_only = true;
    for (const struct dirent *entry = all ? readdir(all) : NULL; entry; entry = readdir(all)) {
        const char *dot = strchr(entry->d_name, '.');
        if (strncmp(entry->d_name, "step-", 5) != 0 || dot != entry->d_name + STEM ||
            strlen(entry->d_name) >= NAME_BYTES) {
            continue;
        }
        const int order = out->count ? strncmp(entry->d_name, out->name[0], STEM) : 1;
        out->is_only &= out->count == 0 || order == 0;
        out->count = order > 0 ? 0 : out->count;
        if (order >= 0 && out->count < FILES_MAX) {
            (void)snprintf(out->name[out->count++], NAME_BYTES, "%s", entry->d_name);
        }
    }
    if (all) {
        (void)closedir(all);
    }
}

/* A block is found where another one should be. */
static bool misplace(int file, off_t bytes, rp_rng *rng) {
    char block[BLOCK_BYTES];
    const uint32_t blocks = (uint32_t)(bytes / BLOCK_BYTES);
    const uint32_t from = blocks > 1 ? rp_rng_below(rng, blocks) : 0;
    const uint32_t to = blocks > 1 ? (from + 1 + rp_rng_below(rng, blocks - 1)) % blocks : 0;
    return blocks > 1 &&
           pread(file, block, sizeof block, (off_t)from * BLOCK_BYTES) == BLOCK_BYTES &&
           pwrite(file, block, sizeof block, (off_t)to * BLOCK_BYTES) == BLOCK_BYTES;
}

static bool flip_bit(int file, off_t bytes, rp_rng *rng) {
    const off_t at = (off_t)rp_rng_below(rng, (uint32_t)bytes);
    unsigned char byte;
    const bool is_read = pread(file, &byte, 1, at) == 1;
    byte ^= (unsigned char)(1u << rp_rng_below(rng, 8));
    return is_read && pwrite(file, &byte, 1, at) == 1;
}

static bool damage(int file, const rp_sim_fault *fault, rp_rng *rng) {
    struct stat about;
    if (fstat(file, &about) != 0 || about.st_size == 0) {
        return false;
    }
    switch (fault->kind) {
    case RP_SIM_FAULT_TORN:
        return ftruncate(file, (off_t)((double)about.st_size * (1 - fault->amount))) == 0;
    case RP_SIM_FAULT_MISPLACED:
        return misplace(file, about.st_size, rng);
    default: /* RP_SIM_FAULT_ROTTEN */
        return flip_bit(file, about.st_size, rng);
    }
}

/* Directory order is the file system's: the choice must not depend on it. */
static const char *choose_file(const newest_files *files, rp_rng *rng) {
    uint32_t first = 0;
    for (uint32_t i = 1; i < files->count; i++) {
        first = strcmp(files->name[i], files->name[first]) < 0 ? i : first;
    }
    uint32_t at = first;
    if (rp_rng_below(rng, 2) == 1) { /* the last one in the order of their names */
        for (uint32_t i = 0; i < files->count; i++) {
            at = strcmp(files->name[i], files->name[at]) > 0 ? i : at;
        }
    }
    return files->name[at];
}

static void look_into(const rp_cluster *cluster, newest_files *out) {
    char path[512];
    (void)snprintf(path, sizeof path, "%s/checkpoint", cluster->options.folder);
    find_newest(path, out);
}

/* A run whose only checkpoint is damaged says so, and a person has to decide. */
bool rp_sim_disk_has_older(const rp_cluster *cluster) {
    newest_files files;
    look_into(cluster, &files);
    return !files.is_only;
}

void rp_sim_disk_damage(rp_cluster *cluster, const rp_sim_fault *fault) {
    newest_files files;
    char path[512];
    look_into(cluster, &files);
    const char *name = choose_file(&files, &cluster->trouble.rng);
    (void)snprintf(path, sizeof path, "%s/checkpoint/%s", cluster->options.folder, name);
    const int file = open(path, O_RDWR | O_CLOEXEC);
    const bool is_done = file >= 0 && damage(file, fault, &cluster->trouble.rng);
    if (file >= 0) {
        (void)close(file);
    }
    rp_eventlog_add(&cluster->log, rp_world_now_ns(cluster->world), "disk", "%s %s",
                    is_done ? "damages" : "leaves", name);
}
