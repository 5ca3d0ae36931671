/* A file that is to be read, where `-` is the standard input.
 *
 * Some readers open a file several times or map it, so the standard input is first made a file,
 * whatever it was: rp_input_keep(), once, by the program. */
#ifndef RP_BASE_INPUT_H
#define RP_BASE_INPUT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"

#define RP_INPUT_BYTES_MAX (UINT64_C(64) << 30)

bool rp_input_is_standard(const char *path); /* "-" */
/* What to open for `path`, and its name in messages: "standard input". */
const char *rp_input_path(const char *path);
const char *rp_input_name(const char *path);

/* Opens a regular file for reading. A directory, a device or a pipe is refused: it has no size, or
 * never ends, or nothing is ever written to it. -1, NULL: *why says in words why not, and errno is
 * that of open() or EINVAL. */
int rp_input_open(const char *path, const char **why);
FILE *rp_input_fopen(const char *path, const char **why);

/* Reads the bytes [first, first + count) of an open file to `to`; `name` is the file's in messages.
 * errors  IO: it can not be read, or has become shorter */
rp_err rp_input_read(int fd, const char *name, uint64_t first, void *to,
                     size_t count) RP_MUST_CHECK;

/* Where the standard input is no file, copies it to one that has no name and puts that in its
 * place. Waits until the other end has written all.
 * errors  IO: can not be read, no room for the copy; LIMIT: more than RP_INPUT_BYTES_MAX */
rp_err rp_input_keep(void) RP_MUST_CHECK;

#endif
