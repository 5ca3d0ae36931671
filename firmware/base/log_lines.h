/* The last log lines by number, including those that were not printed. The newest of them may be
 * kept in a file that outlives the process, so that the lines before a crash can be read. */
#ifndef RP_BASE_LOG_LINES_H
#define RP_BASE_LOG_LINES_H

#include <stdbool.h>
#include <stdint.h>

enum {
    RP_LOG_LINES = 128,
    RP_LOG_LINE_BYTES = 512,
    RP_LOG_KEPT_LINES = 64, /* lines in the file; debug lines are not stored there */
    RP_LOG_KEPT_BYTES = 256
};

typedef struct {
    uint64_t number;              /* starts at 1; continues after the lines of the file */
    int64_t time_ms;              /* ms since 1970 */
    int level;                    /* an rp_log_level (an int because log.h includes this header) */
    char text[RP_LOG_LINE_BYTES]; /* without the clock */
} rp_log_line;

/* The first line with at least this `number` and at least the severity of `level`. Returns false if
 * there is no such line. */
bool rp_log_line_from(uint64_t number, int level, rp_log_line *out);
/* Number of the first of the newest `count` lines with at least the severity of `level`. */
uint64_t rp_log_lines_begin(uint32_t count, int level);
/* number after the newest line; 1 if there are no lines */
uint64_t rp_log_lines_end(void);
/* Number of the newest error, or 0. An earlier process that did not end in order counts. */
uint64_t rp_log_newest_error(void);

/* Keeps lines in this file from now on; the lines it already contains become the oldest ones in the
 * ring. The file is a ring of RP_LOG_KEPT_LINES text records of RP_LOG_KEPT_BYTES, each ending with
 * a newline. An error line is synced, at most every 10 s. Invalid records are skipped. Returns 0 or
 * an errno. */
int rp_log_keep(const char *path);
/* Marks an orderly end of the process in the file, so that the next process reports no crash. */
void rp_log_keep_end(void);

/* Writes the lines to standard error; async-signal-safe enough for an abort path. */
void rp_log_dump(void);

/* ---- for log.c ------------------------------------------------------------------------------- */

/* Adds one line. `clock_bytes` is the length of the clock at the beginning of `text`. */
void rp_log_lines_put(int level, int64_t time_ms, const char *text, uint32_t clock_bytes);

#endif
