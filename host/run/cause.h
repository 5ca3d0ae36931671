/* Why a board of a roster refuses or does not answer, as text for the user. The rooms `greet` and
 * `ask` find the cause; other rooms show it. */
#ifndef RP_RUN_CAUSE_H
#define RP_RUN_CAUSE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

enum { RP_CAUSE_BYTES = 900 };

typedef struct {
    rp_err err;    /* REFUSED: wrong keys; OK: the board answers and is free; else FAULT */
    uint64_t run;  /* run that holds the board; 0 = no run, or unknown */
    bool hopeless; /* waiting does not help: the user has to change something */
    char text[RP_CAUSE_BYTES]; /* is shown after the board's name: "left: nothing answers at .." */
} rp_cause;

#endif
