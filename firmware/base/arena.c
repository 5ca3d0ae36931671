#include "base/arena.h"

#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGN = 64, FIRST_BLOCK_BYTES = 4 * 1024, BLOCK_BYTES = 64 * 1024 };

struct rp_arena_block {
    rp_arena_block *next;
    void *memory; /* as returned by the system; the aligned block starts inside it */
    size_t bytes; /* size without the header */
    size_t used;
};

/* Counts down to the allocation that has to fail, in any thread. 0 and below: none fails. LONG_MIN:
 * the environment has not been read yet. */
static atomic_long fail_countdown = LONG_MIN;

static bool must_fail(void) {
    long left = atomic_load(&fail_countdown);
    if (left == LONG_MIN) {
        const char *text = getenv("RP_FAIL_AT");
        long first = text ? strtol(text, NULL, 10) : 0;
        (void)atomic_compare_exchange_strong(&fail_countdown, &left, first);
    }
    return atomic_load(&fail_countdown) > 0 && atomic_fetch_sub(&fail_countdown, 1) == 1;
}

void rp_arena_fail_at(long allocation) {
    atomic_store(&fail_countdown, allocation);
}

bool rp_arena_has_failed(void) {
    const long left = atomic_load(&fail_countdown);
    return left <= 0 && left != LONG_MIN;
}

static bool mul_size(size_t a, size_t b, size_t *out) {
    size_t product;
    if (__builtin_mul_overflow(a, b, &product)) {
        return false;
    }
    *out = product;
    return true;
}

bool rp_add_size(size_t a, size_t b, size_t *out) {
    size_t sum;
    if (__builtin_add_overflow(a, b, &sum)) {
        return false;
    }
    *out = sum;
    return true;
}

void rp_arena_init(rp_arena *arena, const char *name, size_t limit_bytes) {
    *arena = (rp_arena){.name = name, .limit_bytes = limit_bytes};
}

void rp_arena_finish(rp_arena *arena) {
    while (arena->blocks) {
        rp_arena_block *next = arena->blocks->next;
        free(arena->blocks->memory);
        arena->blocks = next;
    }
    arena->used_bytes = 0;
    arena->sealed = false;
}

void rp_arena_seal(rp_arena *arena) {
    arena->sealed = true;
}

static size_t header_bytes(void) {
    return (sizeof(rp_arena_block) + ALIGN - 1) / ALIGN * ALIGN;
}

/* Each block is twice as large as the last, up to BLOCK_BYTES, so a small arena stays small. */
static size_t next_block(const rp_arena *arena) {
    const size_t bytes = arena->blocks ? 2 * arena->blocks->bytes : FIRST_BLOCK_BYTES;
    return bytes < BLOCK_BYTES ? bytes : BLOCK_BYTES;
}

/* calloc() gets zeroed pages, which the system provides page by page as they are used. */
static rp_arena_block *add_block(rp_arena *arena, size_t bytes) {
    size_t total;
    if (!rp_add_size(bytes, header_bytes() + ALIGN, &total)) {
        return NULL;
    }
    void *memory = calloc(1, total);
    if (!memory) {
        return NULL;
    }
    rp_arena_block *block = (void *)(((uintptr_t)memory + ALIGN - 1) / ALIGN * ALIGN);
    *block = (rp_arena_block){.next = arena->blocks, .memory = memory, .bytes = bytes};
    arena->blocks = block;
    return block;
}

rp_err rp_arena_alloc(rp_arena *arena, size_t count, size_t size, void **out) {
    RP_ASSERT(!arena->sealed);
    size_t bytes;
    size_t rounded;
    if (!mul_size(count, size, &bytes) || !rp_add_size(bytes, ALIGN - 1, &rounded)) {
        return rp_fail(RP_ERR_MEMORY, "arena %s: %zu x %zu bytes overflow", arena->name, count,
                       size);
    }
    rounded = rounded / ALIGN * ALIGN;
    size_t used;
    if (!rp_add_size(arena->used_bytes, rounded, &used) ||
        (arena->limit_bytes && used > arena->limit_bytes)) {
        return rp_fail(RP_ERR_MEMORY, "arena %s: %zu bytes more would exceed its limit of %zu",
                       arena->name, rounded, arena->limit_bytes);
    }
    rp_arena_block *block = arena->blocks;
    if (!block || block->bytes - block->used < rounded) {
        block = must_fail()
                    ? NULL
                    : add_block(arena, rounded > next_block(arena) ? rounded : next_block(arena));
        if (!block) {
            return rp_fail(RP_ERR_MEMORY, "arena %s: the system has no memory for %zu bytes",
                           arena->name, rounded);
        }
    } else if (must_fail()) {
        return rp_fail(RP_ERR_MEMORY, "arena %s: RP_FAIL_AT", arena->name);
    }
    void *memory = (char *)block + header_bytes() + block->used;
    block->used += rounded;
    arena->used_bytes = used;
    *out = memory;
    return RP_OK;
}

rp_err rp_arena_text(rp_arena *arena, const char *text, size_t bytes, char **out) {
    size_t total;
    void *copy;
    if (!rp_add_size(bytes, 1, &total)) {
        return rp_fail(RP_ERR_MEMORY, "arena %s: text too long", arena->name);
    }
    rp_err err = rp_arena_alloc(arena, total, 1, &copy);
    if (err != RP_OK) {
        return err;
    }
    memcpy(copy, text, bytes);
    *out = copy;
    return RP_OK;
}

rp_err rp_arena_string(rp_arena *arena, const char *text, char **out) {
    return rp_arena_text(arena, text, strlen(text), out);
}

rp_err rp_arena_printf(rp_arena *arena, char **out, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (length < 0) {
        return rp_fail(RP_ERR_FORMAT, "arena %s: text cannot be formatted", arena->name);
    }
    void *text;
    rp_err err = rp_arena_alloc(arena, (size_t)length + 1, 1, &text);
    if (err != RP_OK) {
        return err;
    }
    va_start(args, format);
    (void)vsnprintf(text, (size_t)length + 1, format, args);
    va_end(args);
    *out = text;
    return RP_OK;
}

rp_err rp_block_new(size_t bytes, void **out) {
    if (must_fail() || posix_memalign(out, ALIGN, bytes) != 0) {
        return rp_fail(RP_ERR_MEMORY, "the system has no memory for a block of %zu bytes", bytes);
    }
    return RP_OK;
}

void rp_block_free(void *block) {
    free(block);
}
