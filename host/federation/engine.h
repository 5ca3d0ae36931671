/* How a federated run has its sites train and its centre scored. The run decides which work starts
 * and when, and reads results from files. An engine does the work: as child processes
 * (processes.c), or on a virtual clock (host/simsites). A running piece of work is an rp_child
 * whose `pid` is the engine's number of it, above 0. */
#ifndef RP_FEDERATION_ENGINE_H
#define RP_FEDERATION_ENGINE_H

#include "base/child.h"
#include "run/runfile.h"

/* A round of a site. The engine writes weights.safetensors, or the update that the options ask
 * for, and then round.json to `out`, as ringpipe-round(1) says, and ends with an exit code of this
 * verb. */
typedef struct {
    uint32_t site; /* in the split file */
    const char *name;
    const char *run_yaml, *log; /* run file of the site; file that gets its output */
    const char *in, *out;       /* weights from which it trains; folder of the round */
    const char *kept;           /* folder of what the site keeps from one round to the next */
    const char *keys;           /* folder of keys; NULL: none given */
    const rp_site_options *options;
    uint64_t round;
    uint32_t steps, epochs; /* exactly one of them is above 0 */
} rp_round_order;

/* An evaluation of the centre. The engine writes {"eval": {...}} to `scores`. */
typedef struct {
    const char *folder; /* of the run */
    const char *weights, *keys;
    const char *scores, *log;
} rp_score_order;

/* States of the run at which it may be killed without harm. Each is entered after its files are
 * complete. */
typedef enum {
    RP_FEDERATION_AT_BEGIN,    /* the sites of a round are drawn */
    RP_FEDERATION_AT_ANSWER,   /* the answer of a site is read */
    RP_FEDERATION_AT_AVERAGE,  /* the next centre and the rule's state are written */
    RP_FEDERATION_AT_JOURNAL,  /* the round is in the journal */
    RP_FEDERATION_AT_PLACING,  /* before each file of the round is moved into place */
    RP_FEDERATION_AT_PLACED,   /* all of them are in place */
    RP_FEDERATION_AT_LOG,      /* the log has the lines of the round */
    RP_FEDERATION_AT_CLEARED,  /* weights of the round are removed */
    RP_FEDERATION_AT_SCORED,   /* the score is in the journal */
    RP_FEDERATION_AT_EXPORTED, /* the result is written, the summary is not */
    RP_FEDERATION_AT_STATES
} rp_federation_at;

typedef struct {
    /* Starts work; `child` is all zeros. errors IO */
    rp_err (*start_round)(void *context, rp_child *child,
                          const rp_round_order *order) RP_MUST_CHECK;
    rp_err (*start_score)(void *context, rp_child *child,
                          const rp_score_order *order) RP_MUST_CHECK;
    /* As rp_child_tell(), rp_child_press(), rp_child_reap() and rp_child_kill(). */
    void (*tell)(void *context, rp_child *child, int64_t now_ns);
    void (*press)(void *context, rp_child *child, int64_t now_ns);
    bool (*reap)(void *context, rp_child *child, int *code);
    void (*kill)(void *context, rp_child *child);
    /* Writes the weights of the start. errors as rp_federation_begin_center() */
    rp_err (*begin_center)(void *context, const rp_runfile *run, const char *path) RP_MUST_CHECK;
    /* Bytes that the weights in a file are on the line to or from a site. */
    uint64_t (*file_bytes)(void *context, const char *path);
    /* Names the boards that the ring of a round that runs waits for, separated by commas; "": it
     * waits for none, or it is unknown. `out`: folder of the round. NULL: sites have no boards. */
    void (*list_away)(void *context, const char *out, char *names, size_t bytes);
    /* Called in each of the states above. An error ends the run, which then leaves its files as
     * they are. NULL: not called. */
    rp_err (*enter)(void *context, rp_federation_at state) RP_MUST_CHECK;
} rp_site_engine_kind;

typedef struct {
    const rp_site_engine_kind *kind;
    void *context;
} rp_site_engine;

/* processes.c: child processes `ringpipe round` and `ringpipe eval`. */
rp_site_engine rp_site_processes(void);

#endif
