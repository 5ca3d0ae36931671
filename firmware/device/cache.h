/* Kernel binaries on disk: <dir>/<key in hex>.bin, written to a temporary file and renamed.
 *
 * A file that is short, foreign, damaged or of another format is a miss, never an error; so is a
 * folder that cannot be written. Agents that start together on one machine want the same kernels:
 * the one that builds holds <key in hex>.lock. The lock only saves time; nothing depends on it. */
#ifndef RP_DEVICE_CACHE_H
#define RP_DEVICE_CACHE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

enum { RP_CACHE_KEY_BYTES = 32, RP_CACHE_FORMAT = 1 };

typedef struct {
    uint8_t bytes[RP_CACHE_KEY_BYTES];
} rp_cache_key;

/* SHA-256 of the format number and the texts, each with its length; NULL ends the list. */
rp_cache_key rp_cache_key_of(const char *const *texts);
/* Reads the binary into `arena`; false on a miss. */
bool rp_cache_read(rp_arena *arena, const char *dir, const rp_cache_key *key, void **out,
                   size_t *bytes);
void rp_cache_write(const char *dir, const rp_cache_key *key, const void *binary, size_t bytes);

/* Takes the lock of an entry, waiting for another process at most `wait_ns` and until *cancelled
 * (NULL = never cancelled); the lock of a process that dies is released. lock_fd is -1 if nothing
 * can be locked there: then build without waiting. Returns false after waiting in vain. After true
 * look up the entry again, because that process may have written it. */
bool rp_cache_lock(const char *dir, const rp_cache_key *key, int64_t wait_ns,
                   const atomic_bool *cancelled, int *lock_fd);
/* Also removes the lock's file; -1 means no lock. */
void rp_cache_unlock(const char *dir, const rp_cache_key *key, int lock_fd);

#endif
