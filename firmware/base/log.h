/* The log: one line per event on standard error. The last lines are also kept in a ring in memory
 * (log_lines.h). Any thread may log. If systemd's journal reads standard error, a line begins with
 * its priority (see sd-daemon(3)), so that `journalctl -p err` finds errors. */
#ifndef RP_BASE_LOG_H
#define RP_BASE_LOG_H

#include <pthread.h>

#include "base/attributes.h"

typedef enum { RP_LOG_ERROR, RP_LOG_WARN, RP_LOG_INFO, RP_LOG_DEBUG } rp_log_level;
/* A level for rp_log_setup() that prints nothing. */
#define RP_LOG_NOTHING ((rp_log_level)-1)

/* Lines above `level` go to the ring only. Default: RP_LOG_INFO, or the environment's
 * RP_LOG=error|warn|info|debug. `who` (the board or "host") is part of every line; it is copied. */
void rp_log_setup(rp_log_level level, const char *who);
rp_log_level rp_log_level_now(void);
/* The level given on the command line; it overrides the environment. A debug level is permanent;
 * any other level caps what rp_log_setup() can request later. */
void rp_log_choose(rp_log_level level);

/* Prints lines in the style of an interactive program, without clock and room: `program: text`,
 * `program: warning: text`, `program: note: text`. With RP_LOG=debug, and in the ring, lines stay
 * complete. `program` is copied. Daemons should not call this, because a journal needs complete
 * lines. */
void rp_log_setup_plain(const char *program);

/* From now on lines of this thread go to the ring only. For a thread whose errors another thread
 * reports, so that they are not printed twice. */
void rp_log_hush_thread(void);

#define rp_log_error(...) rp_log_at(RP_LOG_ERROR, __FILE__, __LINE__, __VA_ARGS__)
#define rp_log_warn(...) rp_log_at(RP_LOG_WARN, __FILE__, __LINE__, __VA_ARGS__)
#define rp_log_info(...) rp_log_at(RP_LOG_INFO, __FILE__, __LINE__, __VA_ARGS__)
#define rp_log_debug(...) rp_log_at(RP_LOG_DEBUG, __FILE__, __LINE__, __VA_ARGS__)
void rp_log_at(rp_log_level level, const char *file, int line, const char *format, ...)
    RP_PRINTF(4, 5);

/* A function called before each line that its thread prints; for example, a progress view first
 * clears its own lines. It must not log. The hook is owned by the caller, which keeps it in memory
 * until the same thread removes it. Lines of other threads do not call it. */
typedef struct rp_log_hook {
    void (*before_line)(void *context);
    void *context;
    pthread_t thread; /* both set by the log */
    struct rp_log_hook *next;
} rp_log_hook;
void rp_log_add_hook(rp_log_hook *hook);
void rp_log_remove_hook(rp_log_hook *hook); /* ignores a hook that was not added */

#endif
