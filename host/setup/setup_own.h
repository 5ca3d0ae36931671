/* Inside of the arrangement; only for the files of this room. */
#ifndef RP_SETUP_SETUP_OWN_H
#define RP_SETUP_SETUP_OWN_H

#include "measure/measure.h"
#include "setup/arrangement.h"
#include "setup/next_setup.h"

/* links.codec: auto, at pauses: codecs that wait for empty pipes. */
typedef struct {
    rp_codec (*next)[2]; /* by boundary; room for any ring. NULL: nothing has waited yet */
    bool differ;         /* `next` is not what is in effect */
    bool measured;       /* wires that are not emulated have been looked at */
} rp_codecs_waiting;

struct rp_arrangement {
    rp_arena *arena; /* of the run */
    rp_ring *ring;
    rp_folder *folder;
    const rp_position *position;
    rp_measure *measure;
    const char *resume, *given_path; /* NULL: not said */
    bool trains, evaluates, profiles;
    bool has_begun; /* boards have been loaded once: the ring stays as it is chosen */

    rp_runfile opened;       /* as it was read; nothing of it changes */
    rp_setup now;            /* what the ring runs with, or will with the next plan */
    rp_setup_arrays *arrays; /* of `now` */
    rp_runfile run;          /* as it runs: it follows `now` */
    rp_codecs_waiting codecs;
    char *schedule_words; /* why this schedule; or NULL */
    char *plan_words;     /* why these boards, where the planner chose them; or NULL */

    /* advance: auto */
    bool advance_chosen;
    rp_advance_choice advance;
    uint32_t advance_max; /* that the boards have memory for, as far as is known */

    /* in force */
    rp_plan *plan;       /* of the assignment; NULL before the first */
    rp_plan *given;      /* by a person: then no other is made */
    rp_plan *former;     /* of shared stages, as a run that goes on had it; NULL: it had none */
    rp_arena plan_arena; /* of `plan`, unless it is given, and of what is read off it: */
    rp_cut plan_cut;
    char *plan_text;  /* every board gets it */
    char *model_text; /* every board gets it; NULL: it is not written yet */
};

/* ---- current_setup.c: the only writer of `now`
 * ---------------------------------------------------- */

/* The setup is in force, and the run file as it runs follows. Its arrays are copied; it may be
 * `now` itself. */
void rp_arrangement_put(rp_arrangement *a, const rp_setup *next);
/* .. with all that follows from another one: the ring has its boards in their order, run.yaml gets
 * choices that hold for the whole run, and the log says why (NULL: it says nothing). errors MEMORY,
 * IO, LIMIT */
rp_err rp_arrangement_take(rp_arrangement *a, const rp_setup *next,
                           const rp_setup_why *why) RP_MUST_CHECK;

/* ---- apply_choice.c: questions of next_setup.h about this run
 * ------------------------------------------- */

/* What next_setup.h is to know; its names lie in `arena`. errors MEMORY */
rp_err rp_arrangement_facts(const rp_arrangement *a, rp_arena *arena,
                            rp_setup_facts *out) RP_MUST_CHECK;
/* The layers' seconds are those of the boards that have them by `now`. */
void rp_arrangement_measure_cut(rp_arrangement *a);

/* ---- others ---------------------------------------------------------------------------------- */

/* plan.c: what was measured of the boards, or at least what they have said of themselves, in
 * `bare`. errors MEMORY */
rp_err rp_arrangement_know_boards(rp_arrangement *a, rp_arena *arena, rp_profile *bare,
                                  const rp_profile **out) RP_MUST_CHECK;
/* codec_changes.c: bytes a second from board to board, [boards^2], as far as they are known; of all
 * wires, or of those that were full in a segment of so many seconds. */
void rp_arrangement_find_rates(const rp_arrangement *a, bool full_only, double segment_s,
                               double *rate);

#endif
