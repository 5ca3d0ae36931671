/* JSON as a program's result on standard output. */
#ifndef RP_BASE_JSON_PRINT_H
#define RP_BASE_JSON_PRINT_H

#include <jansson.h>
#include <stdio.h>

#include "base/err.h"

/* Writes `object` as one line and takes the reference. `object` is NULL if a text that is not UTF-8
 * prevented its creation. `flags` are those of json_dumpf(). rp_process_end() reports a failed
 * write. errors FORMAT not UTF-8 */
rp_err rp_json_print(json_t *object, size_t flags, FILE *file) RP_MUST_CHECK;

/* A path as a JSON string. Each byte that is not UTF-8 becomes \xHH, as in messages. */
json_t *rp_json_path(const char *path);

#endif
