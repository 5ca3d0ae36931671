/* A push to several boards, at most `at_once` of them concurrently. */
#ifndef RP_PUSH_SEVERAL_H
#define RP_PUSH_SEVERAL_H

#include "push/push.h"

enum { RP_PUSH_AT_ONCE_MAX = 64 };

typedef struct {
    rp_push_options each;          /* without `board`; calls of its functions are serialised */
    const rp_roster_entry *boards; /* borrowed */
    uint32_t count, at_once;       /* 1 to RP_PUSH_AT_ONCE_MAX */
    /* Gets the result of rp_push_to() for a board, and `each.context`. */
    void (*done)(void *context, const rp_roster_entry *board, const rp_Pushed *said, rp_err err);
} rp_push_several;

/* Starts boards in order. After an error of a BUNDLE, or INTERRUPTED, no further board is started,
 * but those already started continue to their end. Boards that dial this host are served in turn,
 * because only one listener can use the port. errors  the first one of rp_push_to(); MEMORY: a
 * thread cannot start */
rp_err rp_push_to_several(const rp_push_several *several) RP_MUST_CHECK;

#endif
