#include "device/cache.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"

enum { PATH_BYTES = 1024, BINARY_BYTES_MAX = 64 << 20, LOCK_POLL_MS = 10 };

/* Header of the file, before the binary. */
typedef struct {
    char magic[4];
    uint32_t format;
    uint8_t key[RP_CACHE_KEY_BYTES];
    uint8_t sum[crypto_hash_sha256_BYTES];
    uint64_t bytes;
} head;

static const char magic[4] = {'R', 'P', 'K', 'B'};

rp_cache_key rp_cache_key_of(const char *const *texts) {
    const uint32_t format = RP_CACHE_FORMAT;
    rp_cache_key key;
    crypto_hash_sha256_state state;
    (void)crypto_hash_sha256_init(&state);
    (void)crypto_hash_sha256_update(&state, (const void *)&format, sizeof format);
    for (; *texts; texts++) {
        uint64_t bytes = strlen(*texts);
        (void)crypto_hash_sha256_update(&state, (const void *)&bytes, sizeof bytes);
        (void)crypto_hash_sha256_update(&state, (const void *)*texts, bytes);
    }
    (void)crypto_hash_sha256_final(&state, key.bytes);
    return key;
}

static bool entry_path(char out[PATH_BYTES], const char *dir, const rp_cache_key *key,
                       const char *end) {
    char hex[2 * RP_CACHE_KEY_BYTES + 1];
    (void)sodium_bin2hex(hex, sizeof hex, key->bytes, sizeof key->bytes);
    int length = snprintf(out, PATH_BYTES, "%s/%s%s", dir, hex, end);
    return length > 0 && length < PATH_BYTES;
}

static bool read_entry(rp_arena *arena, FILE *file, const rp_cache_key *key, void **out,
                       size_t *bytes) {
    head found;
    if (fread(&found, sizeof found, 1, file) != 1 || memcmp(found.magic, magic, 4) != 0 ||
        found.format != RP_CACHE_FORMAT || memcmp(found.key, key->bytes, sizeof found.key) != 0 ||
        found.bytes == 0 || found.bytes > BINARY_BYTES_MAX) {
        return false;
    }
    void *binary;
    if (rp_arena_alloc(arena, found.bytes, 1, &binary) != RP_OK ||
        fread(binary, 1, found.bytes, file) != found.bytes || fgetc(file) != EOF) {
        return false;
    }
    uint8_t sum[crypto_hash_sha256_BYTES];
    (void)crypto_hash_sha256(sum, binary, found.bytes);
    if (memcmp(sum, found.sum, sizeof sum) != 0) {
        return false;
    }
    *out = binary;
    *bytes = found.bytes;
    return true;
}

bool rp_cache_read(rp_arena *arena, const char *dir, const rp_cache_key *key, void **out,
                   size_t *bytes) {
    char path[PATH_BYTES];
    if (!dir[0] || !entry_path(path, dir, key, ".bin")) {
        return false;
    }
    FILE *file = fopen(path, "rb");
    if (!file) {
        return false;
    }
    bool good = read_entry(arena, file, key, out, bytes);
    (void)fclose(file);
    if (!good) {
        rp_log_debug(
            "kernel cache: %s is damaged or for another device, so the kernel is built again",
            path);
    }
    return good;
}

/* Like mkdir -p. */
static void make_folders(const char *dir) {
    char path[PATH_BYTES];
    int length = snprintf(path, sizeof path, "%s/", dir);
    for (int i = 1; i < length && i < PATH_BYTES; i++) {
        if (path[i] == '/') {
            path[i] = 0;
            (void)mkdir(path, 0700);
            path[i] = '/';
        }
    }
}

void rp_cache_write(const char *dir, const rp_cache_key *key, const void *binary, size_t bytes) {
    char path[PATH_BYTES];
    char temporary[PATH_BYTES];
    if (!dir[0] || bytes == 0 || bytes > BINARY_BYTES_MAX || !entry_path(path, dir, key, ".bin") ||
        !entry_path(temporary, dir, key, ".XXXXXX")) {
        return;
    }
    make_folders(dir);
    int fd = mkstemp(temporary);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "wb");
    if (!file) {
        rp_log_debug("kernel cache: %s: %s", temporary, strerror(errno));
        if (fd >= 0) {
            (void)close(fd);
            (void)unlink(temporary);
        }
        return;
    }
    head made = {.format = RP_CACHE_FORMAT, .bytes = bytes};
    memcpy(made.magic, magic, 4);
    memcpy(made.key, key->bytes, sizeof made.key);
    (void)crypto_hash_sha256(made.sum, binary, bytes);
    bool good = fwrite(&made, sizeof made, 1, file) == 1 && fwrite(binary, 1, bytes, file) == bytes;
    good = fclose(file) == 0 && good;
    if (!good || rename(temporary, path) != 0) {
        rp_log_debug("kernel cache: %s: %s", path, strerror(errno));
        (void)unlink(temporary);
    }
}

bool rp_cache_lock(const char *dir, const rp_cache_key *key, int64_t wait_ns,
                   const atomic_bool *cancelled, int *lock_fd) {
    char path[PATH_BYTES];
    *lock_fd = -1;
    if (!dir[0] || !entry_path(path, dir, key, ".lock")) {
        return true;
    }
    make_folders(dir);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) {
        rp_log_debug("kernel cache: %s: %s", path, strerror(errno));
        return true;
    }
    const rp_clock clock = rp_clock_real();
    const int64_t end_ns = rp_clock_now_ns(&clock) + wait_ns;
    while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        const bool held = errno == EWOULDBLOCK || errno == EINTR;
        if (!held || (cancelled && atomic_load(cancelled)) || rp_clock_now_ns(&clock) >= end_ns) {
            rp_log_debug("kernel cache: %s: %s", path, strerror(errno));
            (void)close(fd);
            return !held;
        }
        (void)nanosleep(&(struct timespec){.tv_nsec = LOCK_POLL_MS * RP_NS_PER_MS}, NULL);
    }
    *lock_fd = fd;
    return true;
}

/* The file is removed before the lock is released: a waiting process then gets the lock of a file
 * without a name, a later one makes a new file, and both find the entry that was built. */
void rp_cache_unlock(const char *dir, const rp_cache_key *key, int lock_fd) {
    char path[PATH_BYTES];
    if (lock_fd < 0) {
        return;
    }
    if (entry_path(path, dir, key, ".lock")) {
        (void)unlink(path);
    }
    (void)close(lock_fd);
}
