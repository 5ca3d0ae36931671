/* A file for entries of one size that are not worth memory. It is taken whole when it is opened, so
 * a full disk shows then; it has no name, so nothing of it is left behind whatever happens. Reads
 * and writes pass the page cache by (O_DIRECT), which would keep in memory what is to leave it.
 *
 * Every call may block; one thread may write while another one reads. */
#ifndef RP_DEVICE_FLASH_H
#define RP_DEVICE_FLASH_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"

enum { RP_FLASH_BLOCK = 4096 }; /* places, sizes and memory of direct I/O are multiples of it */

typedef struct rp_flash rp_flash;

/* `folder`: of a file system with room for `entries` of `entry_bytes`, each rounded up to blocks.
 * errors  USAGE: no such folder, no right to write there; LIMIT: too little room, with the numbers;
 * IO; MEMORY */
rp_err rp_flash_open(rp_arena *arena, const char *folder, uint32_t entries, size_t entry_bytes,
                     rp_flash **out) RP_MUST_CHECK;
void rp_flash_close(rp_flash **flash); /* accepts NULL inside */

/* Why reads and writes go through the page cache; NULL: they do not. */
const char *rp_flash_why_cached(const rp_flash *flash);

/* Bytes [at, at + bytes) of an entry. `at` is a multiple of a block, memory is aligned to one and
 * has room for `bytes` rounded up to blocks; what fills the last block up is written, too. errors
 * DEVICE: the system refuses, or fewer bytes come or go */
rp_err rp_flash_write(rp_flash *flash, uint32_t entry, size_t at, const void *from,
                      size_t bytes) RP_MUST_CHECK;
rp_err rp_flash_read(rp_flash *flash, uint32_t entry, size_t at, void *to,
                     size_t bytes) RP_MUST_CHECK;

/* So far: what wears the flash. Of the thread that writes. */
uint64_t rp_flash_written_bytes(const rp_flash *flash);
/* What an entry takes there. Pure. */
size_t rp_flash_round(size_t entry_bytes);

/* Of this board: $RINGPIPE_FLASH, or /var/tmp. */
const char *rp_flash_folder(void);

/* Memory as direct I/O wants it: aligned, rounded up to blocks. errors MEMORY */
rp_err rp_flash_take(rp_arena *arena, size_t bytes, char **out) RP_MUST_CHECK;

/* Bytes a second that the folder's file system writes and reads, each the median of some pieces,
 * of 16 MiB in all. errors  as of opening, writing, reading */
rp_err rp_flash_measure(const char *folder, double *write_rate, double *read_rate) RP_MUST_CHECK;

#endif
