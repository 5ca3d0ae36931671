/* The result of a question to a board, in words: all of these words stand here. */
#ifndef RP_ASK_CAUSE_H
#define RP_ASK_CAUSE_H

#include "run/cause.h"
#include "run/roster.h"
#include "wire/frame.h"

/* Results of a question. */
typedef enum {
    RP_ASKED_ANSWERED,
    RP_ASKED_SILENT,      /* nothing answers at its address */
    RP_ASKED_NOT_DIALLED, /* a board that dials has not dialled */
    RP_ASKED_REFUSED,     /* keys do not fit */
    RP_ASKED_OLD,         /* it is there, and its software knows no questions */
    RP_ASKED_DUMB         /* the key fits, and it says nothing at all */
} rp_asked;

/* Writes why a board has not answered. `listen`: where boards that dial find this host, or NULL.
 * When `came` is SILENT, the address is tried, which takes a second or as long as the resolver. */
void rp_cause_of_silence(const rp_roster_entry *board, const char *listen, rp_asked came,
                         rp_cause *out);
/* True: the board's address cannot be reached; false: a connection is accepted there. Takes as long
 * as rp_cause_of_silence(). */
bool rp_cause_of_address(const rp_roster_entry *board, rp_cause *out);
/* Writes who has the board. `holder` is the board's answer to ASK HOLDER. */
void rp_cause_of_holder(const rp_Ordered *holder, rp_cause *out);
/* Whether a run or a host has the board. */
bool rp_cause_is_held(const rp_Ordered *holder);
/* "desk: runs/first (10.0.0.2:40112)", as much of it as the board knows. */
void rp_cause_name_host(const rp_Ordered *holder, char *out, size_t bytes);

#endif
