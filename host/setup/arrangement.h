/* What the ring runs with: the setup in force, the run file as it runs, the plan that the boards
 * have, and the choice of the next one by what was measured.
 *
 * The caller says when something is chosen and sends the plan; this room says what is chosen. */
#ifndef RP_SETUP_ARRANGEMENT_H
#define RP_SETUP_ARRANGEMENT_H

#include "checkpoint/position.h"
#include "folder/folder.h"
#include "measure/measure.h"
#include "planning/advance.h"
#include "run/setup.h"

typedef struct rp_arrangement rp_arrangement;

/* All pointers are borrowed until rp_arrangement_close(). */
typedef struct {
    rp_ring *ring;
    rp_folder *folder;
    const rp_position *position;      /* where the run stands */
    bool trains, evaluates, profiles; /* what the run is for; at most one of them */
    const char *resume;               /* folder of the run that goes on; NULL: none does */
    const char *plan;                 /* plan.json that a person gives; NULL: none */
} rp_arrangement_needs;

/* Lives in `arena`. errors  MEMORY */
rp_err rp_arrangement_open(rp_arena *arena, const rp_arrangement_needs *needs,
                           rp_arrangement **out) RP_MUST_CHECK;
/* Reads the run file. Then rp_arrangement_run() is valid. errors those of rp_runfile_read() */
rp_err rp_arrangement_read(rp_arrangement *a, const char *path, const char *const *set,
                           uint32_t set_count) RP_MUST_CHECK;
/* What is measured, which has the run file of here; borrowed. */
void rp_arrangement_use_measure(rp_arrangement *a, rp_measure *measure);
/* The memory of plans is given back; none of them may be used any more. NULL: nothing happens. */
void rp_arrangement_release(rp_arrangement *a);
void rp_arrangement_close(rp_arrangement *a); /* NULL: nothing happens */

/* ---- facts ----------------------------------------------------------------------------------- */

/* The run file as it runs. Its address stays, also before it is read; its choices may change with
 * every call below. */
const rp_runfile *rp_arrangement_run(const rp_arrangement *a);
/* Of the assignment; NULL before the first. Notes may be written into it. */
rp_plan *rp_arrangement_plan(const rp_arrangement *a);
const rp_plan *rp_arrangement_given(const rp_arrangement *a); /* no other is made; NULL: none is */
/* The plan is given, or boards share stages: places and boards stay as they are. */
bool rp_arrangement_is_fixed(const rp_arrangement *a);
const rp_cut *rp_arrangement_plan_cut(const rp_arrangement *a);
const char *rp_arrangement_plan_text(const rp_arrangement *a); /* that every board gets */
bool rp_arrangement_has_advance(const rp_arrangement *a); /* one was chosen */
/* Codecs may be chosen for the stages that there are. */
bool rp_codecs_may_change(const rp_arrangement *a);

/* ---- a run that begins, or goes on ----------------------------------------------------------- */

/* A plan that a person gives, or that the run has chosen before it was stopped. errors as
 * rp_planfile_read(); MEMORY */
rp_err rp_arrangement_read_plan(rp_arrangement *a, const char *executor) RP_MUST_CHECK;
/* The microbatch and schedule that a run which is resumed had. errors MEMORY */
rp_err rp_arrangement_resume_choices(rp_arrangement *a) RP_MUST_CHECK;
/* .. what its checkpoint was made with. errors MEMORY */
rp_err rp_arrangement_resume(rp_arrangement *a) RP_MUST_CHECK;
/* After a fault: codecs that were to come next are dropped. */
void rp_arrangement_go_back(rp_arrangement *a);
/* The run begins, or goes on, at this step. */
void rp_arrangement_begin_at(rp_arrangement *a, uint64_t step);
/* Boards have been loaded: they and their order are not chosen any more. */
void rp_arrangement_note_begun(rp_arrangement *a);
void rp_arrangement_set_lines(rp_arrangement *a, double age_s); /* of emulated lines */
/* A board does not know inputs as bytes: all get f32. */
void rp_arrangement_lower_inputs(rp_arrangement *a);

/* ---- boards ---------------------------------------------------------------------------------- */

/* A spare takes the place of a board that is lost. False: there is none. */
bool rp_arrangement_take_spare(rp_arrangement *a, uint32_t lost);
/* The last spare is no board of the run any more. */
void rp_arrangement_drop_spare(rp_arrangement *a);
/* A board that is lost leaves the ring; .. one that is not. It is a spare then (run/spares.h). */
void rp_arrangement_leave_board(rp_arrangement *a, uint32_t board);
void rp_arrangement_put_aside(rp_arrangement *a, uint32_t board);
/* A spare joins the ring. Returns its place. */
uint32_t rp_arrangement_return_board(rp_arrangement *a, uint32_t spare);
/* Another board has a place of the ring. */
void rp_arrangement_place_board(rp_arrangement *a, uint32_t place, const rp_roster_entry *entry);
/* split_left.c: of a schedule that splits the stages that a list names (is_listed): may it go on
 * with so many boards? */
bool rp_split_is_listed(const rp_arrangement *a);
/* Of so many boards those that have a place in the ring: all, but without such a list each stage
 * that is split takes two, and an odd one has none. */
uint32_t rp_split_boards_of(const rp_arrangement *a, uint32_t boards);
bool rp_split_may_be_on(const rp_arrangement *a, uint32_t boards);
/* Stages of the boards that there are now and, with such a list, which of them are split.
 * `by_price`: those with which what was measured says that a step is shortest; else the first of
 * the list. */
void rp_split_count_stages(rp_arrangement *a, bool by_price);
/* "; split are stages 0, 2" */
void rp_split_put_stages(const rp_arrangement *a, char *out, size_t bytes);

/* ---- choosing -------------------------------------------------------------------------------- */

/* The state behind HELLO: what has to be measured before there can be a plan? */
bool rp_arrangement_needs_profile(const rp_arrangement *a);
/* Whether the cut is for as many stages as the ring has; boards may have left it. */
bool rp_arrangement_has_cut(const rp_arrangement *a);
/* Boards, cut, codecs, sizes and steps ahead, as far as they are to be chosen. errors those of the
 * planner; MEMORY, IO */
rp_err rp_arrangement_choose(rp_arrangement *a) RP_MUST_CHECK;
/* ahead: measured, of a schedule that splits stages. Are steps ahead to be chosen? */
bool rp_ahead_is_wanted(const rp_arrangement *a);
/* .. as a plan that is given has it, or the checkpoint at hand: others would be another run. With
 * another number of stages than the run's nothing is taken. errors MEMORY */
rp_err rp_ahead_take(rp_arrangement *a, const uint16_t *ahead, uint32_t count) RP_MUST_CHECK;
/* advance: auto. Is it to be chosen? .. by wires as they are, after a segment of so many seconds.
 */
bool rp_arrangement_wants_advance(const rp_arrangement *a);
rp_err rp_arrangement_choose_advance(rp_arrangement *a, double segment_s,
                                     rp_advance_choice *out) RP_MUST_CHECK;
void rp_arrangement_take_advance(rp_arrangement *a, const rp_advance_choice *choice);
/* .. that boards have which are adopted. */
void rp_arrangement_adopt_advance(rp_arrangement *a, uint32_t advance);
/* One less than now: boards lack memory. */
void rp_arrangement_lessen_advance(rp_arrangement *a);
/* Of the last step trained: a resumed run keeps what is said of it. */
rp_err rp_arrangement_log_advance(const rp_arrangement *a, const char *text) RP_MUST_CHECK;
/* Says what is in effect now, and why. `before`: what it is better than. */
rp_err rp_arrangement_say_advance(const rp_arrangement *a, uint32_t before) RP_MUST_CHECK;
/* replan.c: at a pause after which `steps_left` steps follow. `may_drain`: the pipes are empty
 * before an evaluation. *leaves: the cut, or the sizes, are others now, which the boards are to
 * get. errors IO, MEMORY; of the planner */
rp_err rp_replan_choose(rp_arrangement *a, bool may_drain, uint64_t steps_left,
                        bool *leaves) RP_MUST_CHECK;
/* Says what was chosen for this start. */
rp_err rp_arrangement_say_codecs(const rp_arrangement *a) RP_MUST_CHECK;
/* All boards have paused: the losses of the segment go to the record; where one is above
 * links.max_error, a milder codec is next. errors IO */
rp_err rp_arrangement_note_losses(rp_arrangement *a) RP_MUST_CHECK;
/* At the end of the first segment, of so many seconds: stronger codecs are next where wires that
 * are not emulated were full. errors MEMORY */
rp_err rp_arrangement_follow_wires(rp_arrangement *a, double segment_s) RP_MUST_CHECK;
/* Milder codecs wait for empty pipes; .. which are empty now: they are in effect. */
bool rp_arrangement_waits_for_codecs(const rp_arrangement *a);
void rp_arrangement_take_next_codecs(rp_arrangement *a);

/* ---- the plan -------------------------------------------------------------------------------- */

/* The plan of the assignment that begins, and its text: every board gets it.
 * errors those of planning; MEMORY; LIMIT */
rp_err rp_arrangement_make_plan(rp_arrangement *a) RP_MUST_CHECK;
/* Compares what the net needs of memory, whatever its cut, with what the boards have: before the
 * first assignment, once they have greeted. errors USAGE: it does not fit; MEMORY */
rp_err rp_arrangement_check_least_memory(const rp_arrangement *a) RP_MUST_CHECK;
/* Compares what the first plan needs with what each board, or this machine, has. errors USAGE: what
 * boards need and have; MEMORY */
rp_err rp_arrangement_check_memory(const rp_arrangement *a) RP_MUST_CHECK;
/* The plan says what was predicted of it; NULL: nothing was. Borrows the text. */
void rp_arrangement_take_prediction(rp_plan *plan, const rp_prediction *predicted);
/* The plan by which the boards run already; borrowed. errors MEMORY */
rp_err rp_arrangement_take_plan(rp_arrangement *a, rp_plan *plan) RP_MUST_CHECK;
/* What boards and profile have said so far goes into the plan. */
void rp_arrangement_note_boards(rp_arrangement *a);
/* Below: by the plan of the assignment. */
uint32_t rp_arrangement_first_stage(const rp_arrangement *a, uint32_t board); /* that it holds */
void rp_arrangement_drop_plan(rp_arrangement *a);

#endif
