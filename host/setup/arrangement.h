/* The arrangement of a ring: the setup in force, the run file that follows from it, the plan of the
 * boards, and the choice of the next setup from measurements.
 *
 * The caller decides when to choose and sends the plan to boards; this room decides what to choose.
 */
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
    const rp_position *position;      /* the run's current position */
    bool trains, evaluates, profiles; /* purpose of the run; at most one is true */
    const char *resume;               /* folder of the run to resume; NULL: a new run */
    const char *plan;                 /* the user's plan.json; NULL: none */
} rp_arrangement_needs;

/* Lives in `arena`. errors  MEMORY */
rp_err rp_arrangement_open(rp_arena *arena, const rp_arrangement_needs *needs,
                           rp_arrangement **out) RP_MUST_CHECK;
/* Reads the run file, so that rp_arrangement_run() is valid. errors those of rp_runfile_read() */
rp_err rp_arrangement_read(rp_arrangement *a, const char *path, const char *const *set,
                           uint32_t set_count) RP_MUST_CHECK;
/* Sets the room of measurements, which uses this run file; borrowed. */
void rp_arrangement_use_measure(rp_arrangement *a, rp_measure *measure);
/* Frees the memory of plans; all plans become invalid. Accepts NULL. */
void rp_arrangement_release(rp_arrangement *a);
void rp_arrangement_close(rp_arrangement *a); /* accepts NULL */

/* ---- facts ----------------------------------------------------------------------------------- */

/* The run file in effect: as read, with all choices made. The address is constant and valid before
 * reading; every call below may change the choices. */
const rp_runfile *rp_arrangement_run(const rp_arrangement *a);
/* Plan of the current assignment; NULL before the first. The caller may add notes to it. */
rp_plan *rp_arrangement_plan(const rp_arrangement *a);
const rp_plan *rp_arrangement_given(const rp_arrangement *a); /* the user's plan; NULL: none */
/* The plan is given or has shared stages, so boards and their places are not chosen. */
bool rp_arrangement_is_fixed(const rp_arrangement *a);
const rp_cut *rp_arrangement_plan_cut(const rp_arrangement *a);
const char *rp_arrangement_plan_text(const rp_arrangement *a); /* sent to every board */
bool rp_arrangement_has_advance(const rp_arrangement *a);      /* an advance was chosen */
/* links.codec: auto, and no codecs are chosen yet for the current number of stages. */
bool rp_codecs_may_change(const rp_arrangement *a);

/* ---- a run that begins, or goes on ----------------------------------------------------------- */

/* Reads the user's plan, or the plan with shared stages of a run that is resumed. errors as
 * rp_planfile_read(); MEMORY */
rp_err rp_arrangement_read_plan(rp_arrangement *a, const char *executor) RP_MUST_CHECK;
/* Takes microbatch and schedule from run.yaml of the resumed run. errors MEMORY */
rp_err rp_arrangement_resume_choices(rp_arrangement *a) RP_MUST_CHECK;
/* Takes codecs, sizes, advance and steps ahead from the checkpoint. errors MEMORY */
rp_err rp_arrangement_resume(rp_arrangement *a) RP_MUST_CHECK;
/* After a fault: discards codecs that were waiting to be used. */
void rp_arrangement_go_back(rp_arrangement *a);
/* The run starts or continues at this step. */
void rp_arrangement_begin_at(rp_arrangement *a, uint64_t step);
/* The boards have been loaded, so boards and their order are no longer chosen. */
void rp_arrangement_note_begun(rp_arrangement *a);
void rp_arrangement_set_lines(rp_arrangement *a, double age_s); /* age of emulated links */
/* Switches inputs to f32, because a board does not support uint8. */
void rp_arrangement_lower_inputs(rp_arrangement *a);

/* ---- boards ---------------------------------------------------------------------------------- */

/* A spare replaces the lost board. False: no spare is left. */
bool rp_arrangement_take_spare(rp_arrangement *a, uint32_t lost);
/* Removes the last spare from the run. */
void rp_arrangement_drop_spare(rp_arrangement *a);
/* Removes a board from the ring; it becomes a spare (run/spares.h). _remove_board: a lost one;
 * _demote_board: one that answers. */
void rp_arrangement_remove_board(rp_arrangement *a, uint32_t board);
void rp_arrangement_demote_board(rp_arrangement *a, uint32_t board);
/* Adds a spare to the ring. Returns its place. */
uint32_t rp_arrangement_return_board(rp_arrangement *a, uint32_t spare);
/* Puts another board in a place of the ring. */
void rp_arrangement_place_board(rp_arrangement *a, uint32_t place, const rp_roster_entry *entry);
/* split_left.c: schedule.split lists the split stages. rp_split_may_be_on(): the schedule can run
 * on `boards` boards. */
bool rp_split_is_listed(const rp_arrangement *a);
/* Returns how many of `boards` boards have a place in the ring. Without a list each stage takes two
 * boards, so an odd board has none. */
uint32_t rp_split_boards_of(const rp_arrangement *a, uint32_t boards);
bool rp_split_may_be_on(const rp_arrangement *a, uint32_t boards);
/* Sets the number of stages for the current boards and, with a list, which stages are split.
 * `by_price`: splits those that give the shortest step according to measurements; else the first of
 * the list. */
void rp_split_count_stages(rp_arrangement *a, bool by_price);
/* Writes the stages that are split, "0, 2" or "none", and returns them. NULL: the schedule has no
 * list of them. */
const char *rp_split_list_stages(const rp_arrangement *a, char *out, size_t bytes);

/* ---- choosing -------------------------------------------------------------------------------- */

/* The state after HELLO: whether layers have to be measured before a plan can be made. */
bool rp_arrangement_needs_profile(const rp_arrangement *a);
/* The cut has as many stages as the ring needs now; boards may have left. */
bool rp_arrangement_has_cut(const rp_arrangement *a);
/* Makes all open choices: boards, cut, codecs, sizes, steps ahead. errors those of the planner;
 * MEMORY, IO */
rp_err rp_arrangement_choose(rp_arrangement *a) RP_MUST_CHECK;
/* ahead: measured, in a schedule with split stages: steps ahead are to be chosen. */
bool rp_ahead_is_wanted(const rp_arrangement *a);
/* Takes `schedule.ahead` of a given plan or of the checkpoint; other values would make it another
 * run. Does nothing if `count` is not the run's number of stages. errors MEMORY */
rp_err rp_ahead_take(rp_arrangement *a, const uint16_t *ahead, uint32_t count) RP_MUST_CHECK;
/* advance: auto. _wants_advance: it is to be chosen. _choose_advance: chooses by the current wires,
 * after a segment of `segment_s` seconds. */
bool rp_arrangement_wants_advance(const rp_arrangement *a);
rp_err rp_arrangement_choose_advance(rp_arrangement *a, double segment_s,
                                     rp_advance_choice *out) RP_MUST_CHECK;
void rp_arrangement_take_advance(rp_arrangement *a, const rp_advance_choice *choice);
/* Takes the advance of boards that are adopted. */
void rp_arrangement_adopt_advance(rp_arrangement *a, uint32_t advance);
/* Reduces the advance by one, because boards lack memory. */
void rp_arrangement_reduce_advance(rp_arrangement *a);
/* Logs the advance in effect and the reason. `before`: the advance to compare with. */
rp_err rp_arrangement_say_advance(const rp_arrangement *a, uint32_t before) RP_MUST_CHECK;
/* replan.c: chooses another cut or other sizes at a pause, if the measured times differ from the
 * predicted ones and it pays within `steps_left` steps. `may_drain`: the pipes can drain before the
 * next evaluation. *leaves: cut or sizes have changed, and boards need new stages. errors IO,
 * MEMORY; those of the planner */
rp_err rp_replan_choose(rp_arrangement *a, bool may_drain, uint64_t steps_left,
                        bool *leaves) RP_MUST_CHECK;
/* Logs the codecs chosen for this start. */
rp_err rp_arrangement_say_codecs(const rp_arrangement *a) RP_MUST_CHECK;
/* At a pause: records the codecs' losses in the segment. A codec that lost more than
 * links.max_error is to be replaced by one that loses less. errors IO */
rp_err rp_arrangement_note_losses(rp_arrangement *a) RP_MUST_CHECK;
/* At the end of the first segment, of `segment_s` seconds: selects stronger codecs for wires that
 * were full and are not emulated. errors MEMORY */
rp_err rp_arrangement_follow_wires(rp_arrangement *a, double segment_s) RP_MUST_CHECK;
/* Other codecs wait until the pipes are empty. rp_arrangement_take_next_codecs(): puts them into
 * effect. */
bool rp_arrangement_waits_for_codecs(const rp_arrangement *a);
void rp_arrangement_take_next_codecs(rp_arrangement *a);

/* ---- the plan -------------------------------------------------------------------------------- */

/* Makes the plan of the next assignment and its text, which every board gets. errors those of
 * planning; MEMORY; LIMIT */
rp_err rp_arrangement_make_plan(rp_arrangement *a) RP_MUST_CHECK;
/* Compares the memory that the net needs with any cut to the boards' memory; called before the
 * first assignment, after all boards have greeted. errors USAGE: the net does not fit; MEMORY */
rp_err rp_arrangement_check_least_memory(const rp_arrangement *a) RP_MUST_CHECK;
/* Compares the memory that the first plan needs with that of each board, or of this machine. errors
 * USAGE: what boards need and have; MEMORY */
rp_err rp_arrangement_check_memory(const rp_arrangement *a) RP_MUST_CHECK;
/* Adds a prediction to the plan; NULL: none. Borrows its text. */
void rp_arrangement_take_prediction(rp_plan *plan, const rp_prediction *predicted);
/* Takes the plan that adopted boards already run; borrowed. errors MEMORY */
rp_err rp_arrangement_take_plan(rp_arrangement *a, rp_plan *plan) RP_MUST_CHECK;
/* Adds to the plan what is known of boards and layers. */
void rp_arrangement_note_boards(rp_arrangement *a);
/* The first stage that a board holds by the current plan. */
uint32_t rp_arrangement_first_stage(const rp_arrangement *a, uint32_t board);
void rp_arrangement_drop_plan(rp_arrangement *a);

#endif
