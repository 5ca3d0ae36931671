/* Why a board does not answer: found from what is known of it, and put into words. */
#ifndef RP_GREET_CAUSE_H
#define RP_GREET_CAUSE_H

#include "greet/greet.h"
#include "greet/probe.h"
#include "run/cause.h"

/* Writes why a board has not answered. `listen`: where boards that dial find this host, or NULL.
 * When `came` is SILENT, the address is tried, which takes a second or as long as the resolver. */
void rp_cause_of_silence(const rp_roster_entry *board, const char *listen, rp_greet_state came,
                         rp_cause *out);
/* A few words for a list of boards; OPEN: its agent did not answer the greeting. */
const char *rp_cause_of_probe(rp_probe_state state);
/* True: the board's address cannot be reached; false: a connection is accepted there. Takes as long
 * as rp_cause_of_silence(). */
bool rp_cause_of_address(const rp_roster_entry *board, rp_cause *out);
/* Writes who has the board. `holder` is the board's answer to ASK HOLDER. */
void rp_cause_of_holder(const rp_Ordered *holder, rp_cause *out);
/* Whether a run or a host has the board. */
bool rp_cause_is_held(const rp_Ordered *holder);

/* Why a board of a run is silent, as far as its link knows. A later value is the more certain
 * one. */
typedef enum {
    RP_SILENT_UNKNOWN,
    RP_SILENT_UNANSWERED, /* its machine accepts connections, but its agent does not answer */
    RP_SILENT_BROKEN_OFF, /* handshakes at its address are broken off: perhaps another key */
    RP_SILENT_REFUSES     /* it refuses the handshake */
} rp_silent_why;
/* `was_met`: the board has been in the run, so handshakes that are broken off are not its own. */
rp_silent_why rp_cause_of_link(const rp_link *link, bool was_met);
/* errors  REFUSED: the handshake, which the board refuses or which is broken off every time;
 * FAULT: its machine accepts connections but its agent does not answer */
rp_err rp_cause_fail_silent(rp_silent_why why, const char *name, const char *endpoint,
                            const char *public_text) RP_MUST_CHECK;

/* "desk: runs/first (10.0.0.2:40112)", as much of it as the board knows. */
void rp_cause_name_host(const rp_Ordered *holder, char *out, size_t bytes);

#endif
