/* What is saved, loaded and copied, and what boards hold that have lost their host. */
#ifndef RP_CONTROL_OWN_KEEP_H
#define RP_CONTROL_OWN_KEEP_H

#include "checkpoint/checkpoint.h"
#include "ring/ring.h"

typedef struct rp_controller rp_controller;

/* adopt.c: what boards say that have lost their host. */
typedef struct {
    bool has_answered, holds; /* the last question */
    rp_Held now, before;      /* and the one before it */
    uint64_t applied[RP_REPLICAS_MAX];
    uint32_t applied_count;
    uint64_t (*told)[2]; /* from now.told_first on: bits of the sum of losses, samples */
    uint64_t told_count;
} rp_adopt_board;

typedef struct {
    enum {
        RP_ADOPT_NONE,
        RP_ADOPT_ASK,  /* until the boards have come to rest */
        RP_ADOPT_STOP, /* they stay as they are */
        RP_ADOPT_SAVE  /* a checkpoint is made of it */
    } phase;
    bool tried;
    bool hopes; /* the newest checkpoint is damaged: `from` is where it stands */
    uint32_t rounds;
    int64_t asked_ns;
    uint64_t from; /* step of the newest checkpoint that was there */
    rp_arena arena;
    rp_plan *plan;         /* of plan.json */
    rp_adopt_board *board; /* [ring.count] */
} rp_adopt;

/* load.c: what goes to the boards, in this order. */
typedef enum {
    RP_LOAD_TENSORS,
    RP_LOAD_APPLIED,
    RP_LOAD_GAINS,
    RP_LOAD_IN_FLIGHT,
    RP_LOAD_DONE
} rp_load_phase;

typedef struct {
    rp_arena arena;
    const char *path;
    bool states; /* a checkpoint, not a weights file */
    bool start;  /* else, what train.init takes from its file */
    rp_load_phase phase;
    rp_checkpoint_reader *reader;
    rp_checkpoint_tensor tensor;
    bool has_tensor;
    size_t first;   /* of the tensor or of what was in flight: sent before */
    uint32_t board; /* next to be told, or being told */
    uint32_t hold;  /* of the tensor's stage: the next that gets it */
    rp_st_reader *in_flight_file;
    rp_in_flight in_flight;
} rp_load;

typedef struct {
    rp_arena arena;
    rp_checkpoint_writer *writer;
    uint32_t boards_left;
    uint64_t kept_step;      /* of the newest checkpoint; 0: none is there */
    rp_histogram *histogram; /* by parameter of the model; NULL: none are asked for here */
    double *limit;           /* of their buckets */
    uint64_t drawn_step;     /* that histograms were recorded of last, or the run resumed at */
} rp_save;

/* disk.c: failed writes since the last checkpoint that was written. */
typedef struct {
    uint32_t tries;   /* their number */
    int64_t since_ns; /* time of the first */
    int64_t retry_ns; /* earliest time of the next try */
} rp_disk;

/* copies.c: copies of one step, that boards have or make, and where the run stood there. */
typedef struct {
    rp_arena arena;
    uint64_t step; /* 0: there are none */
    uint32_t term; /* of the assignment */
    rp_position position;
    rp_applied applied;
    uint64_t *in_flight_bytes;   /* by part: rp_plan_part_of() */
    rp_gain_estimator estimator; /* horizon: measured */
    uint8_t *said;               /* by node of the plan: who has said that it has its copy */
    uint32_t missing;            /* that have not */
    uint32_t *holder;            /* by node: a board that has it now; RP_PLAN_HOST: nobody */
} rp_copy_set;

/* copy_pace.c: how often there are copies, and what the last ones have cost. */
typedef struct {
    uint32_t every, said; /* steps, and those that the log says; auto */
    uint64_t from, due;   /* step of the last copies, and where the next ones are made; auto */
    int64_t step_ns;      /* when the last step was done */
    int64_t ordered_ns, whole_ns; /* of the copies whose cost is not known yet; 0: none, not yet */
    bool is_pausing;              /* no step has been done since they were ordered */
    double pause_s;               /* that the first step behind them took longer */
    double cost_s[2];             /* of the last ones, and of those before them */
    uint32_t count;               /* whose cost is known */
} rp_copy_pace;

typedef struct {
    rp_copy_set set[2]; /* the newest that is whole, and the one that is under way */
    uint32_t newest;
    bool wanted; /* the run has gone back to it, and the boards are to be asked for it */
    rp_copy_pace pace;
} rp_control_copies;

typedef struct {
    bool unsaved;                       /* trained since the last checkpoint */
    char damaged[RP_CHECKPOINT_DAMAGE]; /* why the newest checkpoint is not the one at hand; "" */
    rp_load load;
    rp_save save;
    rp_disk disk;
    rp_control_copies copies;
    rp_adopt adopt;
} rp_keep;

rp_err rp_load_enter(rp_controller *c) RP_MUST_CHECK;
rp_err rp_load_step(rp_controller *c) RP_MUST_CHECK;
void rp_load_abandon(rp_controller *c);
rp_err rp_load_late(const rp_controller *c) RP_MUST_CHECK;
rp_err rp_save_enter(rp_controller *c) RP_MUST_CHECK;
rp_err rp_save_step(rp_controller *c) RP_MUST_CHECK;
void rp_save_abandon(rp_controller *c);
rp_err rp_save_late(const rp_controller *c) RP_MUST_CHECK;
rp_err rp_save_on_tensor(rp_controller *c, uint32_t board, const rp_message *message) RP_MUST_CHECK;
rp_err rp_save_on_in_flight(rp_controller *c, uint32_t board,
                            const rp_message *message) RP_MUST_CHECK;
rp_err rp_save_on_end(rp_controller *c, uint32_t board, const rp_message *message) RP_MUST_CHECK;
/* Updates done and bytes in flight, by stage, as the boards have reported them at this pause. */
rp_err rp_save_gather(rp_controller *c, rp_arena *arena, rp_applied *applied,
                      uint64_t **in_flight_bytes) RP_MUST_CHECK;
/* rescue.c: copy, rescue */
rp_err rp_copy_enter(rp_controller *c) RP_MUST_CHECK;
rp_err rp_copy_step(rp_controller *c) RP_MUST_CHECK;
rp_err rp_rescue_enter(rp_controller *c) RP_MUST_CHECK;
rp_err rp_rescue_step(rp_controller *c) RP_MUST_CHECK;
void rp_rescue_abandon(rp_controller *c);
/* copy_pace.c: what happens to copies, as it happens; */
void rp_copy_pace_ordered(rp_controller *c);
void rp_copy_pace_whole(rp_controller *c);     /* all boards have them, and their neighbours' */
void rp_copy_pace_note_step(rp_controller *c); /* one was done; before rp_waiting_note_step() */
void rp_copy_pace_forget(rp_controller *c);    /* those under way will never be whole */
/* .. and how often there are any: chosen anew at the begin of a segment. The step at which the next
 * are made; UINT64_MAX: never. Are they due at this pause? */
rp_err rp_copy_pace_choose(rp_controller *c) RP_MUST_CHECK;
uint64_t rp_copy_pace_next(rp_controller *c);
bool rp_copy_pace_is_due(const rp_controller *c);
/* copies.c: of the newest step that all boards have them of, and of the one under way; their step
 * is 0 where there are none. */
rp_copy_set *rp_copies_whole(rp_controller *c);
rp_copy_set *rp_copies_pending(rp_controller *c);
void rp_copies_drop_set(rp_copy_set *set);
rp_err rp_copies_on_copied(rp_controller *c, uint32_t board,
                           const rp_message *message) RP_MUST_CHECK;
/* Whether the plan's boards can keep copies for each other, and have the memory.
 * errors  USAGE, LIMIT naming the board */
rp_err rp_copies_check_plan(const rp_controller *c) RP_MUST_CHECK;
rp_err rp_copies_check_memory(const rp_controller *c) RP_MUST_CHECK;
/* Those to go back to: newer than the newest checkpoint; NULL: there are none. */
const rp_copy_set *rp_copies_newest(const rp_controller *c);
/* Of a board's facts: what they had counted at the newest copies. */
uint64_t rp_copies_microbatches(const rp_controller *c, uint32_t board);
void rp_copies_want(rp_controller *c);        /* the run goes back to the newest ones */
void rp_copies_begin_hello(rp_controller *c); /* who has them is asked anew */
void rp_copies_forget(rp_controller *c);      /* those of another plan are of no use */
/* histograms.c: of the weights that a save brings, where the run file asks for them. */
rp_err rp_histograms_begin(rp_controller *c) RP_MUST_CHECK; /* in the save's arena */
void rp_histograms_add(rp_controller *c, const char *name, const void *floats, size_t count);
rp_err rp_histograms_end(rp_controller *c) RP_MUST_CHECK; /* all of them to the record */
/* adopt.c */
bool rp_adopt_is_due(const rp_controller *c);
bool rp_adopt_may_come(const rp_controller *c); /* as far as it can be said before the start */
rp_err rp_adopt_enter(rp_controller *c) RP_MUST_CHECK;
rp_err rp_adopt_step(rp_controller *c) RP_MUST_CHECK;
rp_err rp_adopt_late(const rp_controller *c) RP_MUST_CHECK;
rp_err rp_adopt_on_hello(rp_controller *c, uint32_t board, const rp_message *message) RP_MUST_CHECK;
rp_err rp_adopt_on_held(rp_controller *c, uint32_t board, const rp_message *message) RP_MUST_CHECK;
/* Behind the save, or a fault on the way: the plan is let go. `why`: NULL: a checkpoint has been
 * made. errors IO */
rp_err rp_adopt_end(rp_controller *c, const char *why) RP_MUST_CHECK;
/* disk.c: what happens while the run folder rejects writes. */
/* Whether it failed a moment ago, so that it is too early to try again. */
bool rp_disk_rests(const rp_controller *c);
/* Time at which a try is due; INT64_MAX: no try is. */
int64_t rp_disk_deadline_ns(const rp_controller *c);
/* Call it after a write that has failed with IO; its text is rp_err_message(). RP_OK: try again
 * once rp_disk_rests() is false. errors  IO when that has gone on for too long: the run stops */
rp_err rp_disk_failed(rp_controller *c) RP_MUST_CHECK;
/* A checkpoint was written. */
rp_err rp_disk_worked(rp_controller *c) RP_MUST_CHECK;
/* Marks an IO error of a run that has begun as one that may pass, so that the run goes back to its
 * newest checkpoint. Returns `err`. */
rp_err rp_disk_fault(rp_controller *c, rp_err err) RP_MUST_CHECK;
bool rp_disk_is_writable(const rp_controller *c);
rp_err rp_disk_begin_term(rp_controller *c) RP_MUST_CHECK;

#endif
