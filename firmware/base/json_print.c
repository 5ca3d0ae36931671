#include "base/json_print.h"

rp_err rp_json_print(json_t *object, size_t flags, FILE *file) {
    const bool dumped = object && json_dumpf(object, file, flags) == 0;
    json_decref(object);
    if (!dumped && !ferror(file)) {
        return rp_fail(RP_ERR_FORMAT, "the result is not valid as JSON: is every name UTF-8?");
    }
    (void)fputc('\n', file);
    return RP_OK;
}
