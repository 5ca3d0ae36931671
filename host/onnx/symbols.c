#include "onnx/symbols.h"

#include <string.h>

void rp_onnx_symbols_init(rp_onnx_symbols *symbols, rp_arena *arena) {
    *symbols = (rp_onnx_symbols){.arena = arena};
}

/* FNV-1a. */
static uint64_t hash_of(const char *name) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (; *name; name++) {
        hash = (hash ^ (unsigned char)*name) * UINT64_C(0x100000001b3);
    }
    return hash;
}

/* The slot that holds the name, or the free one for it. */
static uint32_t *find_slot(const rp_onnx_symbols *symbols, const char *name) {
    uint32_t at = (uint32_t)(hash_of(name) & (symbols->slots - 1));
    while (symbols->slot[at] > 0 && strcmp(symbols->name[symbols->slot[at] - 1], name) != 0) {
        at = (at + 1) & (symbols->slots - 1);
    }
    return &symbols->slot[at];
}

/* At most half of the slots are used. */
static rp_err make_room(rp_onnx_symbols *symbols) {
    const uint32_t room = symbols->room > 0 ? 2 * symbols->room : 64;
    const char **name;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(symbols->arena, room, &name));
    if (symbols->count > 0) {
        memcpy(name, symbols->name, symbols->count * sizeof *name);
    }
    symbols->name = name;
    symbols->room = room;
    symbols->slots = 2 * room;
    RP_TRY(RP_ARENA_NEW(symbols->arena, symbols->slots, &symbols->slot));
    for (uint32_t i = 0; i < symbols->count; i++) {
        *find_slot(symbols, symbols->name[i]) = i + 1;
    }
fail:
    return err;
}

rp_err rp_onnx_symbols_add(rp_onnx_symbols *symbols, const char *name, uint32_t *out) {
    rp_err err = RP_OK;
    char *copy;
    if (symbols->count == symbols->room) {
        RP_TRY(make_room(symbols));
    }
    uint32_t *slot = find_slot(symbols, name);
    if (*slot == 0) {
        RP_TRY(rp_arena_string(symbols->arena, name, &copy));
        symbols->name[symbols->count++] = copy;
        *slot = symbols->count;
    }
    *out = *slot - 1;
fail:
    return err;
}

uint32_t rp_onnx_symbols_find(const rp_onnx_symbols *symbols, const char *name) {
    return symbols->slots > 0 ? *find_slot(symbols, name) - 1 : UINT32_MAX;
}
