/* The engine of a simulated federated run: sites that train on a virtual clock, and faults of
 * sites, of their lines and of the host. */
#ifndef RP_SIMSITES_VIRTUAL_H
#define RP_SIMSITES_VIRTUAL_H

#include "federation/engine.h"
#include "sim/eventlog.h"
#include "sim/faults.h"
#include "simsites/subject.h"

#define RP_VIRTUAL_BEGIN_NS RP_NS_PER_S

typedef struct rp_virtual rp_virtual;

/* Opens it at virtual time 0. Everything is borrowed until the arena ends. `draw`: stream of what
 * is drawn while the run goes on. errors MEMORY */
rp_err rp_virtual_open(rp_arena *arena, const rp_sim_sites_subject *subject,
                       const rp_sim_faults *faults, rp_rng draw, rp_eventlog *log,
                       rp_virtual **out) RP_MUST_CHECK;

rp_site_engine rp_virtual_engine(rp_virtual *v);
/* The clock of the run. It shows RP_VIRTUAL_BEGIN_NS when the simulation begins, because the run
 * uses 0 for "no time". */
const rp_clock *rp_virtual_clock(const rp_virtual *v);
/* Time since the simulation began. */
int64_t rp_virtual_now_ns(const rp_virtual *v);

/* Time of the next event: work that ends, a fault that begins or ends. INT64_MAX: none. */
int64_t rp_virtual_next_ns(const rp_virtual *v);
/* Moves the clock to `now_ns`, which may not be after the next event. errors IO, FORMAT: a file of
 * the run could not be read or written */
rp_err rp_virtual_advance(rp_virtual *v, int64_t now_ns) RP_MUST_CHECK;

/* What faults have done to the host since the last call. */
typedef struct {
    bool killed;
    uint32_t interrupts;
    int64_t still_until_ns; /* the host is suspended until then; 0: it is not */
} rp_virtual_host;
rp_virtual_host rp_virtual_take_host(rp_virtual *v);
/* Whether a fault has killed the host since it began. */
bool rp_virtual_is_killed(const rp_virtual *v);
/* The host starts in this folder. */
void rp_virtual_begin_host(rp_virtual *v, const char *folder);
/* Sites that were lost for good return, without what they kept, or with an old state of it. errors
 * IO */
rp_err rp_virtual_repair(rp_virtual *v) RP_MUST_CHECK;

uint32_t rp_virtual_faults(const rp_virtual *v);             /* that have begun */
const uint32_t *rp_virtual_fault_kinds(const rp_virtual *v); /* [RP_SIM_FAULT_KINDS] of these */
/* How often the host was killed in each state: [RP_FEDERATION_AT_STATES]. */
const uint32_t *rp_virtual_kills(const rp_virtual *v);
const char *rp_virtual_state_name(rp_federation_at state);

/* The round of the state with which a site trained a round, or RP_SITE_NO_ROUND. */
uint64_t rp_virtual_from(const rp_virtual *v, uint32_t site, uint64_t round);

/* Whether this kind has an effect on sites. */
bool rp_virtual_knows(rp_sim_fault_kind kind);

#endif
