/* Which run a message belongs to, and which start of it.
 *
 * The id is random and stays with a run folder; the term grows with every start of a controller and
 * with every assignment. An end that has heard a newer term of a run refuses an older one: that is
 * a controller that somebody has replaced, or what the network kept of it. */
#ifndef RP_WIRE_IDENTITY_H
#define RP_WIRE_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    uint64_t id; /* 0: of no run */
    uint32_t term;
} rp_run_identity;

/* The newest term of the last few runs. Zeros: none has been heard of. */
enum { RP_TERMS_MAX = 8 };
typedef struct {
    rp_run_identity seen[RP_TERMS_MAX];
    uint32_t next; /* the entry that the next new run takes */
} rp_terms;

/* The newest term of this run so far, 0 when it is not known. */
uint32_t rp_terms_newest(const rp_terms *terms, uint64_t id);
/* Remembers a term that is not older; false: it is, and nothing changes. What belongs to no run is
 * always admitted. */
bool rp_terms_admit(rp_terms *terms, rp_run_identity run);

#endif
