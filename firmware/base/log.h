/* One line per event on standard error; the last lines also lie in a ring that a crash dumps.
 * Any thread may log. */
#ifndef RP_BASE_LOG_H
#define RP_BASE_LOG_H

#include "base/attributes.h"

typedef enum { RP_LOG_ERROR, RP_LOG_WARN, RP_LOG_INFO, RP_LOG_DEBUG } rp_log_level;
/* For rp_log_setup(): below every level, so that nothing is printed. */
#define RP_LOG_NOTHING ((rp_log_level)-1)

/* Lines above `level` go to the ring only. Default: RP_LOG_INFO, or the environment's
 * RP_LOG=error|warn|info|debug. `who` (the board or "host") stands in every line; it is copied. */
void rp_log_setup(rp_log_level level, const char *who);
rp_log_level rp_log_level_now(void);

#define rp_log_error(...) rp_log_at(RP_LOG_ERROR, __FILE__, __LINE__, __VA_ARGS__)
#define rp_log_warn(...) rp_log_at(RP_LOG_WARN, __FILE__, __LINE__, __VA_ARGS__)
#define rp_log_info(...) rp_log_at(RP_LOG_INFO, __FILE__, __LINE__, __VA_ARGS__)
#define rp_log_debug(...) rp_log_at(RP_LOG_DEBUG, __FILE__, __LINE__, __VA_ARGS__)
void rp_log_at(rp_log_level level, const char *file, int line, const char *format, ...)
    RP_PRINTF(4, 5);

/* Called before each line that this thread prints (the host's progress bar clears its line first);
 * it may not log. NULL takes it away. Lines of other threads do not call it. */
void rp_log_hook(void (*before_line)(void));

/* Writes the ring to standard error; async-signal-safe enough for an abort path. */
void rp_log_dump(void);

#endif
