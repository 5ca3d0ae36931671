/* A fault is an event with a class. What is done about it is decided by fault_remedy.c, in the
 * state `recover`. */
#ifndef RP_CONTROL_FAULT_H
#define RP_CONTROL_FAULT_H

#include "wire/frame.h"

enum { RP_FAULT_TEXT = 512 };

typedef struct {
    rp_err err; /* RP_OK: there is none */
    rp_FaultClass fault_class;
    uint32_t board; /* RP_NO_BOARD: of no board in particular */
    int64_t
        silent_ns; /* when it was noticed: since the board was heard, or since the last progress */
    char text[RP_FAULT_TEXT];
} rp_controller_fault;

/* The class of an error. `board`: the error is of one board or of the way to it. `begun`: training
 * has begun, so what a person wrote was good enough, and a full disk, say, is no longer his input.
 * DATA, a damaged sample, stays the user's. */
rp_FaultClass rp_fault_classify(rp_err err, bool board, bool begun);

/* As the wire's and the log's texts have it: "transient". */
const char *rp_fault_class_name(rp_FaultClass fault_class);

/* The error that a run ends with: see `begun` above. */
rp_err rp_fault_result(rp_err err, bool begun);

#endif
