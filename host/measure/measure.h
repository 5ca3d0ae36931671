/* Measurements of boards, of the wires between them, and of round trips. `drift.h` and `losses.h`
 * deal with the plan in force.
 *
 * The caller sends the orders and hands over the answers; this room says which board to ask, what
 * to ask for, and when everything is known. Times come from the ring. */
#ifndef RP_MEASURE_MEASURE_H
#define RP_MEASURE_MEASURE_H

#include "planning/joint.h"
#include "planning/split_choice.h"
#include "record/record.h"
#include "ring/ring.h"

typedef struct rp_measure rp_measure;

/* All pointers are borrowed until rp_measure_close(). */
typedef struct {
    const rp_runfile *run; /* its choices may change between calls */
    rp_ring *ring;
    const rp_clock *clock;
    const char *profiles; /* folder of cached profiles; NULL: no cache */
    bool only_profiles;   /* PROFILE: measure all codecs, and ignore cached profiles */
    bool has_real_wires;  /* links use real wires, unless the run file emulates others */
} rp_measure_needs;

/* Allocates the room in `arena`, for all boards and spares of the run file.
 * errors MEMORY */
rp_err rp_measure_open(rp_arena *arena, const rp_measure_needs *needs,
                       rp_measure **out) RP_MUST_CHECK;
/* Call it after the links are closed, because they may still have messages of a measurement. Can be
 * called twice, and accepts NULL. */
void rp_measure_close(rp_measure *measure);

/* ---- facts ----------------------------------------------------------------------------------- */

/* There is a profile of all boards, measured or read. */
bool rp_measure_has_profile(const rp_measure *measure);
/* Empty without a profile. Places are those of the last rp_measure_place(). */
const rp_profile *rp_measure_profile(const rp_measure *measure);
/* [2 * layers] forward and backward seconds of each layer, on the board that has it; 0 without a
 * profile. */
const double *rp_measure_layer_seconds(const rp_measure *measure);
/* Last measured seconds from board to board; 0: not measured. */
double rp_measure_delay_s(const rp_measure *measure);

/* ---- the profile ----------------------------------------------------------------------------- */

/* Reads a profile.json instead of measuring. errors USAGE: file and key; MEMORY */
rp_err rp_measure_read_profile(rp_measure *measure, const char *path) RP_MUST_CHECK;
/* The run's microbatch has been chosen. */
void rp_measure_set_micro(rp_measure *measure, uint32_t micro);
/* Takes boards and places of the ring, which may have changed. */
void rp_measure_place(rp_measure *measure);
/* A cut has been chosen: sets the layers' seconds by the boards that have the layers. */
void rp_measure_take_cut(rp_measure *measure, const rp_cut *cut);
/* Question to the planner, with boards and order open, limited to plan.seconds; also places the
 * profile. */
rp_joint_ask rp_measure_joint_ask(rp_measure *measure, bool codecs_open);
rp_split_ask rp_measure_split_ask(rp_measure *measure);

/* Facts for the summary, as boards reported them for the plan in force: `stage`, `share`,
 * `micro_done`, `link` and `wire`, in `arena`. Nothing if `plan` is NULL or there are no boards.
 * errors MEMORY */
rp_err rp_measure_tell(const rp_measure *measure, const rp_plan *plan, rp_arena *arena,
                       rp_record_end *out) RP_MUST_CHECK;

/* ---- measuring boards and wires -------------------------------------------------------------- */

/* Forgets the last measurement and looks for cached profiles. `cores`: number of cores that the
 * boards share; 0: each board has its own. Without a cached profile, one board for each core first
 * builds the layers' kernels, all at once. errors MEMORY */
rp_err rp_measure_begin(rp_measure *measure, uint32_t cores) RP_MUST_CHECK;
/* Boards build the layers' kernels, and do not measure yet. */
bool rp_measure_is_building(const rp_measure *measure);
/* Building is over: all boards are now to measure. */
void rp_measure_end_building(rp_measure *measure);
/* The board has to build or measure itself; else an equal board does so for it. */
bool rp_measure_wants(const rp_measure *measure, uint32_t board);
/* The board can be asked now: while a board measures, its machine does nothing else. */
bool rp_measure_may_ask(const rp_measure *measure, uint32_t board);
/* All boards that build or measure have answered. *part: number of layers done and in all, with
 * their unit. */
bool rp_measure_are_boards_done(const rp_measure *measure, rp_sink_part *part);
/* The first board that has to build or measure and has not answered; else the last one. */
uint32_t rp_measure_find_missing(const rp_measure *measure);
/* Fills in what the board has to measure: everything, or a probe of its cached profile.
 * errors MEMORY */
rp_err rp_measure_order(const rp_measure *measure, uint32_t board, rp_Profile *out) RP_MUST_CHECK;
/* "profiling: measuring board 2, 2 of 3 that differ" */
void rp_measure_describe_order(const rp_measure *measure, uint32_t board, char *out, size_t bytes);

typedef struct {
    bool again;     /* the cached profile is outdated, so the board has to measure everything */
    char note[200]; /* the reason, for the user; or "" */
} rp_measure_answer;

/* Takes a board's answer, which has no values after building. The board is `profiled` unless
 * out->again. errors PEER: the answer does not fit the order; MEMORY */
rp_err rp_measure_take(rp_measure *measure, uint32_t board, const rp_ProfileDone *done,
                       const rp_part *part, rp_measure_answer *out) RP_MUST_CHECK;
/* Call it once all boards are measured: measures the wires between them one by one, then those to
 * the host. *all: all are done. A wire that cannot be measured keeps its default. errors of the
 * ring; MEMORY */
rp_err rp_measure_step_wires(rp_measure *measure, bool *all) RP_MUST_CHECK;
/* Takes a board's answer about a wire, even a late one; it counts for the last order to the
 * board. */
void rp_measure_take_trial(rp_measure *measure, uint32_t board, const rp_TrialDone *done);
/* All boards and wires are measured: completes the profile. */
void rp_measure_end(rp_measure *measure);

/* ---- round trips ----------------------------------------------------------------------------- */

/* Starts a new measurement of round trips. */
void rp_measure_begin_trips(rp_measure *measure);
/* Pings all boards. errors of rp_link_ping() */
rp_err rp_measure_ping(rp_measure *measure) RP_MUST_CHECK;
bool rp_measure_has_answered(const rp_measure *measure, uint32_t board);
/* All boards have answered a ping. *done: `wanted` trips are measured; else pings again. errors of
 * rp_link_ping() */
rp_err rp_measure_note_trips(rp_measure *measure, uint32_t wanted, bool *done) RP_MUST_CHECK;
/* Sets the delay from these trips or, if wires are emulated, from the run file. */
void rp_measure_take_delay(rp_measure *measure);

#endif
