/* The struct of a run of lanes, for the files of this room. */
#ifndef RP_LANES_LANES_OWN_H
#define RP_LANES_LANES_OWN_H

#include "base/arena.h"
#include "data/notes.h"
#include "lanes/average.h"
#include "lanes/child.h"
#include "lanes/lanes.h"
#include "lanes/round.h"
#include "record/words.h"
#include "run/rate.h"

typedef enum {
    RP_LANES_WORK,
    RP_LANES_LAST,     /* the last round is done: the lanes are ending */
    RP_LANES_EVALUATE, /* a child process scores the centre */
    RP_LANES_STOP,     /* interrupted, or no lane is left */
    RP_LANES_ENDED
} rp_lanes_phase;

enum { RP_LANES_SPEEDS = 16, RP_LANES_NOTE = 400, RP_LANES_LOSS = 32 };

struct rp_lanes {
    const rp_clock *clock;
    rp_lanes_options options;
    rp_arena arena;
    const char *folder;
    int folder_fd; /* descriptor with its lock */
    bool owns_folder;
    char *run_yaml, *journal, *center, *next_center, *weights, *scores, *summary, *log_path;
    FILE *log;

    /* from the run file */
    rp_lanes_keys keys;
    const char *model, *schedule;
    uint64_t steps, epoch_steps;
    uint32_t epochs, stages;
    bool has_test;
    rp_notes notes;      /* of the run file and its data, logged at the start */
    bool rate_changes;   /* a resumed run has another learning rate: */
    rp_rate_change rate; /* how it differs */
    bool finite;         /* a result that is not finite is a failure: train.stop_after.non_finite */

    /* as stored in lanes.json */
    uint64_t round; /* last closed round; 0: none */
    char digest[RP_AVERAGE_DIGEST];
    double seconds;      /* duration of earlier starts */
    uint64_t last_steps; /* number of steps of the last round of the whole run; 0: not reached */

    rp_lane_child lane[RP_LANES_MAX];
    rp_lane_child scorer;
    rp_lanes_phase phase;
    int64_t now_ns, start_ns;
    int64_t closed_ns;         /* when the last round was closed; 0: none since the start */
    int64_t waiting_ns;        /* since when some lane waits; 0: none does */
    bool is_closing;           /* the round's files are made, but not in lanes.json yet */
    rp_round_decision closing; /* decision on that round */
    int64_t full_ns;           /* since when the folder rejects writes; 0: it does not */
    int64_t retry_ns;          /* earliest time of the next retry */
    bool log_failed;           /* writing the log failed, and that was reported */
    int64_t round_ns[RP_ROUND_TIMES_MAX];
    uint32_t rounds; /* since the start */
    double loss;     /* mean loss of the last round */
    struct {
        int64_t at_ns;
        uint64_t samples;
    } speed[RP_LANES_SPEEDS];
    int64_t shown_ns;
    uint32_t interrupts;
    rp_err result;
    char note[RP_LANES_NOTE];
};

/* lanes_folder.c: takes the run folder. errors USAGE, IO */
rp_err rp_lanes_take_folder(rp_lanes *lanes) RP_MUST_CHECK;
void rp_lanes_leave_folder(rp_lanes *lanes);

/* journal.c: writes and reads lanes.json. */
rp_err rp_lanes_write_journal(const rp_lanes *lanes) RP_MUST_CHECK;
/* Reads the journal, if any, and moves the files of its round into place. errors FORMAT, IO */
rp_err rp_lanes_read_journal(rp_lanes *lanes) RP_MUST_CHECK;
/* Name of the file that a round makes next to the one that it will replace. */
void rp_lanes_name_made(const rp_lane_child *lane, char out[RP_LANE_PATH_BYTES]);
void rp_lanes_name_checkpoint(const rp_lane_child *lane, uint64_t step,
                              char out[RP_LANE_PATH_BYTES]);
/* Call it once the round is in the journal: moves its files into place. errors IO */
rp_err rp_lanes_place_files(rp_lanes *lanes) RP_MUST_CHECK;

/* run_round.c: closes a round when it is time. errors IO */
rp_err rp_lanes_meet(rp_lanes *lanes) RP_MUST_CHECK;
/* Time of the next check for that. */
int64_t rp_lanes_meet_ns(const rp_lanes *lanes);

/* lanes_log.c */
double rp_lanes_seconds(const rp_lanes *lanes);
uint64_t rp_lanes_samples(const rp_lanes *lanes);
uint64_t rp_lanes_at(const rp_lanes *lanes);  /* step of the most advanced lane */
double rp_lanes_speed(const rp_lanes *lanes); /* samples/s over the last rounds; NAN: unknown */
/* "0.1234", or "not finite" */
const char *rp_lanes_loss_text(double loss, char text[RP_LANES_LOSS]);
rp_err rp_lanes_log_event(rp_lanes *lanes, const rp_run_event *event) RP_MUST_CHECK;
rp_err rp_lanes_log_round(rp_lanes *lanes, const double *alpha, const uint32_t *lag) RP_MUST_CHECK;

/* lanes_summary.c: makes the summary from those of the lanes. errors IO, FORMAT */
rp_err rp_lanes_summarise(rp_lanes *lanes, const char *status) RP_MUST_CHECK;

#endif
