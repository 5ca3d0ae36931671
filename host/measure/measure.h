/* What is measured of boards, of the wires between them, and of round trips to them. `drift.h` and
 * `losses.h` are about the plan in force.
 *
 * The caller sends the orders of a state and says what has come; this room says whom to ask, what
 * to ask for, and when all is known. It keeps no clock: the ring has the time of the round. */
#ifndef RP_MEASURE_MEASURE_H
#define RP_MEASURE_MEASURE_H

#include "planning/joint.h"
#include "planning/split_choice.h"
#include "record/record.h"
#include "ring/ring.h"

typedef struct rp_measure rp_measure;

/* All pointers are borrowed until rp_measure_close(). */
typedef struct {
    const rp_runfile *run; /* its choices may change between two calls */
    rp_ring *ring;
    const rp_clock *clock;
    const char *profiles; /* folder in which profiles are kept for other runs; NULL: they are not */
    bool only_profiles;   /* PROFILE: all codecs are measured, and no kept profile is used */
    bool has_real_wires;  /* the links go over real wires, unless the run file emulates others */
} rp_measure_needs;

/* Lives in `arena`, with room for all boards and spares of the run file.
 * errors  MEMORY */
rp_err rp_measure_open(rp_arena *arena, const rp_measure_needs *needs,
                       rp_measure **out) RP_MUST_CHECK;
/* After the links are closed, which may still have messages of a measurement. Can be called twice,
 * and with NULL. */
void rp_measure_close(rp_measure *measure);

/* ---- facts ----------------------------------------------------------------------------------- */

/* There is a profile of all boards: measured, or read. */
bool rp_measure_has_profile(const rp_measure *measure);
/* Empty until there is one. Its places are those of the last rp_measure_place(). */
const rp_profile *rp_measure_profile(const rp_measure *measure);
/* [2 * layers] forward and backward seconds of each layer, on the board that has it; all 0 without
 * a profile. */
const double *rp_measure_layer_seconds(const rp_measure *measure);
/* Seconds from board to board, as measured last; 0 before. */
double rp_measure_delay_s(const rp_measure *measure);

/* ---- the profile ----------------------------------------------------------------------------- */

/* Reads a profile.json instead of measuring. errors  USAGE: file and key; MEMORY */
rp_err rp_measure_read_profile(rp_measure *measure, const char *path) RP_MUST_CHECK;
/* The run's microbatch has been chosen. */
void rp_measure_set_micro(rp_measure *measure, uint32_t micro);
/* The ring may have other boards, or other places, than before. */
void rp_measure_place(rp_measure *measure);
/* A cut has been chosen: the layers' seconds are those of the boards that have them. */
void rp_measure_take_cut(rp_measure *measure, const rp_cut *cut);
/* What the planner is asked, with any boards and order, within plan.seconds; places the profile. */
rp_joint_ask rp_measure_joint_ask(rp_measure *measure, bool codecs_open);
rp_split_ask rp_measure_split_ask(rp_measure *measure);

/* What the boards have reported of the plan in force, for the summary: `stage`, `share`,
 * `micro_done`, `link` and `wire`, in `arena`. Nothing, when `plan` is NULL or there are no boards.
 * errors  MEMORY */
rp_err rp_measure_tell(const rp_measure *measure, const rp_plan *plan, rp_arena *arena,
                       rp_record_end *out) RP_MUST_CHECK;

/* ---- measuring boards and wires -------------------------------------------------------------- */

/* Forgets the last measurement and looks for profiles of former runs. `cores`: how many cores the
 * boards share; 0: each board has its own. If no profile was kept, one board for each core first
 * builds the layers' kernels, all together. errors  MEMORY */
rp_err rp_measure_begin(rp_measure *measure, uint32_t cores) RP_MUST_CHECK;
/* Boards build the layers' kernels, and measure nothing yet. */
bool rp_measure_is_building(const rp_measure *measure);
/* Boards measure from now on; none has answered yet. */
void rp_measure_end_building(rp_measure *measure);
/* The board has to build or to measure; else one that is alike does so for it. */
bool rp_measure_wants(const rp_measure *measure, uint32_t board);
/* It can be asked now: while a board measures, its machine does nothing else. */
bool rp_measure_may_ask(const rp_measure *measure, uint32_t board);
/* Whether all boards that build or measure have answered. *part gets the number of layers done and
 * in all, with their unit. */
bool rp_measure_are_boards_done(const rp_measure *measure, rp_sink_part *part);
/* The first board that builds or measures and has not answered; else the last one. */
uint32_t rp_measure_find_missing(const rp_measure *measure);
/* What the board has to measure: all, or a probe of what a former run has measured.
 * errors  MEMORY */
rp_err rp_measure_order(const rp_measure *measure, uint32_t board, rp_Profile *out) RP_MUST_CHECK;
/* "profiling: measuring board 2, 2 of 3 that differ" */
void rp_measure_describe_order(const rp_measure *measure, uint32_t board, char *out, size_t bytes);

typedef struct {
    bool again;     /* a former run's profile does not hold: the board has to measure all */
    char note[200]; /* why, for people; "" when not */
} rp_measure_answer;

/* Takes a board's answer; while boards build it has no values. The board is `profiled` unless
 * out->again. errors  PEER: the answer is not one to the order; MEMORY */
rp_err rp_measure_take(rp_measure *measure, uint32_t board, const rp_ProfileDone *done,
                       const rp_part *part, rp_measure_answer *out) RP_MUST_CHECK;
/* Call it once all boards are measured: measures the wires between them one by one, then those to
 * the host. *all: no wire is left. What cannot be measured stays as it was taken to be. errors  of
 * the ring; MEMORY */
rp_err rp_measure_step_wires(rp_measure *measure, bool *all) RP_MUST_CHECK;
/* A board's answer about a wire, also a late one: it counts for what the board was asked last. */
void rp_measure_take_trial(rp_measure *measure, uint32_t board, const rp_TrialDone *done);
/* All boards and wires are measured: there is a profile. */
void rp_measure_end(rp_measure *measure);

/* ---- round trips ----------------------------------------------------------------------------- */

/* None is measured yet. */
void rp_measure_begin_trips(rp_measure *measure);
/* Pings all boards. errors of rp_link_ping() */
rp_err rp_measure_ping(rp_measure *measure) RP_MUST_CHECK;
bool rp_measure_has_answered(const rp_measure *measure, uint32_t board);
/* All boards have answered. *done: `wanted` trips are measured, else the boards are pinged again.
 * errors of rp_link_ping() */
rp_err rp_measure_note_trips(rp_measure *measure, uint32_t wanted, bool *done) RP_MUST_CHECK;
/* Sets the delay from these trips or, where wires are emulated, from the run file. */
void rp_measure_take_delay(rp_measure *measure);

#endif
