/* Lines of log.jsonl as text. */
#ifndef RP_RUNS_STORY_H
#define RP_RUNS_STORY_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

typedef enum {
    RP_STORY_NOTHING, /* invalid line, or a line only for programs */
    RP_STORY_STEP,
    RP_STORY_EVENT
} rp_story_kind;

typedef struct {
    rp_story_kind kind;
    uint64_t step;
    double time_s;
    char text[400]; /* "0:12  step 985  epoch 3  loss 0.4312  4901 samples/s" */
} rp_story;

/* Converts a line of log.jsonl, with or without newline. */
void rp_story_read(const char *line, size_t length, rp_story *out);

/* "0:31", "4:21:42" */
enum { RP_STORY_TIME_BYTES = 32 };
void rp_story_time(double seconds, char out[RP_STORY_TIME_BYTES]);

#endif
