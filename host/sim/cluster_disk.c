/* Disk faults. Some damage a file of the newest checkpoint once the controller has ended, so that
 * the run goes on from the one before. A lying fsync loses everything written since it began. */
#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sim/cluster_own.h"

enum { BLOCK_BYTES = 512, NAME_BYTES = RP_SIM_NAME_BYTES, FILES_MAX = 8, PATH_BYTES = 512 };

/* Bytes of "step-<number>" in the name of a checkpoint file, step-<number>.<what>. All numbers have
 * the same length, so names sort like numbers. */
enum { STEM = 15 };

typedef struct {
    char name[FILES_MAX][NAME_BYTES];
    uint32_t count;
} newest_files;

/* Finds the files with the largest step number. */
static void find_newest(const char *folder, newest_files *out) {
    DIR *all = opendir(folder);
    out->count = 0;
    for (const struct dirent *entry = all ? readdir(all) : NULL; entry; entry = readdir(all)) {
        const char *dot = strchr(entry->d_name, '.');
        if (strncmp(entry->d_name, "step-", 5) != 0 || dot != entry->d_name + STEM ||
            strlen(entry->d_name) >= NAME_BYTES) {
            continue;
        }
        const int order = out->count ? strncmp(entry->d_name, out->name[0], STEM) : 1;
        out->count = order > 0 ? 0 : out->count;
        if (order >= 0 && out->count < FILES_MAX) {
            (void)snprintf(out->name[out->count++], NAME_BYTES, "%s", entry->d_name);
        }
    }
    if (all) {
        (void)closedir(all);
    }
}

/* Overwrites a block with another block of the file. */
static bool misplace_block(int file, off_t bytes, rp_rng *rng) {
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

static bool damage_file(int file, const rp_sim_fault *fault, rp_rng *rng) {
    struct stat about;
    if (fstat(file, &about) != 0 || about.st_size == 0) {
        return false;
    }
    switch (fault->kind) {
    case RP_SIM_FAULT_TORN:
        return ftruncate(file, (off_t)((double)about.st_size * (1 - fault->amount))) == 0;
    case RP_SIM_FAULT_MISPLACED:
        return misplace_block(file, about.st_size, rng);
    default: /* RP_SIM_FAULT_ROTTEN */
        return flip_bit(file, about.st_size, rng);
    }
}

/* The first or the last file by name, because directory order differs between file systems. */
static const char *choose_file(const newest_files *files, rp_rng *rng) {
    uint32_t first = 0;
    for (uint32_t i = 1; i < files->count; i++) {
        first = strcmp(files->name[i], files->name[first]) < 0 ? i : first;
    }
    uint32_t at = first;
    if (rp_rng_below(rng, 2) == 1) {
        for (uint32_t i = 0; i < files->count; i++) {
            at = strcmp(files->name[i], files->name[at]) > 0 ? i : at;
        }
    }
    return files->name[at];
}

static void write_path(const rp_cluster *cluster, const char *name, char path[PATH_BYTES]) {
    (void)snprintf(path, PATH_BYTES, "%s/checkpoint/%s", cluster->options.folder, name);
}

static void look_into(const rp_cluster *cluster, newest_files *out) {
    char path[PATH_BYTES];
    write_path(cluster, "", path);
    find_newest(path, out);
}

bool rp_sim_disk_has_checkpoint(const rp_cluster *cluster) {
    newest_files files;
    look_into(cluster, &files);
    return files.count > 0;
}

static void note_damage(rp_cluster *cluster, const char *name, ino_t inode) {
    if (cluster->damages < RP_SIM_DAMAGES_MAX) {
        rp_sim_damage *damage = &cluster->damage[cluster->damages++];
        (void)snprintf(damage->name, sizeof damage->name, "%s", name);
        damage->inode = inode;
    }
}

void rp_sim_disk_damage(rp_cluster *cluster, const rp_sim_fault *fault) {
    newest_files files;
    char path[PATH_BYTES];
    look_into(cluster, &files);
    const char *name = choose_file(&files, &cluster->trouble.rng);
    write_path(cluster, name, path);
    const int file = open(path, O_RDWR | O_CLOEXEC);
    const bool is_done = file >= 0 && damage_file(file, fault, &cluster->trouble.rng);
    if (file >= 0) {
        struct stat about;
        if (fstat(file, &about) == 0) {
            note_damage(cluster, name, about.st_ino);
        }
        (void)close(file);
    }
    rp_eventlog_add(&cluster->log, rp_world_now_ns(cluster->world), "disk", "%s %s",
                    is_done ? "damages" : "leaves", name);
}

/* ---- no intact checkpoint -------------------------------------------------------------------- */

/* Whether one of the checkpoint's files is still a damaged one. */
static bool is_damaged(const rp_cluster *cluster, const char *checkpoint) {
    bool found = false;
    for (uint32_t i = 0; i < cluster->damages; i++) {
        const rp_sim_damage *damage = &cluster->damage[i];
        char path[PATH_BYTES];
        struct stat about;
        write_path(cluster, damage->name, path);
        found |= strncmp(damage->name, checkpoint, STEM) == 0 && stat(path, &about) == 0 &&
                 about.st_ino == damage->inode;
    }
    return found;
}

bool rp_cluster_lost_checkpoints(const rp_cluster *cluster) {
    char path[PATH_BYTES];
    uint32_t whole = 0;
    uint32_t damaged = 0;
    write_path(cluster, "", path);
    DIR *all = opendir(path);
    for (const struct dirent *entry = all ? readdir(all) : NULL; entry; entry = readdir(all)) {
        const size_t length = strlen(entry->d_name);
        if (length > STEM && strcmp(entry->d_name + STEM, ".safetensors") == 0) {
            const bool is_bad = is_damaged(cluster, entry->d_name);
            damaged += is_bad;
            whole += !is_bad;
        }
    }
    if (all) {
        (void)closedir(all);
    }
    return whole == 0 && damaged > 0;
}

static int remove_entry(const char *path, const struct stat *about, int type, struct FTW *walk) {
    (void)about;
    (void)type;
    (void)walk;
    return remove(path);
}

void rp_sim_folder_remove(const char *folder) {
    (void)nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

void rp_cluster_remove_checkpoints(rp_cluster *cluster) {
    char path[PATH_BYTES];
    write_path(cluster, "", path);
    rp_sim_folder_remove(path);
    rp_eventlog_add(&cluster->log, rp_world_now_ns(cluster->world), "disk",
                    "no checkpoint is complete: the user removes them");
}

/* ---- an fsync that lied ---------------------------------------------------------------------- */

static bool copy_file(const char *from, const char *to) {
    char block[16384];
    FILE *in = fopen(from, "rbe");
    FILE *out = in ? fopen(to, "wbe") : NULL;
    size_t bytes = 0;
    bool good = out != NULL;
    while (good && (bytes = fread(block, 1, sizeof block, in)) > 0) {
        good = fwrite(block, 1, bytes, out) == bytes;
    }
    good = good && !ferror(in);
    if (in) {
        (void)fclose(in);
    }
    return out && fclose(out) == 0 && good;
}

static bool copy_folder(const char *from, const char *to) {
    DIR *all = opendir(from);
    bool good = all && mkdir(to, 0700) == 0;
    for (const struct dirent *entry = good ? readdir(all) : NULL; entry && good;
         entry = readdir(all)) {
        char source[PATH_BYTES];
        char copy[PATH_BYTES];
        struct stat about;
        const bool is_own = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
        (void)snprintf(source, sizeof source, "%.250s/%.250s", from, entry->d_name);
        (void)snprintf(copy, sizeof copy, "%.250s/%.250s", to, entry->d_name);
        good = lstat(source, &about) == 0;
        if (good && !is_own && S_ISDIR(about.st_mode)) {
            good = copy_folder(source, copy);
        } else if (good && S_ISREG(about.st_mode)) {
            good = copy_file(source, copy);
        }
    }
    if (all) {
        (void)closedir(all);
    }
    return good;
}

static void write_kept(const rp_cluster *cluster, char path[PATH_BYTES]) {
    (void)snprintf(path, PATH_BYTES, "%s.kept", cluster->options.folder);
}

/* Records the copies of damaged files as damaged. */
static void note_kept_damages(rp_cluster *cluster, const char *kept) {
    const uint32_t before = cluster->damages;
    for (uint32_t i = 0; i < before; i++) {
        const rp_sim_damage *damage = &cluster->damage[i];
        char path[PATH_BYTES];
        char copy[PATH_BYTES];
        struct stat about;
        write_path(cluster, damage->name, path);
        (void)snprintf(copy, sizeof copy, "%.250s/checkpoint/%s", kept, damage->name);
        if (stat(path, &about) == 0 && about.st_ino == damage->inode && stat(copy, &about) == 0) {
            note_damage(cluster, damage->name, about.st_ino);
        }
    }
}

/* Keeps an existing copy, because an earlier fault has made it and it is older. */
void rp_sim_disk_keep(rp_cluster *cluster) {
    char kept[PATH_BYTES];
    write_kept(cluster, kept);
    if (access(kept, F_OK) == 0) {
        return;
    }
    if (copy_folder(cluster->options.folder, kept)) {
        note_kept_damages(cluster, kept);
    } else {
        rp_sim_folder_remove(kept);
    }
}

void rp_sim_disk_return(rp_cluster *cluster) {
    char kept[PATH_BYTES];
    write_kept(cluster, kept);
    const bool is_there = access(kept, F_OK) == 0;
    if (is_there) {
        rp_sim_folder_remove(cluster->options.folder);
    }
    const bool is_done = is_there && rename(kept, cluster->options.folder) == 0;
    cluster->disk_forgot |= is_done;
    rp_eventlog_add(&cluster->log, rp_world_now_ns(cluster->world), "disk", "%s",
                    is_done ? "has lost what it was given since" : "has lost nothing");
}

void rp_sim_disk_forget(const rp_cluster *cluster) {
    char kept[PATH_BYTES];
    write_kept(cluster, kept);
    rp_sim_folder_remove(kept);
}
