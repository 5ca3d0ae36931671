#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/log_lines.h"

static _Thread_local char last_message[RP_ERR_MESSAGE_BYTES];
static _Thread_local bool is_held;

const char *rp_err_text(rp_err err) {
    static const char *const texts[] = {
#define X(name, exit_code, transient, text) text,
        RP_ERR_LIST(X)
#undef X
    };
    return (unsigned)err < RP_ERR_COUNT ? texts[err] : "unknown error";
}

int rp_err_exit_code(rp_err err) {
    static const int codes[] = {
#define X(name, exit_code, transient, text) exit_code,
        RP_ERR_LIST(X)
#undef X
    };
    return (unsigned)err < RP_ERR_COUNT ? codes[err] : 3;
}

bool rp_err_is_transient(rp_err err) {
    static const bool transient[] = {
#define X(name, exit_code, transient, text) transient,
        RP_ERR_LIST(X)
#undef X
    };
    return (unsigned)err < RP_ERR_COUNT && transient[err];
}

const char *rp_err_message(void) {
    return last_message;
}

void rp_err_set_message(const char *message) {
    (void)snprintf(last_message, sizeof last_message, "%s", message);
}

bool rp_err_hold(bool hold) {
    const bool before = is_held;
    is_held = hold;
    return before;
}

rp_err rp_fail_at(rp_err err, const char *file, int line, const char *format, ...) {
    /* formatted separately because the arguments may point into last_message */
    char text[sizeof last_message];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    memcpy(last_message, text, sizeof last_message);
    if (!is_held) {
        rp_log_at(RP_LOG_ERROR, file, line, "%s", last_message);
    }
    return err;
}

_Noreturn void rp_assert_failed(const char *condition, const char *file, int line) {
    rp_log_at(RP_LOG_ERROR, file, line, "assertion failed: %s", condition);
    rp_log_dump();
    abort();
}
