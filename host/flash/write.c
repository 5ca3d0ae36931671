#include "flash/write.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"

enum { BLOCK = 4 << 20, SYNC = 4 /* blocks between two calls of fsync() */ };

typedef struct {
    const rp_card_job *job;
    int image, device;
    uint8_t *block[2];
    uint64_t bytes;
} work;

static rp_err open_both(rp_arena *arena, const rp_card_job *job, int flags, work *w) {
    void *memory;
    struct stat st;
    rp_err err;
    *w = (work){.job = job, .image = -1, .device = -1};
    RP_TRY(rp_arena_alloc(arena, 2, BLOCK, &memory));
    w->block[0] = memory;
    w->block[1] = w->block[0] + BLOCK;
    w->image = open(job->image, O_RDONLY | O_CLOEXEC);
    if (w->image < 0 || fstat(w->image, &st) != 0) {
        return rp_fail(RP_ERR_IO, "%s: %s", job->image, strerror(errno));
    }
    w->bytes = (uint64_t)st.st_size;
    w->device = open(job->device, flags | O_CLOEXEC);
    if (w->device < 0) {
        return rp_fail(errno == EBUSY || errno == EACCES ? RP_ERR_USAGE : RP_ERR_IO, "%s: %s%s",
                       job->device, strerror(errno),
                       errno == EACCES ? "; use sudo, or become a member of the group `disk`" : "");
    }
fail:
    return err;
}

static void close_both(const work *w) {
    if (w->image >= 0) {
        (void)close(w->image);
    }
    if (w->device >= 0) {
        (void)close(w->device);
    }
}

/* Reads exactly `bytes`. */
static rp_err read_block(int fd, const char *path, uint8_t *out, size_t bytes, uint64_t at) {
    for (size_t done = 0; done < bytes;) {
        const ssize_t n = pread(fd, out + done, bytes - done, (off_t)(at + done));
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return rp_fail(RP_ERR_IO, "%s cannot be read at byte %" PRIu64 ": %s", path, at + done,
                           n < 0 ? strerror(errno) : "it ends there");
        }
        done += (size_t)n;
    }
    return RP_OK;
}

static rp_err write_block(const work *w, const uint8_t *block, size_t bytes, uint64_t at) {
    for (size_t done = 0; done < bytes;) {
        const ssize_t n = pwrite(w->device, block + done, bytes - done, (off_t)(at + done));
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return rp_fail(RP_ERR_FAULT, "%s cannot be written at byte %" PRIu64 ": %s",
                           w->job->device, at + done, n < 0 ? strerror(errno) : "it ends there");
        }
        done += (size_t)n;
    }
    return RP_OK;
}

static rp_err report_progress(const work *w, uint64_t done) {
    if (w->job->stopped && w->job->stopped(w->job->context)) {
        return rp_fail(RP_ERR_INTERRUPTED, "stopped; %s has only a part of the image",
                       w->job->device);
    }
    if (w->job->progress) {
        w->job->progress(w->job->context, done, w->bytes);
    }
    return RP_OK;
}

static rp_err sync_device(const work *w) {
    return fdatasync(w->device) == 0
               ? RP_OK
               : rp_fail(RP_ERR_FAULT, "%s: %s", w->job->device, strerror(errno));
}

static rp_err write_all(const work *w) {
    rp_err err = RP_OK;
    uint32_t blocks = 0;
    for (uint64_t at = 0; at < w->bytes;) {
        const uint64_t left = w->bytes - at;
        const size_t bytes = left < BLOCK ? (size_t)left : BLOCK;
        RP_TRY(read_block(w->image, w->job->image, w->block[0], bytes, at));
        RP_TRY(write_block(w, w->block[0], bytes, at));
        at += bytes;
        if (++blocks % SYNC == 0 || at == w->bytes) {
            RP_TRY(sync_device(w)); /* otherwise the kernel would buffer all, and wait at the end */
        }
        RP_TRY(report_progress(w, at));
    }
fail:
    return err;
}

/* Error for two blocks that differ; they begin at byte `at` of the card. */
static rp_err fail_difference(const work *w, uint64_t at) {
    size_t i = 0;
    while (w->block[0][i] == w->block[1][i]) {
        i++;
    }
    return rp_fail(RP_ERR_FAULT,
                   "%s differs from %s at byte %" PRIu64
                   ": the card is broken, or smaller than it reports; use a different card",
                   w->job->device, w->job->image, at + i);
}

/* Compares the card, without the kernel's cache, with the image. */
static rp_err compare_all(const work *w) {
    rp_err err = RP_OK;
    (void)ioctl(w->device, BLKFLSBUF, 0); /* drops the cache of a disk; the next line, of a file */
    (void)posix_fadvise(w->device, 0, 0, POSIX_FADV_DONTNEED);
    for (uint64_t at = 0; at < w->bytes;) {
        const uint64_t left = w->bytes - at;
        const size_t bytes = left < BLOCK ? (size_t)left : BLOCK;
        RP_TRY(read_block(w->image, w->job->image, w->block[0], bytes, at));
        RP_TRY(read_block(w->device, w->job->device, w->block[1], bytes, at));
        if (memcmp(w->block[0], w->block[1], bytes) != 0) {
            return fail_difference(w, at);
        }
        at += bytes;
        RP_TRY(report_progress(w, at));
    }
fail:
    return err;
}

static rp_err with_both(const rp_card_job *job, int flags, rp_err (*do_all)(const work *w)) {
    rp_arena arena;
    work w;
    rp_err err;
    rp_arena_init(&arena, "flash", 0);
    RP_TRY(open_both(&arena, job, flags, &w));
    RP_TRY(do_all(&w));
fail:
    close_both(&w);
    rp_arena_finish(&arena);
    return err;
}

rp_err rp_card_write(const rp_card_job *job) {
    return with_both(job, O_WRONLY | O_EXCL, write_all);
}

rp_err rp_card_verify(const rp_card_job *job) {
    return with_both(job, O_RDONLY, compare_all);
}
