/* log.jsonl line by line, while it is written: also when the run goes back and lines are taken out.
 */
#ifndef RP_RUNS_FOLLOW_H
#define RP_RUNS_FOLLOW_H

#include <stdio.h>

#include "runs/story.h"

typedef struct {
    const char *path; /* borrowed */
    FILE *file;       /* NULL: not there yet */
    double last_s;    /* time of the last line that was given */
    bool again;       /* in a new file: up to last_s all of it was given */
    bool torn;        /* behind a line that is too long to be one of ours */
} rp_follow;

/* The next line that says something. False: there is none now. */
bool rp_follow_next(rp_follow *follow, rp_story *out);
void rp_follow_close(rp_follow *follow);

#endif
