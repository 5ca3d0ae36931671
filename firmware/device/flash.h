/* A file on flash for entries of one size, to save memory. Its space is allocated when it is
 * opened, so that a full disk is found then. It has no name, so nothing of it remains if the
 * process ends in any way. Reads and writes bypass the page cache (O_DIRECT), which would keep the
 * data in memory.
 *
 * Every call may block; one thread may write while a second thread reads. */
#ifndef RP_DEVICE_FLASH_H
#define RP_DEVICE_FLASH_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"

enum { RP_FLASH_BLOCK = 4096 }; /* offsets, sizes and memory of direct I/O are multiples of it */

typedef struct rp_flash rp_flash;

/* `folder`: on a file system with space for `entries` of `entry_bytes`, each rounded up to blocks.
 * errors  USAGE: the folder is missing or not writable; LIMIT: too little space, with the numbers;
 *         IO; MEMORY */
rp_err rp_flash_open(rp_arena *arena, const char *folder, uint32_t entries, size_t entry_bytes,
                     rp_flash **out) RP_MUST_CHECK;
void rp_flash_close(rp_flash **flash); /* accepts a pointer to NULL */

/* Why reads and writes use the page cache; NULL: they do not. */
const char *rp_flash_why_cached(const rp_flash *flash);

/* Accesses bytes [at, at + bytes) of an entry. `at` is a multiple of a block; memory is aligned to
 * a block and has room for `bytes` rounded up to blocks. The padding of the last block is also
 * written. errors DEVICE: the system refuses, or transfers fewer bytes */
rp_err rp_flash_write(rp_flash *flash, uint32_t entry, size_t at, const void *from,
                      size_t bytes) RP_MUST_CHECK;
rp_err rp_flash_read(rp_flash *flash, uint32_t entry, size_t at, void *to,
                     size_t bytes) RP_MUST_CHECK;

/* Bytes written so far, which wear the flash. Call it from the writing thread. */
uint64_t rp_flash_written_bytes(const rp_flash *flash);
/* Size of an entry in the file. Pure. */
size_t rp_flash_round(size_t entry_bytes);

/* The board's folder for it: $RINGPIPE_FLASH, or /var/tmp. */
const char *rp_flash_folder(void);

/* Allocates memory for direct I/O: aligned, rounded up to blocks. errors MEMORY */
rp_err rp_flash_take(rp_arena *arena, size_t bytes, char **out) RP_MUST_CHECK;

/* Measures the write and read rates of the folder's file system in bytes a second, each the median
 * of several pieces, 16 MiB in all. errors as of opening, writing, reading */
rp_err rp_flash_measure(const char *folder, double *write_rate, double *read_rate) RP_MUST_CHECK;

#endif
