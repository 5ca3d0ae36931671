#include "data/gzip.h"

#include <stdint.h>
#include <string.h>

/* Removes zlib's prefix "<fd:4>: ". */
const char *rp_gzip_problem(gzFile file) {
    int code;
    const char *text = gzerror(file, &code);
    const char *end = strstr(text, ">: ");
    return end ? end + 3 : text;
}

rp_err rp_gzip_check_end(gzFile file, const char *path) {
    uint8_t more;
    int code = Z_OK;
    const int got = gzread(file, &more, 1);
    (void)gzerror(file, &code);
    if (got == 0 && code == Z_OK) {
        return RP_OK;
    }
    return rp_fail(RP_ERR_FORMAT, "%s: %s", path,
                   got > 0 ? "bytes follow the last sample" : rp_gzip_problem(file));
}
