/* JSON as a program's result on standard output. */
#ifndef RP_BASE_JSON_PRINT_H
#define RP_BASE_JSON_PRINT_H

#include <jansson.h>
#include <stdio.h>

#include "base/err.h"

/* Writes `object` as one line and takes the reference. `object` is NULL where a name that is not
 * UTF-8 has kept it from being made. `flags` are those of json_dumpf(). A write that fails is told
 * by rp_process_end(). errors FORMAT not UTF-8 */
rp_err rp_json_print(json_t *object, size_t flags, FILE *file) RP_MUST_CHECK;

/* A path as a JSON string. Of one that is not UTF-8 each invalid byte becomes \xHH, as in messages.
 */
json_t *rp_json_path(const char *path);

#endif
