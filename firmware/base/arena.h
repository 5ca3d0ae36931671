/* The project's only malloc: named arenas with a size limit, freed as a whole.
 *
 * There are three lifetimes: boot (configuration, model), plan (stage, versions, slots) and parcel
 * (a fixed pool). After rp_arena_seal() an allocation is a programming error, so the step loop
 * cannot allocate. The environment variable RP_FAIL_AT=n makes the n-th allocation of the process
 * fail, for tests of out-of-memory paths. */
#ifndef RP_BASE_ARENA_H
#define RP_BASE_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

typedef struct rp_arena_block rp_arena_block;

typedef struct {
    const char *name;   /* borrowed, for messages */
    size_t limit_bytes; /* 0 = no limit */
    size_t used_bytes;  /* sum of the requested sizes, each rounded up to 16 */
    bool sealed;
    rp_arena_block *blocks; /* newest first */
} rp_arena;

void rp_arena_init(rp_arena *arena, const char *name, size_t limit_bytes);

/* Frees everything; accepts a zeroed arena; the arena may be initialised again. */
void rp_arena_finish(rp_arena *arena);

/* `count` zeroed objects of `size` bytes, aligned to 64.
 * errors  MEMORY when the product overflows, the limit is passed or the system refuses */
rp_err rp_arena_alloc(rp_arena *arena, size_t count, size_t size, void **out) RP_MUST_CHECK;

/* Typed form: T *p; RP_TRY(RP_ARENA_NEW(&arena, count, &p)); */
#define RP_ARENA_NEW(arena, count, out)                                                            \
    rp_arena_alloc((arena), (count), sizeof **(out), (void **)(out))

/* Copies of text. `bytes` excludes the terminating 0, which is added. */
rp_err rp_arena_text(rp_arena *arena, const char *text, size_t bytes, char **out) RP_MUST_CHECK;
rp_err rp_arena_string(rp_arena *arena, const char *text, char **out) RP_MUST_CHECK;
rp_err rp_arena_printf(rp_arena *arena, char **out, const char *format, ...) RP_MUST_CHECK
    RP_PRINTF(3, 4);

/* After this call an allocation aborts the process, until the arena is finished. */
void rp_arena_seal(rp_arena *arena);

/* Like RP_FAIL_AT, but counted from this call; 0 means that no allocation fails. For tests that run
 * in one process; rp_arena_has_failed() says whether that allocation was reached. */
void rp_arena_fail_at(long allocation);
bool rp_arena_has_failed(void);

/* Allocates one block outside the arenas, for messages: they are created and freed during a run and
 * may pass from one thread to another. Aligned to 64, not zeroed; counted by RP_FAIL_AT.
 * errors  MEMORY */
rp_err rp_block_new(size_t bytes, void **out) RP_MUST_CHECK;
void rp_block_free(void *block);

/* Checked sum of sizes. Returns false on overflow and leaves *out unchanged. */
bool rp_add_size(size_t a, size_t b, size_t *out) RP_MUST_CHECK;

#endif
