/* Why a board does not answer: derived from known facts, as text. */
#ifndef RP_GREET_CAUSE_H
#define RP_GREET_CAUSE_H

#include "greet/greet.h"
#include "greet/probe.h"
#include "run/cause.h"

/* Writes why a board has not answered. `listen`: where boards that dial find this host, or NULL.
 * If `came` is SILENT, its address is tried, which takes about a second, or as long as the
 * resolver. */
void rp_cause_of_silence(const rp_roster_entry *board, const char *listen, rp_greet_state came,
                         rp_cause *out);
/* A few words for a list of boards; for OPEN: its agent did not answer the greeting. */
const char *rp_cause_of_probe(rp_probe_state state);
/* True: the board's address cannot be reached; false: it accepts a connection. Takes as long as
 * rp_cause_of_silence(). */
bool rp_cause_of_address(const rp_roster_entry *board, rp_cause *out);
/* Writes which run or host uses the board. `holder`: its answer to ASK HOLDER. */
void rp_cause_of_holder(const rp_Ordered *holder, rp_cause *out);
/* A run or a host uses the board. */
bool rp_cause_is_held(const rp_Ordered *holder);

/* Why a board of a run is silent, according to its link, in order of increasing certainty. */
typedef enum {
    RP_SILENT_UNKNOWN,
    RP_SILENT_UNANSWERED, /* its machine accepts connections, but its agent does not answer */
    RP_SILENT_BROKEN_OFF, /* handshakes at its address are broken off, perhaps because of another
                             key */
    RP_SILENT_REFUSES     /* it refuses the handshake */
} rp_silent_why;
/* `was_met`: the board has been in the run, so it does not break off handshakes itself. */
rp_silent_why rp_cause_of_link(const rp_link *link, bool was_met);
/* errors REFUSED: the board refuses the handshake, or every handshake is broken off; FAULT: its
 * machine accepts connections but its agent does not answer */
rp_err rp_cause_fail_silent(rp_silent_why why, const char *name, const char *endpoint,
                            const char *public_text) RP_MUST_CHECK;

/* Writes "desk: runs/first (10.0.0.2:40112)", as far as the board knows. */
void rp_cause_name_host(const rp_Ordered *holder, char *out, size_t bytes);

#endif
