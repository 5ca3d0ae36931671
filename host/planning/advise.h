/* Which boards of a ring, in which order round it, would train fastest: more boards share the work,
 * and fill and drain longer; a slow one, or one behind a slow wire, may cost more than it gives. */
#ifndef RP_PLANNING_ADVISE_H
#define RP_PLANNING_ADVISE_H

#include "planning/predict.h"

enum { RP_ADVISE_BOARDS_MAX = 64 };

typedef struct {
    uint32_t count;
    uint32_t place[RP_ADVISE_BOARDS_MAX]; /* of the ring as it is, in the order of this one */
    double step_s;                        /* by replay */
    char limits[160];
} rp_board_choice;

typedef struct {
    bool is_known; /* else nothing is said: a place means something there, see below */
    rp_board_choice now, best;
    rp_board_choice next; /* the best with other boards than `best`; count 0: there is none */
    double micro_s[RP_ADVISE_BOARDS_MAX]; /* of `now`, by place: of a microbatch, both ways */
    uint32_t tried;
} rp_board_advice;

/* All choices of up to five boards; of more, from the ring as it is by leaving out one, and by
 * exchanging two, as long as that gains. Each has its own balanced cut; the best few by bound are
 * replayed. Not known where the run file says something of places (hops, codecs that differ), of
 * interleaved stages, and where a board was not measured. Memory is not looked at.
 * errors  those of rp_predict() but USAGE and FAULT, with which a choice is left out */
rp_err rp_advise_boards(rp_arena *arena, const rp_runfile *run, const rp_profile *profile,
                        double delay_s, rp_board_advice *out) RP_MUST_CHECK;

/* In two or three lines, for people. `name`: of the boards as the ring is. */
void rp_advise_say(FILE *file, const rp_board_advice *advice, const char *const *name);

#endif
