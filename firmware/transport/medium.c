#include "transport/medium.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct rp_media {
    const rp_clock *clock;
    rp_medium *medium; /* [RP_MEDIA_MAX] */
    int fd;            /* of the shared memory; -1: not shared */
};

#define MEDIA_BYTES (RP_MEDIA_MAX * sizeof(rp_medium))

rp_err rp_media_new(rp_arena *arena, const rp_clock *clock, rp_media **out) {
    rp_err err;
    RP_TRY(RP_ARENA_NEW(arena, 1, out));
    **out = (rp_media){.clock = clock, .fd = -1};
    RP_TRY(RP_ARENA_NEW(arena, RP_MEDIA_MAX, &(*out)->medium));
fail:
    return err;
}

/* Takes ownership of `fd`. */
static rp_err map_media(rp_arena *arena, const rp_clock *clock, int fd, rp_media **out) {
    rp_media *media;
    rp_err err = RP_ARENA_NEW(arena, 1, &media);
    void *memory = MAP_FAILED;
    if (err == RP_OK) {
        memory = mmap(NULL, MEDIA_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        err = memory == MAP_FAILED
                  ? rp_fail(RP_ERR_IO, "media of emulated lines: mmap: %s", strerror(errno))
                  : RP_OK;
    }
    if (err != RP_OK) {
        (void)close(fd);
        return err;
    }
    *media = (rp_media){.clock = clock, .medium = memory, .fd = fd};
    *out = media;
    return RP_OK;
}

rp_err rp_media_share(rp_arena *arena, const rp_clock *clock, rp_media **out) {
    const int fd = memfd_create("ringpipe-media", MFD_CLOEXEC);
    *out = NULL;
    if (fd < 0 || ftruncate(fd, (off_t)MEDIA_BYTES) != 0) {
        const rp_err err = rp_fail(RP_ERR_IO, "media of emulated lines: %s", strerror(errno));
        if (fd >= 0) {
            (void)close(fd);
        }
        return err;
    }
    return map_media(arena, clock, fd, out);
}

rp_err rp_media_adopt(rp_arena *arena, int fd, const rp_clock *clock, rp_media **out) {
    struct stat facts;
    *out = NULL;
    if (fstat(fd, &facts) != 0 || !S_ISREG(facts.st_mode) || facts.st_size != (off_t)MEDIA_BYTES ||
        fcntl(fd, F_SETFD, FD_CLOEXEC) != 0) {
        return rp_fail(RP_ERR_USAGE, "descriptor %d is not the media of a ringpipe", fd);
    }
    return map_media(arena, clock, fd, out);
}

int rp_media_fd(const rp_media *media) {
    return media->fd;
}

void rp_media_close(rp_media **taken) {
    rp_media *media = *taken;
    *taken = NULL;
    if (media && media->fd >= 0) {
        (void)munmap(media->medium, MEDIA_BYTES);
        (void)close(media->fd);
    }
}

rp_medium *rp_media_find(const rp_media *media, uint64_t key) {
    for (uint64_t i = 0; media && key && i < RP_MEDIA_MAX; i++) {
        rp_medium *medium = &media->medium[(key + i) % RP_MEDIA_MAX];
        uint64_t there = 0;
        if (atomic_compare_exchange_strong(&medium->key, &there, key) || there == key) {
            return medium;
        }
    }
    return NULL;
}

int64_t rp_media_ahead_ns(const rp_media *media, const rp_clock *clock) {
    return media->clock == clock ? 0 : rp_clock_now_ns(clock) - rp_clock_now_ns(media->clock);
}
