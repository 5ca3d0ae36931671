/* Kernel binaries on disk: <dir>/<key in hex>.bin, written beside and renamed.
 *
 * A file that is short, foreign, of another format or damaged is a miss, never an error; nor is a
 * folder that can not be written. Agents that begin together on one machine want the same kernels:
 * <key in hex>.lock is held by the one that builds. It saves time and nothing depends on it. */
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

/* SHA-256 of the format number and the texts, each with its length; ends at NULL. */
rp_cache_key rp_cache_key_of(const char *const *texts);
/* The binary in `arena`, or false. */
bool rp_cache_read(rp_arena *arena, const char *dir, const rp_cache_key *key, void **out,
                   size_t *bytes);
void rp_cache_write(const char *dir, const rp_cache_key *key, const void *binary, size_t bytes);

/* Takes the lock of an entry, waiting for another process at most `wait_ns` and until *cancelled
 * (may be NULL = never); a process that dies lets go of its own. lock_fd is -1 when nothing can be
 * locked there: build then, and do not wait. false: waited in vain. After true look again, the
 * other may have written the entry. */
bool rp_cache_lock(const char *dir, const rp_cache_key *key, int64_t wait_ns,
                   const atomic_bool *cancelled, int *lock_fd);
/* Removes the lock's file too; -1 is no lock. */
void rp_cache_unlock(const char *dir, const rp_cache_key *key, int lock_fd);

#endif
