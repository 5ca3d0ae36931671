/* One line per event on standard error; the last lines also lie in a ring (log_lines.h).
 * Any thread may log. Where systemd's journal reads standard error a line begins with its priority,
 * as sd-daemon(3) says, so that `journalctl -p err` finds errors. */
#ifndef RP_BASE_LOG_H
#define RP_BASE_LOG_H

#include <pthread.h>

#include "base/attributes.h"

typedef enum { RP_LOG_ERROR, RP_LOG_WARN, RP_LOG_INFO, RP_LOG_DEBUG } rp_log_level;
/* For rp_log_setup(): below every level, so that nothing is printed. */
#define RP_LOG_NOTHING ((rp_log_level)-1)

/* Lines above `level` go to the ring only. Default: RP_LOG_INFO, or the environment's
 * RP_LOG=error|warn|info|debug. `who` (the board or "host") stands in every line; it is copied. */
void rp_log_setup(rp_log_level level, const char *who);
rp_log_level rp_log_level_now(void);
/* What a command line asks for, before the environment and for good: a debug level stays, another
 * one is the most that rp_log_setup() can ask for. */
void rp_log_choose(rp_log_level level);

/* Lines look as those of a program that a person calls, without a clock and a room: `program:
 * text`, `program: warning: text`, `program: note: text`. With RP_LOG=debug, and in the ring, they
 * stay whole. `program` is copied. For one that runs on its own, a journal's lines are better. */
void rp_log_setup_plain(const char *program);

/* From here on lines of this thread go to the ring only: for one whose errors another thread says
 * again, so that they are not printed twice. */
void rp_log_hush_thread(void);

#define rp_log_error(...) rp_log_at(RP_LOG_ERROR, __FILE__, __LINE__, __VA_ARGS__)
#define rp_log_warn(...) rp_log_at(RP_LOG_WARN, __FILE__, __LINE__, __VA_ARGS__)
#define rp_log_info(...) rp_log_at(RP_LOG_INFO, __FILE__, __LINE__, __VA_ARGS__)
#define rp_log_debug(...) rp_log_at(RP_LOG_DEBUG, __FILE__, __LINE__, __VA_ARGS__)
void rp_log_at(rp_log_level level, const char *file, int line, const char *format, ...)
    RP_PRINTF(4, 5);

/* Called before each line that the thread prints which has added it (a progress view clears its own
 * lines first); it may not log. The hook stays the caller's, and in its place until it is removed,
 * by the same thread. Lines of other threads do not call it. */
typedef struct rp_log_hook {
    void (*before_line)(void *context);
    void *context;
    pthread_t thread; /* these two are the log's */
    struct rp_log_hook *next;
} rp_log_hook;
void rp_log_add_hook(rp_log_hook *hook);
void rp_log_remove_hook(rp_log_hook *hook); /* one that was not added is none */

#endif
