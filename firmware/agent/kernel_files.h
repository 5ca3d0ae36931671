/* Files of the kernel that have one number or one word, such as those below /sys. */
#ifndef RP_AGENT_KERNEL_FILES_H
#define RP_AGENT_KERNEL_FILES_H

#include <stdbool.h>
#include <stddef.h>

enum { RP_KERNEL_PATH_BYTES = 512 };

/* Reads up to `bytes` of a file, without its final newline. false: missing or empty. */
bool rp_kernel_read(const char *path, char *out, size_t bytes);
/* Parses the whole content of folder/name as a number in this base. */
bool rp_kernel_number(const char *folder, const char *name, int base, double *out);
/* Whether folder/name has this text. */
bool rp_kernel_is(const char *folder, const char *name, const char *wanted);
/* Calls `visit` for the first entries of root/path that begin with `prefix`, at most 64. */
void rp_kernel_each(const char *root, const char *path, const char *prefix, void *context,
                    void (*visit)(const char *folder, const char *name, void *context));

#endif
