/* Reads log.jsonl line by line while it is written, even if a recovery removes lines. */
#ifndef RP_RUNS_FOLLOW_H
#define RP_RUNS_FOLLOW_H

#include <stdio.h>

#include "runs/story.h"

typedef struct {
    const char *path; /* borrowed */
    FILE *file;       /* NULL: does not exist yet */
    double last_s;    /* time of the last line that was returned */
    bool again;       /* the file was replaced: lines up to last_s were returned before */
    bool torn;        /* inside of a line that is too long to be valid */
} rp_follow;

/* Reads the next line that is not RP_STORY_NOTHING. false: no new line yet. */
bool rp_follow_next(rp_follow *follow, rp_story *out);
void rp_follow_close(rp_follow *follow);

#endif
