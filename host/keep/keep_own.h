/* The room as its own files see it. */
#ifndef RP_KEEP_KEEP_OWN_H
#define RP_KEEP_KEEP_OWN_H

#include "keep/keep.h"

/* What goes to the boards in a load, in this order. */
typedef enum {
    RP_LOAD_TENSORS,
    RP_LOAD_APPLIED,
    RP_LOAD_GAINS,
    RP_LOAD_OPEN_IN_FLIGHT,
    RP_LOAD_IN_FLIGHT,
    RP_LOAD_DONE
} rp_load_phase;

typedef struct {
    rp_arena arena;
    const char *path; /* NULL: nothing is loaded */
    rp_keep_source source;
    rp_keep_load_order order;
    rp_load_phase phase;
    rp_checkpoint_reader *reader;
    rp_checkpoint_tensor tensor; /* valid when has_tensor */
    bool has_tensor;
    size_t first;   /* floats of the tensor, or bytes of a board in flight, that were sent before */
    uint32_t board; /* the next to be told, or the one being told */
    uint32_t hold;  /* of the plan: the next that may get the tensor */
    uint64_t fill_step;
    rp_st_reader *in_flight_file;
    rp_in_flight in_flight;
} rp_load;

typedef struct {
    rp_arena arena;
    rp_checkpoint_writer *writer; /* NULL: the disk has failed */
    const rp_plan *plan;          /* of the save or rescue; NULL: none is under way */
    uint64_t step;                /* of the checkpoint */
    uint32_t boards_left;         /* that still send something */
    uint64_t kept_step;           /* of the newest checkpoint; 0: none */
    rp_histogram *histogram;      /* by parameter of the model; NULL: none are asked for here */
    double *limit;                /* of their buckets */
    uint64_t drawn_step; /* of the last histograms, or where the run began or went back to */
} rp_save;

/* Failed writes since the last checkpoint that was written. */
typedef struct {
    uint32_t tries;   /* their number */
    int64_t since_ns; /* time of the first */
    int64_t retry_ns; /* earliest time of the next try */
} rp_keep_disk;

/* Copies of one step, and where the run stood there. */
typedef struct {
    rp_arena arena;
    uint64_t step; /* 0: no copies */
    uint32_t term; /* of the assignment */
    rp_position position;
    rp_applied applied;
    uint64_t *in_flight_bytes;   /* by part: rp_plan_part_of() */
    rp_gain_estimator estimator; /* horizon: measured */
    uint8_t *said;               /* by node of the plan: bits of the boards that have their copy */
    uint32_t missing;            /* bits that are not set yet */
    uint32_t *holder;            /* by node: a board that has it now; RP_PLAN_HOST: none has */
} rp_copy_set;

/* How often there are copies, and what the last ones have cost. */
typedef struct {
    uint32_t every, said; /* steps, and the number that the log says; auto */
    uint64_t from, due;   /* step of the last copies, and where the next ones are made; auto */
    int64_t step_ns;      /* when the last step was done */
    int64_t ordered_ns, whole_ns; /* of copies whose cost is not known yet; 0: none, not yet */
    bool is_pausing;              /* no step has been done since they were ordered */
    double pause_s;               /* how much longer the first step after them took */
    double cost_s[2];             /* of the last ones, and of those before them */
    uint32_t count;               /* of copies whose cost is known */
} rp_copy_pace;

typedef struct {
    rp_copy_set set[2]; /* the newest that is whole, and the one that is under way */
    uint32_t newest;    /* index of the whole one */
    bool wanted;        /* the run has gone back to it, and the boards are to be asked for it */
    rp_copy_pace pace;
} rp_keep_copies;

/* What a board says that has lost its controller. */
typedef struct {
    bool has_answered, holds; /* the last question */
    rp_Held now, before;      /* its answer, and the answer to the question before */
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
    bool hopes; /* the newest checkpoint is damaged: `from` is its step */
    uint32_t rounds;
    int64_t since_ns, asked_ns;
    uint64_t from; /* step of the newest checkpoint at the begin */
    rp_arena arena;
    rp_plan *plan;         /* of plan.json; NULL: not read */
    rp_adopt_board *board; /* [board_count] */
    uint32_t board_count;
} rp_adoption_state;

struct rp_keep {
    rp_keep_needs needs;
    bool is_unsaved;
    char damaged[RP_CHECKPOINT_DAMAGE];
    rp_load load;
    rp_save save;
    rp_keep_disk disk;
    rp_keep_copies copies;
    rp_adoption_state adopt;
};

static inline rp_record *rp_keep_record(const rp_keep *keep) {
    return rp_folder_record(keep->needs.folder);
}
static inline const rp_folder_paths *rp_keep_paths(const rp_keep *keep) {
    return rp_folder_paths_of(keep->needs.folder);
}
/* update_counts.c: the counts of a stage on one of its boards, in the ring's state; room for
 * *count. */
uint64_t *rp_applied_of(rp_ring *ring, const rp_plan *plan, const rp_plan_hold *hold,
                        uint32_t *count);
/* Updates done and bytes in flight, by stage and part, as the boards have reported them at this
 * pause; they lie in `arena`. errors MEMORY */
rp_err rp_applied_gather(rp_ring *ring, const rp_plan *plan, rp_arena *arena, rp_applied *applied,
                         uint64_t **in_flight_bytes) RP_MUST_CHECK;
/* full_disk.c: a checkpoint was written. errors IO */
rp_err rp_disk_note_worked(rp_keep *keep) RP_MUST_CHECK;
/* save.c: nothing is asked of any board yet; `arena`: name of the save's arena. */
void rp_save_reset(rp_keep *keep, const char *arena, const rp_plan *plan, uint64_t step);
/* The files appear. *out: only as rp_keep_disk_failed() sets it. errors IO */
rp_err rp_save_commit(rp_keep *keep, rp_keep_outcome *out) RP_MUST_CHECK;
/* histograms.c: of the weights that a save brings, where the run file asks for them. */
rp_err rp_histograms_begin(rp_keep *keep) RP_MUST_CHECK; /* in the save's arena */
void rp_histograms_add(rp_keep *keep, const char *name, const void *floats, size_t count);
rp_err rp_histograms_end(rp_keep *keep) RP_MUST_CHECK; /* all of them to the record */
/* copies.c */
rp_copy_set *rp_copies_whole(rp_keep *keep);   /* of the newest step that all boards have */
rp_copy_set *rp_copies_pending(rp_keep *keep); /* under way; its step is 0: none are */
void rp_copies_drop_set(rp_copy_set *set);
/* copy_pace.c: copies were ordered at `step`; all are whole; those under way never will be. */
void rp_copy_pace_note_order(rp_keep *keep, uint64_t step);
void rp_copy_pace_note_whole(rp_keep *keep);
void rp_copy_pace_forget(rp_keep *keep);

#endif
