/* The run that a message belongs to, and the run's term.
 *
 * The id is random and stays with a run folder. The term grows with every start of a controller and
 * with every assignment. An end that has seen a newer term of a run refuses older ones: they come
 * from a controller that was replaced, or are old messages kept by the network. */
#ifndef RP_WIRE_IDENTITY_H
#define RP_WIRE_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    uint64_t id; /* 0: no run */
    uint32_t term;
} rp_run_identity;

/* The newest term of each of the last few runs. All zeros: no run is known. */
enum { RP_TERMS_MAX = 8 };
typedef struct {
    rp_run_identity seen[RP_TERMS_MAX];
    uint32_t next; /* the entry that the next new run overwrites */
} rp_terms;

/* The newest known term of this run; 0 if the run is not known. */
uint32_t rp_terms_newest(const rp_terms *terms, uint64_t id);
/* Remembers a term; false if a newer one is known. Always admits a message of no run. */
bool rp_terms_admit(rp_terms *terms, rp_run_identity run);

#endif
