#include "base/json_print.h"

#include "base/printable.h"
#include "base/utf8.h"

enum { SHOWN_BYTES = 1 << 14 }; /* for the longest path, with 4 bytes for each byte */

rp_err rp_json_print(json_t *object, size_t flags, FILE *file) {
    const bool dumped = object && json_dumpf(object, file, flags) == 0;
    json_decref(object);
    if (!dumped && !ferror(file)) {
        return rp_fail(RP_ERR_FORMAT, "the result is not valid JSON; expected every name in UTF-8");
    }
    (void)fputc('\n', file);
    return RP_OK;
}

json_t *rp_json_path(const char *path) {
    char shown[SHOWN_BYTES];
    if (rp_utf8_is_valid(path)) {
        return json_string(path);
    }
    rp_printable(path, false, shown, sizeof shown);
    return json_string(shown);
}
