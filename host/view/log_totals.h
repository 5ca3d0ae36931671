/* What the log of a run says in all: the newest step, evaluations, recoveries. The file is read
 * once, and then only what was added; nothing is stored by line. */
#ifndef RP_VIEW_LOG_TOTALS_H
#define RP_VIEW_LOG_TOTALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RP_VIEW_SPLITS = 4, RP_VIEW_CAUSES = 8, RP_VIEW_WORD = 32, RP_VIEW_LINE_BYTES = 8192 };

typedef struct {
    char split[RP_VIEW_WORD];
    double loss, accuracy; /* NAN: unknown */
} rp_view_score;

typedef struct {
    char cause[RP_VIEW_WORD]; /* class of the fault */
    uint64_t count;
} rp_view_recovery;

typedef struct {
    uint64_t lines; /* complete ones */
    uint64_t step;  /* 0: no step yet */
    uint64_t epoch;
    double loss, learning_rate, samples_per_s, time_s; /* NAN: unknown */
    rp_view_score score[RP_VIEW_SPLITS];               /* newest of each split */
    uint32_t score_count;
    rp_view_recovery recovery[RP_VIEW_CAUSES];
    uint32_t recovery_count;
    char cause[RP_VIEW_WORD]; /* of the last fault */
} rp_view_log_totals;

void rp_view_log_begin(rp_view_log_totals *totals);
/* Takes a line without its newline. A line that is not a valid object is counted and ignored. */
void rp_view_log_take(rp_view_log_totals *totals, const char *line, size_t length);
/* Is it an event, as its beginning shows? Other lines are steps. */
bool rp_view_log_is_event(const char *line, size_t length);

/* The file, and how far it was read. */
typedef struct {
    rp_view_log_totals totals;
    uint64_t offset, device, inode;
    uint32_t generation; /* how often the file was replaced; a resumed run rewrites its log */
    bool known;          /* the file existed */
    bool more;           /* the last call ended at its limit, before the end of the file */
    int64_t changed_ns;  /* time of its last change, since 1970 */
} rp_view_log;

/* Reads what was added. Returns whether anything is new. */
bool rp_view_log_update(rp_view_log *log, const char *path);

#endif
