/* The struct of a simulated federated run, for the files of this room. */
#ifndef RP_SIMSITES_VIRTUAL_OWN_H
#define RP_SIMSITES_VIRTUAL_OWN_H

#include <sys/types.h>

#include "simsites/virtual.h"
#include "sites/asked.h"
#include "sites/state.h"

enum { RP_VIRTUAL_PATH = 4096 };

/* A site's process. FAILING and ENDING: it ends with `code` after `left_ns`. */
typedef enum {
    RP_VIRTUAL_NONE,
    RP_VIRTUAL_FAILING,
    RP_VIRTUAL_ENDING,
    RP_VIRTUAL_START,
    RP_VIRTUAL_DOWN,
    RP_VIRTUAL_TRAIN,
    RP_VIRTUAL_UP,
    RP_VIRTUAL_ENDED
} rp_virtual_phase;

/* Whether a site has the state of a round, as the simulation knows it. UNSURE: the run may have
 * removed it with a damaged result. */
typedef enum { RP_VIRTUAL_ABSENT, RP_VIRTUAL_UNSURE, RP_VIRTUAL_SAVED } rp_virtual_saved;

typedef struct {
    rp_virtual_phase phase;
    double left_ns; /* of the phase, at full speed */
    int code;       /* of its end */
    uint64_t round; /* of its folder; 0: it has none */
    double trained; /* share of the round's steps that its checkpoint has */
    char in[RP_SITES_DIGEST];
    rp_standin_state state; /* from which it trains */
    char given[RP_VIRTUAL_PATH], out[RP_VIRTUAL_PATH];
    char kept[RP_VIRTUAL_PATH]; /* folder of what it keeps; "": no round has begun */
    rp_virtual_saved *saved;    /* [rounds + 1] */
    uint64_t *from;             /* [rounds + 1]: round of the state with which it trained a round,
                                   or RP_SITE_NO_ROUND */
    int64_t told_ns;            /* 0: it was not told to end */

    /* what faults do to it */
    bool gone;                                    /* for good */
    bool loses_all;                               /* with all states; false: with the newest */
    uint32_t damages, down_outs, up_outs, stills; /* faults in effect */
    int64_t away_until_ns;
    double slow; /* times as long; 1: as planned */
} rp_virtual_site;

struct rp_virtual {
    const rp_sim_sites_subject *subject;
    const rp_sim_faults *faults; /* sorted by time */
    rp_eventlog *log;
    rp_clock clock;
    rp_rng draw;
    rp_virtual_site *site; /* [sites] */
    uint32_t sites;

    uint32_t begun; /* faults that have begun */
    bool *over;     /* [faults]: its effect has ended */
    uint32_t kind[RP_SIM_FAULT_KINDS];
    uint32_t kills[RP_FEDERATION_AT_STATES];

    bool scoring, score_ended;
    int64_t score_ns; /* its end */
    char scores[RP_VIRTUAL_PATH];

    rp_virtual_host host;
    bool killed;
    uint32_t armed; /* states after which the host is killed; 0: none */
    char log_path[RP_VIRTUAL_PATH + 16];
    off_t log_bytes; /* before the lines of the round */
};

/* As rp_virtual_now_ns(). */
static inline int64_t rp_virtual_time_ns(const rp_virtual *v) {
    return rp_clock_now_ns(&v->clock) - RP_VIRTUAL_BEGIN_NS;
}

/* virtual_site.c: the site's ring saves its state, from which it goes on after a restart. */
void rp_virtual_keep_checkpoint(rp_virtual *v, uint32_t index);
/* Ends the process of a site with this exit code. */
void rp_virtual_end_site(rp_virtual *v, uint32_t index, int code);
/* virtual_kept.c: begins a round of a site with options of `sites`: makes its start from the
 * weights that it was given and the state that it has. errors IO; FORMAT: it has another state than
 * the simulation knows of */
rp_err rp_virtual_begin_kept(rp_virtual *v, uint32_t index) RP_MUST_CHECK;
/* Trains the round, writes its result and saves the state. errors IO, FORMAT */
rp_err rp_virtual_train_kept(rp_virtual *v, uint32_t index) RP_MUST_CHECK;
/* Its result is damaged, so the run removes its state of the round when it reads the result. */
void rp_virtual_note_damage(rp_virtual *v, uint32_t index);
/* A site that was lost comes back without its states, or with an old one. errors IO */
rp_err rp_virtual_lose_kept(rp_virtual *v, uint32_t index) RP_MUST_CHECK;

/* Begins the next phase of a round, or ends it. errors IO, FORMAT */
rp_err rp_virtual_next_phase(rp_virtual *v, uint32_t index) RP_MUST_CHECK;
/* Writes the score. errors IO */
rp_err rp_virtual_end_score(rp_virtual *v) RP_MUST_CHECK;

#endif
