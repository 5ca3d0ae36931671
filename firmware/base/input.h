/* Input files, where `-` is the standard input.
 *
 * Some readers open a file several times or map it, so the program first calls rp_input_keep()
 * once, which turns any standard input into a file. */
#ifndef RP_BASE_INPUT_H
#define RP_BASE_INPUT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"

#define RP_INPUT_BYTES_MAX (UINT64_C(64) << 30)

bool rp_input_is_standard(const char *path); /* path is "-" */
/* The path to open for `path`; *name is what messages call it, such as "standard input". */
const char *rp_input_path(const char *path);
const char *rp_input_name(const char *path);

/* Opens a regular file for reading. Refuses a directory, a device and a pipe: they have no size,
 * never end, or may never be written to. On failure returns -1 (rp_input_fopen(): NULL), *why is
 * the reason in words, and errno is that of open() or EINVAL. */
int rp_input_open(const char *path, const char **why);
FILE *rp_input_fopen(const char *path, const char **why);

/* Reads bytes [first, first + count) of an open file into `to`. Messages call the file `name`.
 * errors  IO: the file cannot be read, or has become shorter */
rp_err rp_input_read(int fd, const char *name, uint64_t first, void *to,
                     size_t count) RP_MUST_CHECK;

/* If the standard input is not a file, copies it to an unnamed file and redirects the standard
 * input to that. Waits until the writer has closed its end.
 * errors  IO: cannot be read, no room for the copy; LIMIT: more than RP_INPUT_BYTES_MAX */
rp_err rp_input_keep(void) RP_MUST_CHECK;

#endif
