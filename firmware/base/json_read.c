#include "base/json_read.h"

#include <stdio.h>

#include "base/input.h"

rp_err rp_json_read(const char *path, json_t **out) {
    json_error_t problem;
    const char *why;
    FILE *file = rp_input_fopen(path, &why);
    *out = NULL;
    if (!file) {
        return rp_fail(RP_ERR_USAGE, "%s: %s", path, why);
    }
    *out = json_loadf(file, JSON_REJECT_DUPLICATES, &problem);
    (void)fclose(file);
    return *out ? RP_OK : rp_fail(RP_ERR_USAGE, "%s:%d: %s", path, problem.line, problem.text);
}
