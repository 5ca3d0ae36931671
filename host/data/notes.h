/* Texts for the user about files that are valid but may not be intended. */
#ifndef RP_DATA_NOTES_H
#define RP_DATA_NOTES_H

#include "base/arena.h"

enum { RP_NOTES_MAX = 16, RP_NOTE_BYTES = 512 };

typedef struct {
    const char *text[RP_NOTES_MAX];
    uint32_t count; /* further notes are dropped */
} rp_notes;

/* errors  MEMORY */
rp_err rp_notes_add(rp_arena *arena, rp_notes *notes, const char *format, ...)
    RP_PRINTF(3, 4) RP_MUST_CHECK;

#endif
