/* The struct of a federated run, for the files of this room. */
#ifndef RP_FEDERATION_FEDERATION_OWN_H
#define RP_FEDERATION_FEDERATION_OWN_H

#include <jansson.h>

#include "base/arena.h"
#include "base/child.h"
#include "data/split_file.h"
#include "federation/center.h"
#include "federation/federation.h"
#include "federation/trace.h"
#include "folder/now_file.h"
#include "record/words.h"
#include "sites/asked.h"

enum { RP_FEDERATION_PATH = 4096, RP_FEDERATION_NOTE = 400, RP_SITE_TRIES_MAX = 5 };

/* Most steps or samples of a site's round: a million rounds of them can be added up. */
#define RP_SITE_COUNT_MAX (UINT64_C(1) << 40)

typedef enum {
    RP_SITE_IDLE,   /* takes no part in the round */
    RP_SITE_QUEUED, /* waits for the end of a site that trains, because of sites.at_once */
    RP_SITE_TRAINS,
    RP_SITE_RESTS, /* its process failed and starts again at start_ns */
    RP_SITE_DONE,  /* its round is done, and not averaged yet */
    RP_SITE_GIVEN_UP
} rp_site_condition;

/* Result of a round, from round.json. */
typedef struct {
    bool partial;
    uint64_t steps, samples, held;
    double loss; /* mean over the steps; NAN: unknown */
    double steps_weight, delta_norm, seconds;
    double accuracy, before_loss; /* of the round's start on the site's own validation part; NAN:
                                     it has none */
    uint64_t bytes;               /* of its weights, or of its update */
    uint64_t from; /* round of the state with which it began; RP_SITE_NO_ROUND: none */
    bool clipped;
} rp_site_answer;

typedef struct {
    const char *name;
    uint32_t index; /* in the split file */
    char *run_yaml, *log;
    char *kept;           /* folder of what it keeps from one round to the next */
    char *own, *next_own; /* elastic: weights from which it goes on */
    rp_site_condition condition;
    rp_child child;
    int64_t began_ns;               /* start of the child */
    char waits[RP_FEDERATION_NOTE]; /* boards that were last named; "": none in this round */
    uint64_t trains;                /* round of the child */
    int64_t start_ns;               /* time of the next start, while it rests */
    uint32_t tries;                 /* failures in this round */
    int exit_code;                  /* of its last end */
    bool sent;                      /* it was given the weights of this round */
    rp_site_answer answer;

    /* sums over the closed rounds, stored in federation.json */
    uint64_t rounds, late, failed, samples, up_bytes, down_bytes;
    double seconds, loss; /* loss of its last round; NAN: none yet */
    double accuracy;      /* of its last round's start; NAN: unknown */
    uint64_t last_round;  /* in which it took part; 0: none */
} rp_site;

typedef enum {
    RP_FEDERATION_WORK,
    RP_FEDERATION_EVALUATE, /* a child process scores the centre */
    RP_FEDERATION_STOP,     /* interrupted or failed: the children are ending */
    RP_FEDERATION_ENDED
} rp_federation_phase;

struct rp_federation {
    const rp_clock *clock;
    rp_site_engine engine;
    rp_federation_options options;
    rp_arena arena;
    const char *folder;
    int folder_fd; /* descriptor with its lock */
    bool owns_folder;
    char *run_yaml, *next_run, *model_yaml, *journal, *center, *next_center, *state, *next_state,
        *weights, *scores, *summary, *log_path, *eval_log, *discarded;
    FILE *log;

    /* from the run file */
    rp_federated_keys keys;
    const char *keep; /* patterns of sites.keep, separated by commas; "": none */
    const char *pattern[RP_SITE_PATTERNS_MAX]; /* the same as a list */
    const rp_model *model;
    const char *model_name, *schedule;
    uint64_t seed;
    uint32_t stages, eval_rounds; /* rounds between evaluations; 0: only at the end */
    bool has_test, finite;
    char split_digest[RP_SITES_DIGEST];
    rp_trace_site *trace; /* [sites]; NULL: all sites are always there */
    uint32_t size;        /* sites in a round */
    uint64_t weights_bytes;

    rp_site *site; /* [sites] in the order of the split file */
    uint32_t sites;
    uint32_t *list; /* [sites] scratch */

    /* stored in federation.json */
    uint64_t round; /* last closed round; 0: none */
    char digest[RP_CENTER_DIGEST];
    double seconds;   /* duration of earlier starts */
    double virtual_s; /* time on the clock of the trace when the next round begins */
    uint64_t scored;  /* round of the newest evaluation; 0: none */
    json_t *rows;     /* lines of the log about the last closed round, its own last */

    rp_federation_phase phase;
    int64_t now_ns, start_ns;
    int64_t round_ns;  /* start of the round; 0: no round has begun */
    int64_t said_ns;   /* when missing sites were last named; 0: not in this round */
    uint32_t asked;    /* sites of the round */
    uint32_t closed;   /* rounds closed since the start */
    uint32_t advances; /* of the trace's clock before this round */
    double loss;       /* mean loss of the last round */
    json_t *score;     /* newest evaluation, or NULL */
    rp_child scorer;
    bool log_failed;
    int64_t shown_ns;
    int64_t looked_ns; /* when boards of sites were last looked at */
    rp_now_file *now_file;
    rp_now_site *now_site; /* [sites] scratch */
    int64_t now_file_ns;   /* when it was last written; 0: not yet */
    uint32_t interrupts;
    rp_err result;
    char note[RP_FEDERATION_NOTE];
};

/* first_center.c: writes the weights of the start, by the seed or train.init. */
rp_err rp_federation_begin_center(const rp_runfile *run, const char *path) RP_MUST_CHECK;

/* federation_folder.c: takes the run folder. errors USAGE, IO */
rp_err rp_federation_take_folder(rp_federation *f) RP_MUST_CHECK;
void rp_federation_leave_folder(rp_federation *f);
/* Writes the run files of the sites from next_run, which becomes run.yaml after that.
 * errors as rp_runfile_read(); IO */
rp_err rp_federation_write_sites(rp_federation *f) RP_MUST_CHECK;
/* Folder of a site's round. */
void rp_federation_name_round(const rp_federation *f, uint64_t round, const rp_site *site,
                              char out[RP_FEDERATION_PATH]);
/* Removes the weights and traces of a site's round that is averaged or came too late. */
void rp_federation_remove_weights(const rp_federation *f, uint64_t round, const rp_site *site);
/* Removes the folder of the round that a site has trained, and what it has kept of it. errors IO */
rp_err rp_federation_remove_member(const rp_federation *f, const rp_site *site) RP_MUST_CHECK;
/* Removes the folders of a round that is not closed, and what sites have kept of it. errors IO */
rp_err rp_federation_remove_round(const rp_federation *f, uint64_t round) RP_MUST_CHECK;

/* federation_journal.c: writes federation.json. errors IO */
rp_err rp_federation_write_journal(const rp_federation *f) RP_MUST_CHECK;
/* Reads the journal, if any, and moves the files of its round into place. errors FORMAT, IO */
rp_err rp_federation_read_journal(rp_federation *f) RP_MUST_CHECK;
/* Call it once the round is in the journal: moves its files into place. errors IO */
rp_err rp_federation_place_files(const rp_federation *f) RP_MUST_CHECK;

/* federation_journal.c: makes f->keep and f->pattern. errors MEMORY */
rp_err rp_federation_list_keep(rp_federation *f) RP_MUST_CHECK;

/* site.c: starts a round of a site, or goes on with it. errors IO */
rp_err rp_member_start(const rp_federation *f, rp_site *site) RP_MUST_CHECK;
/* Reads the result of the round; makes weights of an update. errors FORMAT with what is wrong */
rp_err rp_member_read_answer(const rp_federation *f, rp_site *site) RP_MUST_CHECK;

/* The weights of a round that is done. */
void rp_member_name_weights(const rp_federation *f, const rp_site *site,
                            char out[RP_FEDERATION_PATH]);

/* Ends the run with this result; the children are told. Returns OK. */
rp_err rp_federation_stop(rp_federation *f, rp_err result, const char *format, ...) RP_PRINTF(3, 4);

/* Tells the engine which state is entered. errors the engine's */
RP_MUST_CHECK static inline rp_err rp_federation_enter(const rp_federation *f,
                                                       rp_federation_at state) {
    return f->engine.kind->enter ? f->engine.kind->enter(f->engine.context, state) : RP_OK;
}

/* site_boards.c: logs the boards for which rings of sites wait, at most twice a second. errors IO
 */
rp_err rp_federation_watch_boards(rp_federation *f) RP_MUST_CHECK;

/* federation_round.c: begins, watches and closes rounds. */
rp_err rp_federation_step_round(rp_federation *f) RP_MUST_CHECK;
/* Takes note that the process of a site has ended. */
rp_err rp_federation_note_ended(rp_federation *f, rp_site *site) RP_MUST_CHECK;
/* Time of the next thing to do. */
int64_t rp_federation_due_ns(const rp_federation *f);

/* federation_log.c */
double rp_federation_seconds(const rp_federation *f);
/* Time left by the mean of the rounds since the start; NAN before the first one is closed. */
double rp_federation_left_s(const rp_federation *f);
uint64_t rp_federation_samples(const rp_federation *f);
uint32_t rp_federation_count(const rp_federation *f, rp_site_condition condition);
/* Appends to the log; a line that a kill has cut off is removed. errors IO */
rp_err rp_federation_open_log(rp_federation *f) RP_MUST_CHECK;
rp_err rp_federation_log_event(rp_federation *f, const rp_run_event *event) RP_MUST_CHECK;
/* Makes f->rows of the round that closes, to be logged later. errors MEMORY */
rp_err rp_federation_make_rows(rp_federation *f) RP_MUST_CHECK;
void rp_federation_log_rows(rp_federation *f);
/* Completes the log with f->rows of the journal, if a kill has prevented it. */
void rp_federation_mend_log(rp_federation *f);
void rp_federation_log_score(rp_federation *f);
/* federation_round.c: whether the centre of the last closed round is to be evaluated. */
bool rp_federation_is_to_be_scored(const rp_federation *f);

/* federation_now.c: writes now.json of a real run, at most once a second. _end: for the last time.
 * errors of _begin: MEMORY */
rp_err rp_federation_begin_now(rp_federation *f) RP_MUST_CHECK;
void rp_federation_write_now(rp_federation *f);
void rp_federation_end_now(rp_federation *f);

/* federation_summary.c: writes summary.json and the result. errors IO */
rp_err rp_federation_summarise(rp_federation *f, const char *status) RP_MUST_CHECK;

#endif
