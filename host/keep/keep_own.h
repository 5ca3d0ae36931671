/* The struct of this room, for its own files. */
#ifndef RP_KEEP_KEEP_OWN_H
#define RP_KEEP_KEEP_OWN_H

#include "keep/keep.h"

/* The phases of a load, in order. */
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
    rp_checkpoint_tensor tensor; /* valid if has_tensor */
    bool has_tensor;
    size_t first; /* floats of the tensor, or in-flight bytes of a board, that were already sent */
    uint32_t board; /* the board that is being sent to, or is next */
    uint32_t hold;  /* index in the plan: next hold that may get the tensor */
    uint64_t fill_step;
    rp_st_reader *in_flight_file;
    rp_in_flight in_flight;
} rp_load;

typedef struct {
    rp_arena arena;
    rp_checkpoint_writer *writer; /* NULL: the disk has failed */
    const rp_plan *plan;          /* plan of the save or rescue; NULL: none in progress */
    uint64_t step;                /* step of the checkpoint */
    uint32_t boards_left;         /* boards that have not sent everything */
    uint64_t kept_step;           /* step of the newest checkpoint; 0: none */
    rp_histogram *histogram;      /* by parameter of the model; NULL: no histograms now */
    double *limit;                /* limits of their buckets */
    uint64_t drawn_step; /* step of the last histograms, or where the run began or went back to */
} rp_save;

/* Failed writes since the last written checkpoint. */
typedef struct {
    uint32_t tries;   /* number of failed writes */
    int64_t since_ns; /* time of the first one */
    int64_t retry_ns; /* earliest time of the next retry */
} rp_keep_disk;

/* Copies of one step, and the run's position there. */
typedef struct {
    rp_arena arena;
    uint64_t step; /* 0: no copies */
    uint32_t term; /* term of the assignment */
    rp_position position;
    rp_applied applied;
    uint64_t *in_flight_bytes;   /* by part: rp_plan_part_of() */
    rp_gain_estimator estimator; /* horizon: measured */
    uint8_t *said;    /* by node of the plan: bits OWN, KEPT of the boards that have its copy */
    uint32_t missing; /* number of bits not set yet */
    uint32_t *holder; /* by node: a board that has the copy now; RP_PLAN_HOST: none */
} rp_copy_set;

/* How often copies are made, and what the last ones cost. */
typedef struct {
    uint32_t every, said; /* auto: steps between copies; the value logged last */
    uint64_t from, due;   /* auto: step of the last copies, and of the next ones */
    int64_t step_ns;      /* when the last step was done */
    int64_t ordered_ns,
        whole_ns;     /* of copies whose cost is not known yet: ordered, complete; 0: not yet */
    bool is_pausing;  /* no step was done since they were ordered */
    double pause_s;   /* extra duration of the first step after them */
    double cost_s[2]; /* cost of the last copies, and of those before */
    uint32_t count;   /* number of copies with a known cost */
} rp_copy_pace;

typedef struct {
    rp_copy_set set[2]; /* the newest complete set, and the one in progress */
    uint32_t newest;    /* index of the complete one */
    bool wanted;        /* the run goes back to it, and boards are to be asked for it */
    rp_copy_pace pace;
} rp_keep_copies;

/* What a board without controller reports. */
typedef struct {
    bool has_answered, holds; /* whether it answered the last question; whether it holds state */
    rp_Held now, before;      /* its answer, and the answer before */
    uint64_t applied[RP_REPLICAS_MAX];
    uint32_t applied_count;
    uint64_t (*told)[2]; /* from step now.told_first on: bits of the loss sum; samples in
                          * the low half, targets that do not count in the high half */
    uint64_t told_count;
} rp_adopt_board;

typedef struct {
    enum {
        RP_ADOPT_NONE,
        RP_ADOPT_ASK,  /* until all boards rest */
        RP_ADOPT_STOP, /* they are told to stay as they are */
        RP_ADOPT_SAVE  /* a checkpoint of their state is made */
    } phase;
    bool tried;
    bool hopes; /* the newest checkpoint is damaged; `from` is its step */
    uint32_t rounds;
    int64_t since_ns, asked_ns;
    uint64_t from; /* step of the newest checkpoint when the adoption began */
    rp_arena arena;
    rp_plan *plan;         /* from plan.json; NULL: not read */
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
/* update_counts.c: the counts in the ring's state of a stage on one board; *count: their
 * capacity. */
uint64_t *rp_applied_of(rp_ring *ring, const rp_plan *plan, const rp_plan_hold *hold,
                        uint32_t *count);
/* Gathers updates done and in-flight bytes, by stage and part, as reported at this pause; allocated
 * in `arena`. errors MEMORY */
rp_err rp_applied_gather(rp_ring *ring, const rp_plan *plan, rp_arena *arena, rp_applied *applied,
                         uint64_t **in_flight_bytes) RP_MUST_CHECK;
/* full_disk.c: a checkpoint was written. errors IO */
rp_err rp_disk_note_worked(rp_keep *keep) RP_MUST_CHECK;
/* save.c: resets the save, before boards are asked. `arena`: name of the save's arena. */
void rp_save_reset(rp_keep *keep, const char *arena, const rp_plan *plan, uint64_t step);
/* Makes the files visible. *out: only as rp_keep_disk_failed() sets it. errors IO */
rp_err rp_save_commit(rp_keep *keep, rp_keep_outcome *out) RP_MUST_CHECK;
/* histograms.c: of the weights in a save, if the run file asks for them. */
rp_err rp_histograms_begin(rp_keep *keep) RP_MUST_CHECK; /* in the save's arena */
void rp_histograms_add(rp_keep *keep, const char *name, const void *floats, size_t count);
rp_err rp_histograms_end(rp_keep *keep) RP_MUST_CHECK; /* records all of them */
/* copies.c */
rp_copy_set *rp_copies_whole(rp_keep *keep);   /* of the newest step that all boards have */
rp_copy_set *rp_copies_pending(rp_keep *keep); /* in progress; step 0: none */
void rp_copies_drop_set(rp_copy_set *set);
/* copy_pace.c: copies were ordered at `step`; all are complete; those in progress are abandoned. */
void rp_copy_pace_note_order(rp_keep *keep, uint64_t step);
void rp_copy_pace_note_whole(rp_keep *keep);
void rp_copy_pace_forget(rp_keep *keep);

#endif
