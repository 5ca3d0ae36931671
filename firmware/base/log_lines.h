/* The last lines that were logged, by number, also those that nobody printed. A file may keep the
 * newest of them beyond the end of the process, so that somebody sees what was said before it. */
#ifndef RP_BASE_LOG_LINES_H
#define RP_BASE_LOG_LINES_H

#include <stdbool.h>
#include <stdint.h>

enum {
    RP_LOG_LINES = 128,
    RP_LOG_LINE_BYTES = 512,
    RP_LOG_KEPT_LINES = 64, /* of the file: debug lines are not among them */
    RP_LOG_KEPT_BYTES = 256
};

typedef struct {
    uint64_t number;              /* from 1; they go on where those of the file end */
    int64_t time_ms;              /* since 1970 */
    int level;                    /* rp_log_level; log.h stands on this file */
    char text[RP_LOG_LINE_BYTES]; /* without the clock */
} rp_log_line;

/* The first line from `number` on that is of `level` or weightier. False: there is none. */
bool rp_log_line_from(uint64_t number, int level, rp_log_line *out);
/* Where the newest `count` lines of `level` or weightier begin. */
uint64_t rp_log_lines_begin(uint32_t count, int level);
uint64_t rp_log_lines_end(void); /* behind the newest; 1: there are none */
/* The newest error, 0: none. A process that ended without a word counts as one for the next. */
uint64_t rp_log_newest_error(void);

/* Lines are kept in this file from now on; those that it has become the oldest ones here. It has
 * RP_LOG_KEPT_LINES records of RP_LOG_KEPT_BYTES, text that ends with a newline each, which are
 * written over in turn; an error is synced, at most every 10 s. What is no record is passed over.
 * 0, or what errno says. */
int rp_log_keep(const char *path);
/* The process ends in order: the next one needs not say that it did not. */
void rp_log_keep_end(void);

/* Writes the lines to standard error; async-signal-safe enough for an abort path. */
void rp_log_dump(void);

/* ---- for log.c ------------------------------------------------------------------------------- */

/* One more line. `clock_bytes`: of its text, the clock in front. */
void rp_log_lines_put(int level, int64_t time_ms, const char *text, uint32_t clock_bytes);

#endif
