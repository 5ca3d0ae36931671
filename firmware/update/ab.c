#include "update/ab.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/config.h"
#include "base/folders.h"
#include "base/input.h"
#include "base/log.h"
#include "base/replace.h"
#include "update/releases.h"
#include "update/space.h"

enum { DEPTH_MAX = 32 };

static const char *const slot_words[] = {"none", "a", "b", NULL};

const char *rp_ab_slot_name(rp_ab_slot slot) {
    return slot_words[slot];
}

static rp_err join_path(const char *dir, const char *name, char out[RP_AB_PATH_BYTES]) {
    const int n = snprintf(out, RP_AB_PATH_BYTES, "%s/%s", dir, name);
    return n > 0 && n < RP_AB_PATH_BYTES
               ? RP_OK
               : rp_fail(RP_ERR_USAGE, "%.100s...: path is too long", dir);
}

/* ---- the state ------------------------------------------------------------------------------- */

static rp_err read_state(rp_node *root, rp_ab *out) {
    uint32_t good = RP_AB_NONE;
    uint32_t trial = RP_AB_NONE;
    rp_err err;
    RP_TRY(rp_node_word(root, "good", slot_words, &good));
    RP_TRY(rp_node_u64(root, "version", 0, INT64_MAX, &out->version));
    RP_TRY(rp_node_word(root, "trial", slot_words, &trial));
    RP_TRY(rp_node_u64(root, "trial_version", 0, INT64_MAX, &out->trial_version));
    RP_TRY(rp_node_u32(root, "starts", 0, RP_AB_STARTS, &out->starts));
    RP_TRY(rp_node_u64(root, "former", 0, INT64_MAX, &out->former));
    RP_TRY(rp_node_u64(root, "failed", 0, INT64_MAX, &out->failed));
    RP_TRY(rp_node_done(root));
    out->good = (rp_ab_slot)good;
    out->trial = (rp_ab_slot)trial;
    if (out->trial != RP_AB_NONE && out->trial == out->good) {
        return rp_node_fail(root, "the good slot is on trial");
    }
fail:
    return err;
}

rp_err rp_ab_read(const char *dir, rp_ab *out) {
    char path[RP_AB_PATH_BYTES];
    rp_arena arena;
    rp_node *root;
    rp_err err;
    *out = (rp_ab){0};
    rp_arena_init(&arena, "slots", 0);
    RP_TRY(join_path(dir, "state", path));
    RP_TRY(rp_config_read_file_if_any(&arena, path, &root));
    RP_TRY(root ? read_state(root, out) : RP_OK);
fail:
    rp_arena_finish(&arena);
    return err;
}

/* The only function that changes the state file, and with it which slot starts. */
static rp_err write_state(const char *dir, const rp_ab *slots) {
    char path[RP_AB_PATH_BYTES];
    rp_err err = join_path(dir, "state", path);
    if (err != RP_OK) {
        return err;
    }
    FILE *file = rp_replace_begin(path);
    if (file) {
        (void)fprintf(file, "good: %s\nversion: %" PRIu64 "\n", rp_ab_slot_name(slots->good),
                      slots->version);
        (void)fprintf(file, "trial: %s\ntrial_version: %" PRIu64 "\nstarts: %u\n",
                      rp_ab_slot_name(slots->trial), slots->trial_version, slots->starts);
        (void)fprintf(file, "former: %" PRIu64 "\nfailed: %" PRIu64 "\n", slots->former,
                      slots->failed);
    }
    return rp_replace_end(file, path, file && !ferror(file));
}

static rp_err lock_folder(const char *dir, int *out) {
    char path[RP_AB_PATH_BYTES];
    rp_err err;
    *out = -1;
    RP_TRY(rp_folders_make(dir, 0755));
    RP_TRY(join_path(dir, "lock", path));
    *out = rp_replace_open(path, O_RDWR);
    if (*out < 0) {
        return rp_fail(RP_ERR_IO, "%s: %s", path, strerror(errno));
    }
    if (flock(*out, LOCK_EX | LOCK_NB) != 0) {
        return rp_fail(RP_ERR_AGAIN, "%s: another program is changing the slots; try again later",
                       dir);
    }
fail:
    return err;
}

static void unlock_folder(int fd) {
    if (fd >= 0) {
        (void)close(fd);
    }
}

/* ---- installing ------------------------------------------------------------------------------ */

/* Empties a folder; removes a link in it but not what the link points to. */
static rp_err empty_folder(const char *path, uint32_t depth) {
    rp_err err = RP_OK;
    DIR *dir = rp_folders_open(path);
    if (!dir || depth > DEPTH_MAX) {
        if (dir) {
            (void)closedir(dir);
        }
        return rp_fail(RP_ERR_IO, "%s: %s", path, dir ? "folders are too deep" : strerror(errno));
    }
    for (struct dirent *entry; (entry = readdir(dir));) {
        char inside[4 * RP_AB_PATH_BYTES];
        struct stat st;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) {
            continue;
        }
        const int n = snprintf(inside, sizeof inside, "%s/%s", path, entry->d_name);
        if (n >= (int)sizeof inside || lstat(inside, &st) != 0) {
            RP_TRY(rp_fail(RP_ERR_IO, "%s: %s", inside, strerror(errno)));
        }
        if (S_ISDIR(st.st_mode)) {
            RP_TRY(empty_folder(inside, depth + 1));
        }
        if ((S_ISDIR(st.st_mode) ? rmdir(inside) : unlink(inside)) != 0) {
            RP_TRY(rp_fail(RP_ERR_IO, "%s: %s", inside, strerror(errno)));
        }
    }
fail:
    (void)closedir(dir);
    return err;
}

static rp_err make_empty(const char *path) {
    rp_err err;
    RP_TRY(rp_folders_make_own(path, 0755));
    RP_TRY(empty_folder(path, 0));
    RP_TRY(rp_replace_sync_folder(path));
fail:
    return err;
}

static rp_ab_slot free_slot(const rp_ab *slots) {
    return slots->good == RP_AB_A ? RP_AB_B : RP_AB_A;
}

rp_err rp_ab_check_space(const char *dir, uint64_t incoming, uint64_t unpacked) {
    char folder[RP_AB_PATH_BYTES];
    uint64_t freed;
    rp_ab slots;
    rp_err err;
    RP_TRY(rp_ab_read(dir, &slots));
    RP_TRY(join_path(dir, rp_ab_slot_name(free_slot(&slots)), folder));
    RP_TRY(rp_space_used(folder, &freed));
    RP_TRY(rp_space_check("the bundle", dir, incoming + unpacked, freed, RP_SPACE_MARGIN));
fail:
    return err;
}

/* Checks everything that can be checked before a change. */
static rp_err check_bundle(const rp_bundle *bundle, const char *path, uint64_t newest,
                           const char *board) {
    if (board && strcmp(bundle->board, board) != 0) {
        return rp_fail(RP_ERR_REFUSED, "%s: is for boards of the profile %s, and this is a %s",
                       path, bundle->board, board);
    }
    if (bundle->version <= newest) {
        return rp_fail(RP_ERR_REFUSED,
                       "%s: has version %" PRIu64 ", but %" PRIu64
                       " is installed: expected a newer one",
                       path, bundle->version, newest);
    }
    return RP_OK;
}

static rp_err install_bundle(const char *dir, const char *path, FILE *file, const rp_bundle *bundle,
                             rp_ab *slots, rp_releases *releases) {
    const rp_ab_slot to = free_slot(slots);
    char folder[RP_AB_PATH_BYTES];
    char why[RP_ERR_MESSAGE_BYTES];
    rp_err err;
    /* From here on the former content of this slot can no longer be started or restored. */
    slots->trial = RP_AB_NONE;
    slots->trial_version = slots->former = 0;
    slots->starts = 0;
    RP_TRY(write_state(dir, slots));
    RP_TRY(join_path(dir, rp_ab_slot_name(to), folder));
    RP_TRY(make_empty(folder));
    err = rp_bundle_unpack(bundle, file, path, folder);
    if (err != RP_OK) { /* half a bundle is useless and may have filled the disk */
        (void)snprintf(why, sizeof why, "%s", rp_err_message());
        (void)!make_empty(folder);
        rp_err_set_message(why);
        return err;
    }
    rp_releases_note(releases, to, bundle->board, bundle->version);
    RP_TRY(rp_releases_write(dir, releases));
    slots->trial = to;
    slots->trial_version = bundle->version;
    slots->starts = RP_AB_STARTS;
    RP_TRY(write_state(dir, slots));
fail:
    return err;
}

rp_err rp_ab_install(const char *dir, const char *path, const uint8_t key[RP_SIGNING_BYTES],
                     const char *board, rp_ab *out) {
    rp_arena arena;
    rp_bundle bundle;
    rp_releases releases;
    const char *why;
    FILE *file = NULL;
    int held = -1;
    rp_err err;
    rp_arena_init(&arena, "install", 0);
    RP_TRY(lock_folder(dir, &held));
    RP_TRY(rp_ab_read(dir, out));
    RP_TRY(rp_releases_read(dir, &releases));
    file = rp_input_fopen(path, &why);
    if (!file) {
        RP_TRY(rp_fail(RP_ERR_IO, "%s: %s", path, why));
    }
    RP_TRY(rp_bundle_read(&arena, file, path, key, &bundle));
    RP_TRY(check_bundle(&bundle, path,
                        rp_releases_newest(&releases, out->good, out->version, bundle.board),
                        board));
    RP_TRY(rp_ab_check_space(dir, 0, rp_bundle_bytes(&bundle)));
    RP_TRY(install_bundle(dir, path, file, &bundle, out, &releases));
fail:
    if (file) {
        (void)fclose(file);
    }
    unlock_folder(held);
    rp_arena_finish(&arena);
    return err;
}

/* ---- starting, validating, reverting --------------------------------------------------------- */

rp_err rp_ab_start(const char *dir, rp_ab_slot *slot) {
    rp_ab slots;
    int held = -1;
    rp_err err;
    *slot = RP_AB_NONE;
    RP_TRY(lock_folder(dir, &held));
    RP_TRY(rp_ab_read(dir, &slots));
    *slot = slots.good;
    if (slots.trial == RP_AB_NONE) {
        goto fail;
    }
    if (slots.starts > 0) {
        *slot = slots.trial;
        slots.starts--;
    } else {
        rp_log_warn("slots: version %" PRIu64
                    " was started %d times and never reported that it works: back to %s",
                    slots.trial_version, RP_AB_STARTS,
                    slots.good == RP_AB_NONE ? "the system's own" : "the previous version");
        slots.failed = slots.trial_version;
        slots.trial = RP_AB_NONE;
        slots.trial_version = 0;
    }
    RP_TRY(write_state(dir, &slots));
fail:
    unlock_folder(held);
    return err;
}

rp_err rp_ab_validate(const char *dir, rp_ab_slot slot) {
    rp_ab slots;
    rp_releases releases;
    int held = -1;
    rp_err err;
    RP_TRY(lock_folder(dir, &held));
    RP_TRY(rp_ab_read(dir, &slots));
    RP_TRY(rp_releases_read(dir, &releases));
    if (slot != RP_AB_NONE && slots.trial == slot) {
        if (rp_releases_leave(&releases, slots.good, slots.version, slot, slots.trial_version)) {
            RP_TRY(rp_releases_write(dir, &releases));
        }
        slots.former = slots.version;
        slots.version = slots.trial_version;
        slots.good = slots.trial;
        slots.trial = RP_AB_NONE;
        slots.trial_version = 0;
        slots.starts = 0;
        RP_TRY(write_state(dir, &slots));
        rp_log_info("slots: version %" PRIu64 " in slot %s is good", slots.version,
                    rp_ab_slot_name(slots.good));
    }
fail:
    unlock_folder(held);
    return err;
}

rp_err rp_ab_revert(const char *dir) {
    rp_ab slots;
    int held = -1;
    rp_err err;
    RP_TRY(lock_folder(dir, &held));
    RP_TRY(rp_ab_read(dir, &slots));
    if (slots.trial != RP_AB_NONE) {
        slots.failed = slots.trial_version;
        slots.trial = RP_AB_NONE;
        slots.trial_version = 0;
        slots.starts = 0;
    } else if (slots.former > 0) {
        slots.good = slots.good == RP_AB_A ? RP_AB_B : RP_AB_A;
        slots.failed = slots.version;
        slots.version = slots.former;
        slots.former = 0;
    } else if (slots.good != RP_AB_NONE) {
        slots.failed = slots.version;
        slots.good = RP_AB_NONE; /* the system's own software */
        slots.version = 0;
    } else {
        RP_TRY(rp_fail(RP_ERR_USAGE, "%s: there is no trial and no previous version to return to",
                       dir));
    }
    RP_TRY(write_state(dir, &slots));
fail:
    unlock_folder(held);
    return err;
}
