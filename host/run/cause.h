/* Why a board of a roster does not do what is asked of it, in words for the person at the host. The
 * rooms `greet` and `ask` find it out; others show it. */
#ifndef RP_RUN_CAUSE_H
#define RP_RUN_CAUSE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

enum { RP_CAUSE_BYTES = 900 };

typedef struct {
    rp_err err;    /* REFUSED: wrong keys; OK: the board answers and is free; else FAULT */
    uint64_t run;  /* that holds it; 0 = none, or not known */
    bool hopeless; /* waiting does not help: a person has to change something */
    char text[RP_CAUSE_BYTES]; /* after the board's name, as in "left: nothing answers at .." */
} rp_cause;

#endif
