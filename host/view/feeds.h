/* The runs that are shown, each with its newest facts. They are read again only when they are asked
 * for: an active run at most once a second, an ended one when a file of it has changed. */
#ifndef RP_VIEW_FEEDS_H
#define RP_VIEW_FEEDS_H

#include "runs/found.h"
#include "view/run_files.h"
#include "view/text.h"

typedef struct {
    rp_view_run run;
    rp_arena arena; /* of facts and state */
    rp_view_facts facts;
    bool known;       /* facts are valid */
    uint64_t stamp;   /* of the files, when they were read */
    int64_t read_ns;  /* time of that; 0: never */
    uint32_t version; /* counts changes of `state` */
    char *state;      /* facts as JSON; NULL: not made */
    size_t state_bytes;
    uint32_t readers; /* streams that follow the run */
} rp_view_feed;

typedef struct {
    rp_arena *arena;
    const char *const *dir; /* [dir_count]; none: the active runs of this account */
    uint32_t dir_count;
    rp_view_feed *feed[RP_RUNS_MAX];
    uint32_t count;
    int64_t found_ns; /* time of the last search; 0: never */
    bool has_failed;  /* the last search has failed, so the next failure is not logged */
} rp_view_feeds;

/* Searches for runs. `dir` is borrowed. errors USAGE: a folder that is missing, or without runs;
 * MEMORY */
rp_err rp_view_feeds_open(rp_arena *arena, const char *const *dir, uint32_t dir_count,
                          rp_view_feeds **out) RP_MUST_CHECK;
void rp_view_feeds_close(rp_view_feeds *feeds);
/* Adds runs that are new, if the last search is some seconds old. A run that was found stays. */
void rp_view_feeds_search(rp_view_feeds *feeds, int64_t now_ns);
/* NULL: unknown. `name` NULL: the only run, or the first active one. */
rp_view_feed *rp_view_feeds_find(const rp_view_feeds *feeds, const char *name);
/* Brings a run up to date. */
void rp_view_feed_update(rp_view_feed *feed, int64_t now_ns);
/* Reads only what was added to its log. */
void rp_view_feed_follow(rp_view_feed *feed);

/* {"version":1,"runs":[..]} */
void rp_view_feeds_json(rp_view_feeds *feeds, int64_t now_ns, rp_view_text *out);
/* The metrics of all runs. errors MEMORY */
rp_err rp_view_feeds_metrics(rp_view_feeds *feeds, rp_arena *arena, int64_t now_ns,
                             rp_view_text *out) RP_MUST_CHECK;

#endif
