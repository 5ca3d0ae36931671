#include "base/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"

/* A handler, not SIG_IGN, because exec() resets handlers but keeps ignored signals. */
static void on_failed_write(int signal_number) {
    (void)signal_number;
}

/* A signal that was ignored when the program began stays ignored. */
static void handle_signal(int signal_number) {
    const struct sigaction action = {.sa_handler = on_failed_write, .sa_flags = SA_RESTART};
    struct sigaction before;
    if (sigaction(signal_number, NULL, &before) == 0 && before.sa_handler == SIG_DFL) {
        (void)sigaction(signal_number, &action, NULL);
    }
}

/* open() returns the lowest free number, so the loop ends after descriptor 2. */
static void open_standard_descriptors(void) {
    int fd = 0;
    while (fd >= 0 && fd <= STDERR_FILENO) {
        fd = open("/dev/null", O_RDWR);
    }
    if (fd > STDERR_FILENO) {
        (void)close(fd);
    }
}

/* Finds out why a write failed. The errno of an earlier failure is lost, so this writes another
 * byte, which fails for the same reason. */
int rp_process_output_error(void) {
    const bool lost = ferror(stdout);
    errno = 0;
    if (lost) {
        (void)putchar('\n');
    }
    if (fflush(stdout) != 0) {
        return errno;
    }
    return lost ? EIO : 0;
}

static bool reader_has_gone(int code) {
    struct sigaction now;
    return code == EPIPE && sigaction(SIGPIPE, NULL, &now) == 0 && now.sa_handler != SIG_IGN;
}

rp_err rp_process_lost_output(int error) {
    if (reader_has_gone(error)) {
        (void)signal(SIGPIPE, SIG_DFL);
        (void)raise(SIGPIPE);
    }
    return rp_fail(RP_ERR_IO, "standard output could not be written: %s", strerror(error));
}

int rp_process_end(int code) {
    const int error = rp_process_output_error();
    clearerr(stdout);
    return error == 0 || code != 0 ? code : rp_err_exit_code(rp_process_lost_output(error));
}

/* Runs when a library calls exit(). */
static void end_process(void) {
    const int code = rp_process_end(0);
    if (code != 0) {
        _exit(code);
    }
}

void rp_process_begin(void) {
    open_standard_descriptors();
    handle_signal(SIGPIPE);
    handle_signal(SIGXFSZ);
    (void)atexit(end_process);
}
