/* A push to several boards, at most `at_once` of them at a time. */
#ifndef RP_PUSH_SEVERAL_H
#define RP_PUSH_SEVERAL_H

#include "push/push.h"

enum { RP_PUSH_AT_ONCE_MAX = 64 };

typedef struct {
    rp_push_options each; /* without `board`; its functions are called by one thread at a time */
    const rp_roster_entry *boards; /* borrowed */
    uint32_t count, at_once;       /* 1 to RP_PUSH_AT_ONCE_MAX */
    /* The result of a board, as rp_push_to() reports it. `each.context` is its context. */
    void (*done)(void *context, const rp_roster_entry *board, const rp_Pushed *said, rp_err err);
} rp_push_several;

/* Boards begin in their order. After an error of a BUNDLE, or INTERRUPTED, no further board begins,
 * and those that have begun go on to their end. Boards that dial this host go in turn,
 * because one listener at a time can have its port.
 * errors  the first one of rp_push_to(); MEMORY: a thread does not start */
rp_err rp_push_to_several(const rp_push_several *several) RP_MUST_CHECK;

#endif
