#include "device/flash.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/clock.h"

struct rp_flash {
    int fd;
    const char *folder;
    const char *why_cached;
    uint32_t entries;
    size_t entry_bytes;
    uint64_t written_bytes;
};

const char *rp_flash_folder(void) {
    const char *said = getenv("RINGPIPE_FLASH");
    return said && *said ? said : "/var/tmp"; /* not emptied at boot, so it is on a disk */
}

size_t rp_flash_round(size_t bytes) {
    return (bytes + RP_FLASH_BLOCK - 1) / RP_FLASH_BLOCK * RP_FLASH_BLOCK;
}

rp_err rp_flash_take(rp_arena *arena, size_t bytes, char **out) {
    char *memory;
    rp_err err = RP_ARENA_NEW(arena, rp_flash_round(bytes) + RP_FLASH_BLOCK, &memory);
    if (err == RP_OK) {
        const uintptr_t rest = (uintptr_t)memory % RP_FLASH_BLOCK;
        *out = memory + (rest ? RP_FLASH_BLOCK - rest : 0);
    }
    return err;
}

/* ---- opening --------------------------------------------------------------------------------- */

/* Creates an unnamed file, or, if the file system has no such files, unlinks it at once. */
static int make_file(rp_arena *arena, const char *folder, int flags) {
    char *path;
    int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC | flags, 0600);
    if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR)) {
        return fd;
    }
    if (rp_arena_printf(arena, &path, "%s/ringpipe-stashes-XXXXXX", folder) != RP_OK) {
        errno = ENOMEM;
        return -1;
    }
    fd = mkostemp(path, O_CLOEXEC | flags);
    if (fd >= 0) {
        (void)unlink(path);
    }
    return fd;
}

static rp_err make_any(rp_arena *arena, rp_flash *flash) {
    struct statfs about;
    flash->fd = make_file(arena, flash->folder, O_DIRECT);
    if (flash->fd < 0 && errno == EINVAL) {
        flash->why_cached = "its file system refuses direct I/O";
        flash->fd = make_file(arena, flash->folder, 0);
    }
    if (flash->fd < 0) {
        return rp_fail(RP_ERR_USAGE,
                       "flash: a file in %s: %s; expected a folder that may be written",
                       flash->folder, strerror(errno));
    }
    if (fstatfs(flash->fd, &about) == 0 && about.f_type == TMPFS_MAGIC) {
        flash->why_cached = "it is a tmpfs, which is in memory itself";
    }
    return RP_OK;
}

static rp_err take_room(const rp_flash *flash) {
    const uint64_t bytes = (uint64_t)flash->entries * flash->entry_bytes;
    struct statvfs about;
    uint64_t room = UINT64_MAX;
    int problem = 0;
    if (fstatvfs(flash->fd, &about) == 0) {
        room = (uint64_t)about.f_bavail * about.f_frsize;
    }
    problem = bytes > room ? ENOSPC : posix_fallocate(flash->fd, 0, (off_t)bytes);
    return problem == 0
               ? RP_OK
               : rp_fail(RP_ERR_LIMIT,
                         "flash: %.1f MiB needed for %u stashes in %s, %.1f free: %s; make room, "
                         "or name another folder with RINGPIPE_FLASH",
                         (double)bytes / (1 << 20), flash->entries, flash->folder,
                         room == UINT64_MAX ? 0 : (double)room / (1 << 20), strerror(problem));
}

/* Some file systems accept the flag and refuse the first write. */
static rp_err try_direct(rp_arena *arena, rp_flash *flash) {
    char *piece;
    rp_err err;
    RP_TRY(rp_flash_take(arena, RP_FLASH_BLOCK, &piece));
    if (!flash->why_cached && pwrite(flash->fd, piece, RP_FLASH_BLOCK, 0) < 0 && errno == EINVAL) {
        const int flags = fcntl(flash->fd, F_GETFL);
        flash->why_cached = "its file system refuses direct I/O in blocks of 4 KiB";
        if (flags < 0 || fcntl(flash->fd, F_SETFL, flags & ~O_DIRECT) != 0) {
            return rp_fail(RP_ERR_IO, "flash: a file in %s: %s", flash->folder, strerror(errno));
        }
    }
fail:
    return err;
}

rp_err rp_flash_open(rp_arena *arena, const char *folder, uint32_t entries, size_t entry_bytes,
                     rp_flash **out) {
    rp_flash *flash = NULL;
    rp_arena scratch;
    rp_err err;
    rp_arena_init(&scratch, "flash", 0);
    RP_TRY(RP_ARENA_NEW(arena, 1, &flash));
    *flash = (rp_flash){
        .fd = -1, .folder = folder, .entries = entries, .entry_bytes = rp_flash_round(entry_bytes)};
    RP_TRY(make_any(&scratch, flash));
    RP_TRY(take_room(flash));
    RP_TRY(try_direct(&scratch, flash));
    rp_arena_finish(&scratch);
    *out = flash;
    return RP_OK;
fail:
    rp_arena_finish(&scratch);
    rp_flash_close(&flash);
    return err;
}

void rp_flash_close(rp_flash **pointer) {
    rp_flash *flash = *pointer;
    *pointer = NULL;
    if (flash && flash->fd >= 0) {
        (void)close(flash->fd);
        flash->fd = -1;
    }
}

const char *rp_flash_why_cached(const rp_flash *flash) {
    return flash->why_cached;
}

uint64_t rp_flash_written_bytes(const rp_flash *flash) {
    return flash->written_bytes;
}

/* ---- reading and writing --------------------------------------------------------------------- */

static void check_bounds(const rp_flash *flash, uint32_t entry, size_t at, const void *memory,
                         size_t bytes) {
    RP_ASSERT(entry < flash->entries && at % RP_FLASH_BLOCK == 0 &&
              (uintptr_t)memory % RP_FLASH_BLOCK == 0 &&
              at + rp_flash_round(bytes) <= flash->entry_bytes);
}

static rp_err fail_open(const rp_flash *flash, const char *what, uint32_t entry, size_t done,
                        size_t bytes, int problem) {
    return rp_fail(RP_ERR_DEVICE, "flash: %s stash %u in %s: %zu of %zu bytes, %s", what, entry,
                   flash->folder, done, bytes,
                   problem ? strerror(problem) : "without an error code");
}

rp_err rp_flash_write(rp_flash *flash, uint32_t entry, size_t at, const void *from, size_t bytes) {
    const size_t all = rp_flash_round(bytes);
    const off_t place = (off_t)(entry * flash->entry_bytes + at);
    check_bounds(flash, entry, at, from, bytes);
    for (size_t done = 0; done < all;) {
        const ssize_t count =
            pwrite(flash->fd, (const char *)from + done, all - done, place + (off_t)done);
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count <= 0 || count % RP_FLASH_BLOCK != 0) {
            return fail_open(flash, "writing", entry, done + (size_t)(count > 0 ? count : 0), all,
                             count < 0 ? errno : 0);
        }
        done += (size_t)count;
        flash->written_bytes += (uint64_t)count;
    }
    return RP_OK;
}

rp_err rp_flash_read(rp_flash *flash, uint32_t entry, size_t at, void *to, size_t bytes) {
    const size_t all = rp_flash_round(bytes);
    const off_t place = (off_t)(entry * flash->entry_bytes + at);
    check_bounds(flash, entry, at, to, bytes);
    for (size_t done = 0; done < all;) {
        const ssize_t count = pread(flash->fd, (char *)to + done, all - done, place + (off_t)done);
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count <= 0 || count % RP_FLASH_BLOCK != 0) {
            return fail_open(flash, "reading", entry, done + (size_t)(count > 0 ? count : 0), all,
                             count < 0 ? errno : 0);
        }
        done += (size_t)count;
    }
    return RP_OK;
}

/* ---- measuring ------------------------------------------------------------------------------- */

enum { MEASURED = 16, PIECE = 1 << 20 };

static double middle_of(double *value) {
    for (uint32_t i = 1; i < MEASURED; i++) {
        const double moved = value[i];
        uint32_t at = i;
        for (; at > 0 && value[at - 1] > moved; at--) {
            value[at] = value[at - 1];
        }
        value[at] = moved;
    }
    return (value[MEASURED / 2 - 1] + value[MEASURED / 2]) / 2;
}

rp_err rp_flash_measure(const char *folder, double *write_rate, double *read_rate) {
    double *const rate[] = {write_rate, read_rate};
    const rp_clock clock = rp_clock_real();
    rp_flash *flash = NULL;
    rp_arena arena;
    char *piece;
    rp_err err;
    rp_arena_init(&arena, "flash", 0);
    RP_TRY(rp_flash_take(&arena, PIECE, &piece));
    RP_TRY(rp_flash_open(&arena, folder, MEASURED, PIECE, &flash));
    for (size_t i = 0; i < PIECE; i++) { /* some disks are faster with zeros */
        piece[i] = (char)(i * 7 + i / 251);
    }
    for (uint32_t way = 0; way < 2; way++) {
        double seconds[MEASURED];
        for (uint32_t i = 0; i < MEASURED; i++) {
            const int64_t start_ns = rp_clock_now_ns(&clock);
            RP_TRY(way == 0 ? rp_flash_write(flash, i, 0, piece, PIECE)
                            : rp_flash_read(flash, i, 0, piece, PIECE));
            seconds[i] = (double)(rp_clock_now_ns(&clock) - start_ns) * 1e-9;
        }
        *rate[way] = PIECE / (middle_of(seconds) + 1e-9);
    }
fail:
    rp_flash_close(&flash);
    rp_arena_finish(&arena);
    return err;
}
