/* Numbers for names: the first new name is 0, the next 1, and so on. */
#ifndef RP_ONNX_SYMBOLS_H
#define RP_ONNX_SYMBOLS_H

#include "base/arena.h"

typedef struct {
    rp_arena *arena;
    uint32_t count, room, slots;
    const char **name; /* by number; each name is copied */
    uint32_t *slot;    /* 1 + number, open addressing */
} rp_onnx_symbols;

void rp_onnx_symbols_init(rp_onnx_symbols *symbols, rp_arena *arena);
/* The number of a name, which is new if it was unknown. errors MEMORY */
rp_err rp_onnx_symbols_add(rp_onnx_symbols *symbols, const char *name, uint32_t *out) RP_MUST_CHECK;
/* The number of a name; UINT32_MAX if it is unknown. */
uint32_t rp_onnx_symbols_find(const rp_onnx_symbols *symbols, const char *name);

#endif
