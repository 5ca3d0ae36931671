/* The first and the last thing that a program does, so that it behaves the same however it was
 * started: descriptors, signals that would end it in the middle of a write, lost output. */
#ifndef RP_BASE_PROCESS_H
#define RP_BASE_PROCESS_H

#include "base/err.h"

/* Call it first in main(). Descriptors 0, 1 and 2 that are closed lead to /dev/null from here on,
 * so that no file gets their numbers. A write to a pipe without a reader fails with EPIPE, and one
 * beyond the file size limit (`ulimit -f`) with EFBIG, instead of ending the program. Programs that
 * this one starts get the default actions of both signals. */
void rp_process_begin(void);

/* Call it last in main(), with the exit code. Writes what standard output still buffers. Where any
 * of the output could not be written, it says why on standard error and turns exit code 0 into 2.
 * A reader that has gone is no error: the program then ends by SIGPIPE, as it would have without
 * rp_process_begin(). exit() from anywhere else does the same. */
int rp_process_end(int code);

/* Writes what standard output still buffers. Returns 0, or the errno for which some of the output
 * could not be written. */
int rp_process_output_error(void);

/* The message, or the end by SIGPIPE, of output that could not be written, before the end of the
 * program. errors IO */
rp_err rp_process_lost_output(int error) RP_MUST_CHECK;

#endif
