#include "update/system.h"
#include "update/space.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sodium.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/folders.h"
#include "base/log.h"
#include "base/replace.h"
#include "update/bundle_own.h"
#include "update/system_own.h"

enum { PIECE = 1 << 16, BOOT_MARGIN = 1 << 20 /* for the loader's own files: entries, counters */ };

static const char root_file[] = "system/root.squashfs";
static const char *const files[] = {"system/initrd", root_file, "system/vmlinuz"};
enum { FILES = sizeof files / sizeof *files };

static const char *const state_names[] = {"empty", "good", "trial", "failed"};

const char *rp_system_state_name(rp_system_state state) {
    return state_names[state];
}

rp_ab_slot rp_system_other(rp_ab_slot slot) {
    return slot == RP_AB_A ? RP_AB_B : RP_AB_A;
}

bool rp_bundle_is_system(const rp_bundle *bundle) {
    for (uint32_t i = 0; i < bundle->count; i++) {
        if (strcmp(bundle->file[i].path, root_file) == 0) {
            return true;
        }
    }
    return false;
}

/* ---- state ----------------------------------------------------------------------------------- */

static rp_system_slot slot_of_entry(const rp_entry *entry, bool runs) {
    if (!entry) {
        return (rp_system_slot){.state = RP_SYSTEM_EMPTY};
    }
    rp_system_slot slot = {.state = RP_SYSTEM_GOOD, .release = entry->release};
    if (entry->left != RP_ENTRY_UNCOUNTED) {
        slot.starts = (uint32_t)entry->left;
        slot.state = entry->left > 0 || runs ? RP_SYSTEM_TRIAL : RP_SYSTEM_FAILED;
    }
    return slot;
}

static void judge_all(const rp_system_places *places, const rp_entries *entries, rp_system *out) {
    *out = (rp_system){.own = places->own};
    for (rp_ab_slot slot = RP_AB_A; slot <= RP_AB_B; slot++) {
        out->slot[slot] = slot_of_entry(rp_entries_of(entries, slot), slot == places->own);
    }
}

rp_err rp_system_look(const rp_system_places *places, rp_system *out) {
    static rp_entries entries;
    const rp_err err = rp_entries_read(places->boot, &entries);
    judge_all(places, &entries, out);
    return err;
}

/* ---- installing ------------------------------------------------------------------------------ */

/* Checks everything that can be checked before a change. */
static rp_err check_bundle(const rp_bundle *bundle, const char *name, const rp_system *system,
                           const char *board) {
    const rp_system_slot *own = &system->slot[system->own];
    if (!rp_bundle_is_system(bundle) || bundle->count != FILES) {
        return rp_fail(RP_ERR_REFUSED, "%s: is not a bundle of a whole system", name);
    }
    for (uint32_t i = 0; i < FILES; i++) {
        if (strcmp(bundle->file[i].path, files[i]) != 0) {
            return rp_fail(RP_ERR_REFUSED, "%s: expected the file %s, found %s", name, files[i],
                           bundle->file[i].path);
        }
    }
    if (board && strcmp(bundle->board, board) != 0) {
        return rp_fail(RP_ERR_REFUSED, "%s: is for boards of the profile %s, and this is a %s",
                       name, bundle->board, board);
    }
    if (own->state != RP_SYSTEM_GOOD) {
        return rp_fail(
            RP_ERR_REFUSED,
            "%s: the running system is %s, so the second slot is still needed to fall back to",
            name,
            own->state == RP_SYSTEM_TRIAL ? "on trial itself"
                                          : "not the one that the boot partition names");
    }
    return bundle->version > own->release ? RP_OK
                                          : rp_fail(RP_ERR_REFUSED,
                                                    "%s: has release %" PRIu64 ", but %" PRIu64
                                                    " is running: expected a newer one",
                                                    name, bundle->version, own->release);
}

/* Compares what has been written with what the disk returns. */
static rp_err check_back(const char *path, int fd, const rp_bundle_file *of) {
    crypto_hash_sha256_state state;
    uint8_t sum[RP_BUNDLE_SUM];
    uint8_t piece[PIECE];
    (void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED); /* otherwise the page cache would answer */
    if (lseek(fd, 0, SEEK_SET) != 0) {
        return rp_fail(RP_ERR_IO, "%s: %s", path, strerror(errno));
    }
    (void)crypto_hash_sha256_init(&state);
    for (uint64_t left = of->bytes; left > 0;) {
        const ssize_t got = read(fd, piece, left < PIECE ? (size_t)left : PIECE);
        if (got <= 0) {
            return rp_fail(RP_ERR_IO, "%s: cannot be read back: %s", path,
                           got < 0 ? strerror(errno) : "it is too short");
        }
        (void)crypto_hash_sha256_update(&state, piece, (size_t)got);
        left -= (uint64_t)got;
    }
    (void)crypto_hash_sha256_final(&state, sum);
    return memcmp(sum, of->sha256, sizeof sum) == 0
               ? RP_OK
               : rp_fail(RP_ERR_IO, "%s: has other bytes than those written to it", path);
}

/* Writes one file of the bundle to its destination; `made`: a file rather than a device. */
static rp_err write_one(const char *path, bool made, const rp_bundle_file *of, FILE *bundle,
                        const char *name) {
    const int flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW;
    const int fd = made ? open(path, flags | O_CREAT | O_TRUNC, 0600) : open(path, flags);
    const off_t room = fd >= 0 ? lseek(fd, 0, SEEK_END) : -1;
    rp_err err = RP_OK;
    if (room < 0) {
        err = rp_fail(RP_ERR_IO, "%s: %s", path, strerror(errno));
        goto fail;
    }
    if (!made && (uint64_t)room < of->bytes) {
        RP_TRY(rp_fail(RP_ERR_LIMIT,
                       "%s: its system has %" PRIu64 " MiB, but this board's slots have %" PRIu64,
                       name, (of->bytes >> 20) + 1, (uint64_t)room >> 20));
    }
    if (lseek(fd, 0, SEEK_SET) != 0) {
        RP_TRY(rp_fail(RP_ERR_IO, "%s: %s", path, strerror(errno)));
    }
    RP_TRY(rp_bundle_copy(of, bundle, name, fd));
    if (fsync(fd) != 0) {
        RP_TRY(rp_fail(RP_ERR_IO, "%s: cannot be written: %s", path, strerror(errno)));
    }
    RP_TRY(check_back(path, fd, of));
    RP_TRY(made ? rp_replace_sync_folder(path) : RP_OK);
fail:
    if (fd >= 0) {
        (void)close(fd);
    }
    if (err != RP_OK && made) { /* half a file is useless and may have filled the disk */
        (void)unlink(path);
    }
    return err;
}

/* Writes the files in the bundle's order. */
static rp_err write_files(const rp_system_places *places, rp_ab_slot to, const rp_bundle *bundle,
                          FILE *file, const char *name) {
    char folder[RP_AB_PATH_BYTES];
    char path[RP_AB_PATH_BYTES + 16];
    rp_err err = RP_OK;
    const int n = snprintf(folder, sizeof folder, "%s/%s", places->boot, rp_ab_slot_name(to));
    if (n >= (int)sizeof folder) {
        return rp_fail(RP_ERR_USAGE, "%.100s...: path is too long", places->boot);
    }
    RP_TRY(rp_folders_make(folder, 0755));
    RP_TRY(rp_replace_sync_folder(folder));
    for (uint32_t i = 0; i < bundle->count; i++) {
        const rp_bundle_file *of = &bundle->file[i];
        const bool is_root = strcmp(of->path, root_file) == 0;
        (void)snprintf(path, sizeof path, "%s/%s", folder, strrchr(of->path, '/') + 1);
        RP_TRY(write_one(is_root ? places->partition[to] : path, !is_root, of, file, name));
    }
    if (fgetc(file) != EOF) {
        return rp_fail(RP_ERR_FORMAT, "%s: has bytes after its last file", name);
    }
fail:
    return err;
}

/* Checks the space on the boot partition for files that do not go to the system's own partition. */
static rp_err check_space(const rp_system_places *places, rp_ab_slot to, const rp_bundle *bundle,
                          const char *name) {
    char folder[RP_AB_PATH_BYTES];
    uint64_t bytes = 0;
    uint64_t freed;
    rp_err err;
    for (uint32_t i = 0; i < bundle->count; i++) {
        bytes += strcmp(bundle->file[i].path, root_file) == 0 ? 0 : bundle->file[i].bytes;
    }
    (void)snprintf(folder, sizeof folder, "%.1000s/%s", places->boot, rp_ab_slot_name(to));
    RP_TRY(rp_space_used(folder, &freed));
    RP_TRY(rp_space_check(name, places->boot, bytes, freed, BOOT_MARGIN));
fail:
    return err;
}

rp_err rp_system_install(const rp_system_places *places, FILE *file, const char *name,
                         const uint8_t key[RP_SIGNING_BYTES], const char *board) {
    static rp_entries entries;
    const rp_ab_slot to = rp_system_other(places->own);
    rp_system system;
    rp_arena arena;
    rp_bundle bundle;
    rp_err err;
    rp_arena_init(&arena, "system", 0);
    RP_TRY(rp_entries_read(places->boot, &entries));
    judge_all(places, &entries, &system);
    RP_TRY(rp_bundle_read(&arena, file, name, key, &bundle));
    RP_TRY(check_bundle(&bundle, name, &system, board));
    RP_TRY(check_space(places, to, &bundle, name));
    /* From here on the loader only has the running system. */
    RP_TRY(rp_entries_remove(places->boot, &entries, to, RP_ENTRY_NONE));
    RP_TRY(write_files(places, to, &bundle, file, name));
    RP_TRY(rp_entry_write(places->boot, to, RP_AB_STARTS, bundle.version,
                          rp_entries_of(&entries, places->own)->options));
    rp_log_info("system: release %" PRIu64 " is on trial in slot %s", bundle.version,
                rp_ab_slot_name(to));
fail:
    rp_arena_finish(&arena);
    return err;
}

/* ---- validating, reverting ------------------------------------------------------------------- */

/* Replaces the running system's entry by one with another count of starts; the new entry exists
 * before the old one is removed. */
static rp_err change_count(const rp_system_places *places, const rp_entries *entries,
                           int32_t left) {
    const rp_entry *own = rp_entries_of(entries, places->own);
    rp_err err;
    if (!own) {
        return rp_fail(RP_ERR_USAGE, "%s: no entry for slot %s, which is running", places->boot,
                       rp_ab_slot_name(places->own));
    }
    RP_TRY(own->left == left
               ? RP_OK
               : rp_entry_write(places->boot, places->own, left, own->release, own->options));
    RP_TRY(rp_entries_remove(places->boot, entries, places->own, left));
fail:
    return err;
}

rp_err rp_system_validate(const rp_system_places *places) {
    static rp_entries entries;
    rp_err err;
    RP_TRY(rp_entries_read(places->boot, &entries));
    RP_TRY(change_count(places, &entries, RP_ENTRY_UNCOUNTED));
    rp_log_info("system: slot %s is good", rp_ab_slot_name(places->own));
fail:
    return err;
}

rp_err rp_system_revert(const rp_system_places *places) {
    static rp_entries entries;
    rp_system system;
    rp_err err;
    RP_TRY(rp_entries_read(places->boot, &entries));
    judge_all(places, &entries, &system);
    const rp_ab_slot other = rp_system_other(places->own);
    if (system.slot[other].state != RP_SYSTEM_GOOD) {
        return rp_fail(RP_ERR_USAGE, "slot %s has no good system to return to",
                       rp_ab_slot_name(other));
    }
    RP_TRY(change_count(places, &entries, 0));
    rp_log_info("system: changing from slot %s to %s", rp_ab_slot_name(places->own),
                rp_ab_slot_name(other));
fail:
    return err;
}
