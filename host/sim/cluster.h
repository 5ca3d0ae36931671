/* A ring in one process on a virtual clock: the controller and the agents of a real run, with other
 * arguments. Boards compute with the `timed` or the `digest` executor, links go through the inproc
 * transport and a line that faults change, and time is the world's (world.h).
 *
 * A run is a pure function of the run file, the seed and the faults: the event log's hash says so.
 *
 * source  PORTS.md 2: every node is `deadline = step(node, now)` */
#ifndef RP_SIM_CLUSTER_H
#define RP_SIM_CLUSTER_H

#include "control/controller.h"
#include "planning/profile.h"
#include "run/roster.h"
#include "sim/eventlog.h"
#include "sim/marks.h"
#include "sim/world.h"

typedef struct {
    const char *run_path;
    const char *const *set;
    uint32_t set_count;
    uint32_t boards;               /* of the run file's ring, and its spares behind them */
    const rp_roster_entry *roster; /* of so many; borrowed. NULL: agents of this machine */
    const char *listen;            /* where those find the host that dial; NULL: none does */
    uint32_t may_lose;             /* of them, for good: the run goes on with what is left */
    const char *plan;              /* NULL: the controller makes one */
    const char *executor;          /* "digest" or "timed" */
    const double *layer_seconds;   /* of each layer and one sample, forward and backward in turn;
                                      NULL: the executor's own. Borrowed */
    uint32_t layer_count;
    const rp_profile *profile; /* of each board, in place of layer_seconds; NULL: none. Borrowed */
    uint64_t seed;             /* of interleavings, sessions and lines */
    const rp_sim_faults *faults; /* borrowed; NULL: none */
    const char *folder;          /* run folder */
    bool resume;                 /* the first life of the controller goes on in it */
    bool temporary;              /* it is gone after the run */
    FILE *progress, *result;     /* of the controller; NULL: nobody looks */
    FILE *trace;                 /* event log in text, or NULL */
    rp_format format;
    int64_t stale_from_ns; /* replays that begin later wait for a later life of the controller */
    const uint64_t *memory_bytes; /* of each board; NULL, or 0: as much as it needs. Borrowed */
    int64_t wait_ns;  /* of the run file: a board that is lost has so long to come back */
    int64_t limit_ns; /* virtual time for the whole run, all resumes included */
} rp_cluster_options;

typedef enum {
    RP_CLUSTER_FINISHED,
    RP_CLUSTER_STOPPED, /* the controller ended the run in an orderly way, or was crashed */
    RP_CLUSTER_LIMIT    /* virtual time was up */
} rp_cluster_end;

typedef struct rp_cluster rp_cluster;

/* Brings the boards up; they wait for a host. errors MEMORY, USAGE */
rp_err rp_cluster_open(rp_arena *arena, const rp_cluster_options *options,
                       rp_cluster **out) RP_MUST_CHECK;
void rp_cluster_close(rp_cluster **cluster);

/* One life of the controller, from its start (`resume`: in the run folder that is there) to its
 * end. *result: what rp_controller_close() said; OK when it was crashed. */
rp_cluster_end rp_cluster_run_life(rp_cluster *cluster, bool resume, rp_err *result);

/* A person sees to boards that have gone for good: they begin anew, where the roster has them. */
void rp_cluster_repair(rp_cluster *cluster);
void rp_sim_folder_remove(const char *folder);
/* Whether the folder has gone back to an older state, of an older term than the boards know: the
 * run is refused until so many more resumes have made it newer. */
bool rp_cluster_has_forgotten(const rp_cluster *cluster);
/* Whether disk faults have left no checkpoint whole; a person then removes them. */
bool rp_cluster_lost_checkpoints(const rp_cluster *cluster);
void rp_cluster_remove_checkpoints(rp_cluster *cluster);

/* The boards go on by themselves for so long. */
void rp_cluster_rest(rp_cluster *cluster, int64_t for_ns);

/* Whether in the last life of the controller a fault was there that may end a run. */
bool rp_cluster_had_reason(const rp_cluster *cluster);
/* When the last fault that has begun is over; where a board is away for longer than it is waited
 * for: when that began. */
int64_t rp_cluster_calm_ns(const rp_cluster *cluster);
/* A line of the event log. */
void rp_cluster_note(rp_cluster *cluster, const char *text);
/* Faults that have begun, with an effect. */
uint32_t rp_cluster_faults_applied(const rp_cluster *cluster);
const rp_sim_marks *rp_cluster_marks(const rp_cluster *cluster);
const rp_eventlog *rp_cluster_events(const rp_cluster *cluster);
int64_t rp_cluster_now_ns(const rp_cluster *cluster);

#endif
