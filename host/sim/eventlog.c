#include "sim/eventlog.h"

#include <stdarg.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/clock.h"

enum { LINE_BYTES = 512 };

void rp_eventlog_open(rp_eventlog *log, FILE *file) {
    *log = (rp_eventlog){.file = file};
}

void rp_eventlog_add(rp_eventlog *log, int64_t now_ns, const char *who, const char *format, ...) {
    char line[LINE_BYTES];
    va_list arguments;
    const int head =
        snprintf(line, sizeof line, "[%5lld.%09lld] %s: ", (long long)(now_ns / RP_NS_PER_S),
                 (long long)(now_ns % RP_NS_PER_S), who);
    const size_t used = head > 0 && head < LINE_BYTES ? (size_t)head : 0;
    va_start(arguments, format);
    (void)vsnprintf(line + used, sizeof line - used, format, arguments);
    va_end(arguments);
    log->hash = XXH3_64bits_withSeed(line, strlen(line), log->hash);
    log->count++;
    if (log->file) {
        (void)fprintf(log->file, "%s\n", line);
    }
}
