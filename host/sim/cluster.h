/* A ring in one process on a virtual clock: the controller and the agents of a real run, with other
 * arguments. Boards compute with the `timed` or the `digest` executor, links use the inproc
 * transport and a line that faults change, and the clock is that of world.h.
 *
 * A run is a pure function of the run file, the seed and the faults; equal hashes of the event log
 * show it.
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
    uint32_t boards;               /* boards of the ring, then its spares */
    const rp_roster_entry *roster; /* by board; borrowed. NULL: local agents */
    const char *listen;            /* address that dialling boards use; NULL: none dials */
    uint32_t may_lose;             /* boards that may be lost for good while the run goes on */
    const char *plan;              /* path; NULL: the controller makes a plan */
    const char *executor;          /* "digest" or "timed" */
    const double *layer_seconds;   /* forward, backward of each layer for one sample; borrowed.
                                      NULL: the executor's own */
    uint32_t layer_count;
    const rp_profile *profile;   /* replaces layer_seconds for each board; borrowed. NULL: none */
    uint64_t seed;               /* of interleavings, sessions and lines */
    const rp_sim_faults *faults; /* borrowed; NULL: none */
    const char *folder;          /* run folder */
    bool resume;                 /* the first life of the controller resumes `folder` */
    bool temporary;              /* the folder is removed after the run */
    FILE *progress, *result;     /* of the controller; NULL: not printed */
    FILE *trace;                 /* event log in text, or NULL */
    rp_format format;
    int64_t stale_from_ns; /* `stale` faults that begin later wait for a later controller life */
    const uint64_t *memory_bytes; /* by board; 0, or NULL for all: unlimited. Borrowed */
    int64_t wait_ns;              /* ring.wait of the run file */
    int64_t limit_ns;             /* virtual time for the whole run, all resumes included */
} rp_cluster_options;

typedef enum {
    RP_CLUSTER_FINISHED,
    RP_CLUSTER_STOPPED, /* the controller ended the run early, or crashed */
    RP_CLUSTER_LIMIT    /* limit_ns was reached */
} rp_cluster_end;

typedef struct rp_cluster rp_cluster;

/* Starts the boards, which wait for a host. errors MEMORY, USAGE */
rp_err rp_cluster_open(rp_arena *arena, const rp_cluster_options *options,
                       rp_cluster **out) RP_MUST_CHECK;
void rp_cluster_close(rp_cluster **cluster);

/* One life of the controller, from its start to its end; `resume`: it resumes the run folder.
 * *result is that of rp_controller_close(), or OK after a crash. */
rp_cluster_end rp_cluster_run_life(rp_cluster *cluster, bool resume, rp_err *result);

/* What a person would do between two lives: restarts lost boards with their roster entries. */
void rp_cluster_repair(rp_cluster *cluster);
void rp_sim_folder_remove(const char *folder);
/* Whether the folder has gone back to a state whose term is older than the one boards know. They
 * refuse the run until enough resumes have raised the term. */
bool rp_cluster_has_forgotten(const rp_cluster *cluster);
/* Whether disk faults have left no checkpoint intact, so that a person has to remove them all. */
bool rp_cluster_lost_checkpoints(const rp_cluster *cluster);
void rp_cluster_remove_checkpoints(rp_cluster *cluster);

/* Runs the boards without a controller for `for_ns`. */
void rp_cluster_rest(rp_cluster *cluster, int64_t for_ns);

/* Whether the last life of the controller had a fault that may end a run. */
bool rp_cluster_had_reason(const rp_cluster *cluster);
/* End of the last fault that has begun; begin of one that loses its board. */
int64_t rp_cluster_calm_ns(const rp_cluster *cluster);
/* Adds a line to the event log. */
void rp_cluster_note(rp_cluster *cluster, const char *text);
/* Number of faults that have begun. */
uint32_t rp_cluster_faults_applied(const rp_cluster *cluster);
const rp_sim_marks *rp_cluster_marks(const rp_cluster *cluster);
const rp_eventlog *rp_cluster_events(const rp_cluster *cluster);
int64_t rp_cluster_now_ns(const rp_cluster *cluster);

#endif
