/* Errors: one list, logged once where the fault is found, returned up the call chain. */
#ifndef RP_BASE_ERR_H
#define RP_BASE_ERR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attributes.h"

/* Columns: name, process exit code, whether an unchanged retry may succeed, text. `ringpipe --help`
 * promises the exit codes: 2 bad usage or input, 3 ring failed, 4 device or driver, 5 refused by
 * security, 130 interrupted. Agents send the number of an error, so new errors are added at the
 * end. */
#define RP_ERR_LIST(X)                                                                             \
    X(OK, 0, false, "success")                                                                     \
    X(USAGE, 2, false, "bad usage or input")                                                       \
    X(FORMAT, 2, false, "malformed file or message")                                               \
    X(SHAPE, 2, false, "shapes do not fit")                                                        \
    X(LIMIT, 2, false, "a limit is exceeded")                                                      \
    X(IO, 2, false, "file or system call failed")                                                  \
    X(MEMORY, 3, false, "out of memory")                                                           \
    X(TIMEOUT, 3, true, "timed out")                                                               \
    X(PEER, 3, false, "a peer failed or broke the protocol")                                       \
    X(FAULT, 3, true, "the ring failed")                                                           \
    X(DEVICE, 4, false, "device or driver fault")                                                  \
    X(NUMERIC, 4, false, "wrong or non-finite numbers")                                            \
    X(REFUSED, 5, false, "refused by security")                                                    \
    X(INTERRUPTED, 130, false, "interrupted")                                                      \
    X(AGAIN, 3, true, "not ready yet")                                                             \
    X(DATA, 2, false, "damaged data of the user")

typedef enum {
#define X(name, exit_code, transient, text) RP_ERR_##name,
    RP_ERR_LIST(X)
#undef X
        RP_ERR_COUNT,
    RP_OK = RP_ERR_OK
} rp_err;

/* Text of the error class, never NULL. */
const char *rp_err_text(rp_err err);

/* Exit code of a process that ends with this error. */
int rp_err_exit_code(rp_err err);

/* Whether a retry can help: a timeout, a peer that may come back, a queue that may drain. */
bool rp_err_is_transient(rp_err err);

enum { RP_ERR_MESSAGE_BYTES = 1024 };

/* The message of the last rp_fail() of this thread, without file and line; "" before the first. */
const char *rp_err_message(void);
/* Adopts the message of another thread, which has already logged it. */
void rp_err_set_message(const char *message);

/* Logs `message` with file and line, keeps it for rp_err_message(), and returns `err`.
 * Call it where the fault is found, never on the way up. */
#define rp_fail(err, ...) rp_fail_at((err), __FILE__, __LINE__, __VA_ARGS__)
rp_err rp_fail_at(rp_err err, const char *file, int line, const char *format, ...) RP_PRINTF(4, 5);

/* While `hold`, messages of this thread are kept but not logged, because the caller adds the place
 * to them and fails again. Returns the previous setting. */
bool rp_err_hold(bool hold);

/* Jumps to `fail:` with the local `rp_err err` set when `call` fails. */
#define RP_TRY(call)                                                                               \
    do {                                                                                           \
        err = (call);                                                                              \
        if (err != RP_OK) {                                                                        \
            goto fail;                                                                             \
        }                                                                                          \
    } while (0)

/* Asserts an invariant; always compiled in. On failure it dumps the log ring and aborts. */
#define RP_ASSERT(condition)                                                                       \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            rp_assert_failed(#condition, __FILE__, __LINE__);                                      \
        }                                                                                          \
    } while (0)
_Noreturn void rp_assert_failed(const char *condition, const char *file, int line);

#endif
