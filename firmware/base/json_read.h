/* Reading a JSON file that a user names. */
#ifndef RP_BASE_JSON_READ_H
#define RP_BASE_JSON_READ_H

#include <jansson.h>

#include "base/err.h"

/* Reads the file; the caller releases *out. A repeated key is an error.
 * errors  USAGE: the file cannot be opened, or is not JSON, with the line */
rp_err rp_json_read(const char *path, json_t **out) RP_MUST_CHECK;

#endif
