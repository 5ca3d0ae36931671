/* A fault is an event with a class. fault_remedy.c decides what to do about it, in the state
 * `recover`. */
#ifndef RP_CONTROL_FAULT_H
#define RP_CONTROL_FAULT_H

#include "wire/frame.h"

enum { RP_FAULT_TEXT = 512 };

typedef struct {
    rp_err err; /* RP_OK: no fault */
    rp_FaultClass fault_class;
    uint32_t board;    /* RP_NO_BOARD: no particular board */
    int64_t silent_ns; /* time since the board was last heard, or since the last progress, when the
                          fault was noticed */
    char text[RP_FAULT_TEXT];
} rp_controller_fault;

/* Returns the class of an error. `board`: the error concerns one board or the path to it. `begun`:
 * training has begun, so the user's input was valid, and a full disk, for example, is no longer a
 * user error. DATA, a damaged sample, stays a user error. */
rp_FaultClass rp_fault_classify(rp_err err, bool board, bool begun);

/* The class as in the wire's and the log's texts: "transient". */
const char *rp_fault_class_name(rp_FaultClass fault_class);

/* The error that a run ends with; `begun` as above. */
rp_err rp_fault_result(rp_err err, bool begun);

#endif
