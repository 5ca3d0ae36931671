/* Process setup and teardown, so that a program behaves the same however it was started: closed
 * descriptors, signals that would end it in the middle of a write, lost output. */
#ifndef RP_BASE_PROCESS_H
#define RP_BASE_PROCESS_H

#include "base/err.h"

/* Call it first in main(). Opens /dev/null for each of descriptors 0, 1 and 2 that is closed, so
 * that no other file gets its number. A write to a pipe without a reader then fails with EPIPE, and
 * one beyond the file size limit (`ulimit -f`) with EFBIG, instead of ending the program. Child
 * programs get the default actions of both signals. */
void rp_process_begin(void);

/* Call it last in main(), with the exit code. Flushes standard output. If any output could not be
 * written, prints why on standard error and changes exit code 0 to 2. If the reader has closed the
 * pipe, the program ends by SIGPIPE, as it would have without rp_process_begin(). A call of exit()
 * elsewhere does the same. */
int rp_process_end(int code);

/* Flushes standard output. Returns 0, or the errno with which some output could not be written. */
int rp_process_output_error(void);

/* Handles lost output before the end of the program: logs the message, or ends the program by
 * SIGPIPE. errors IO */
rp_err rp_process_lost_output(int error) RP_MUST_CHECK;

#endif
