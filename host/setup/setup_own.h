/* The struct of the arrangement, for the files of this room. */
#ifndef RP_SETUP_SETUP_OWN_H
#define RP_SETUP_SETUP_OWN_H

#include "measure/measure.h"
#include "setup/arrangement.h"
#include "setup/next_setup.h"

/* links.codec: auto, at pauses: codecs that wait until the pipes are empty. */
typedef struct {
    rp_codec (*next)[2]; /* by boundary, with room for any ring */
    bool differ;         /* `next` differs from the codecs in effect */
    bool measured;       /* real wires have been measured */
} rp_codecs_waiting;

struct rp_arrangement {
    rp_arena *arena; /* lives as long as the run */
    rp_ring *ring;
    rp_folder *folder;
    const rp_position *position;
    rp_measure *measure;
    const char *resume, *given_path; /* NULL: not given */
    bool trains, evaluates, profiles;
    bool has_begun; /* boards have been loaded: boards and order are fixed */

    rp_runfile opened;       /* as read; never changed */
    rp_setup now;            /* the setup in force, or for the next plan */
    rp_setup_arrays *arrays; /* arrays of `now` */
    rp_runfile run;          /* the run file with `now` */
    rp_codecs_waiting codecs;
    char *schedule_words; /* why this schedule; NULL: not chosen */
    char *plan_words;     /* why these boards; NULL: not chosen */

    /* advance: auto */
    bool advance_chosen;
    rp_advance_choice advance;
    uint32_t advance_max; /* limit from the boards' memory, as far as known */

    /* in force */
    rp_plan *plan;       /* of the assignment; NULL before the first */
    rp_plan *given;      /* by the user; no other is made */
    rp_plan *former;     /* plan with shared stages of the resumed run; NULL: none */
    rp_arena plan_arena; /* memory of `plan`, unless given, and of the next two */
    rp_cut plan_cut;
    char *plan_text;  /* sent to every board */
    char *model_text; /* sent to every board; NULL: not written yet */
};

/* ---- current_setup.c: the only writer of `now` ----------------------------------------------- */

/* Puts a setup into force and updates the run file. Copies its arrays; `next` may be `now`
 * itself. */
void rp_arrangement_put(rp_arrangement *a, const rp_setup *next);
/* Like _put, and also reorders the ring, writes choices for the whole run to run.yaml, and logs the
 * reasons (NULL: none). errors MEMORY, IO, LIMIT */
rp_err rp_arrangement_take(rp_arrangement *a, const rp_setup *next,
                           const rp_setup_why *why) RP_MUST_CHECK;

/* ---- apply_choice.c: questions of next_setup.h about this run -------------------------------- */

/* Collects the facts for next_setup.h; names are in `arena`. errors MEMORY */
rp_err rp_arrangement_facts(const rp_arrangement *a, rp_arena *arena,
                            rp_setup_facts *out) RP_MUST_CHECK;
/* Updates the layers' seconds to the boards that have the layers by `now`. */
void rp_arrangement_measure_cut(rp_arrangement *a);

/* ---- others ---------------------------------------------------------------------------------- */

/* plan.c: returns the measured profile, or else `bare` with what boards reported about themselves.
 * errors MEMORY */
rp_err rp_arrangement_know_boards(rp_arrangement *a, rp_arena *arena, rp_profile *bare,
                                  const rp_profile **out) RP_MUST_CHECK;
/* codec_changes.c: rate[boards^2]: bytes per second from board to board, 0 where unknown.
 * `full_only`: only of wires that were full in a segment of `segment_s` seconds. */
void rp_arrangement_find_rates(const rp_arrangement *a, bool full_only, double segment_s,
                               double *rate);

#endif
