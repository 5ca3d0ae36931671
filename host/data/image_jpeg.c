#include "data/image.h"

#include <string.h>

#include <turbojpeg.h>

/* Bytes between two parts of a file that every decoder passes over; real pictures have them. */
static bool is_harmless(const char *warning) {
    return strstr(warning, "extraneous bytes before marker") != NULL;
}

static rp_err decode(tjhandle handle, const char *path, const uint8_t *bytes, size_t count,
                     rp_image *out) {
    int width;
    int height;
    int subsampling;
    int colours;
    rp_err err;
    if (tjDecompressHeader3(handle, bytes, (unsigned long)count, &width, &height, &subsampling,
                            &colours) != 0 &&
        tjGetErrorCode(handle) != TJERR_WARNING) {
        return rp_fail(RP_ERR_FORMAT, "%s: %s", path, tjGetErrorStr2(handle));
    }
    RP_TRY(rp_image_new(path, (uint64_t)width, (uint64_t)height, out));
    if (tjDecompress2(handle, bytes, (unsigned long)count, out->pixels, width, 0, height, TJPF_RGB,
                      TJFLAG_ACCURATEDCT | TJFLAG_LIMITSCANS) != 0 &&
        !(tjGetErrorCode(handle) == TJERR_WARNING && is_harmless(tjGetErrorStr2(handle)))) {
        return rp_fail(RP_ERR_FORMAT, "%s: is damaged: %s", path, tjGetErrorStr2(handle));
    }
fail:
    return err;
}

rp_err rp_image_decode_jpeg(const char *path, const uint8_t *bytes, size_t count, rp_image *out) {
    const tjhandle handle = tjInitDecompress();
    if (!handle) {
        return rp_fail(RP_ERR_MEMORY, "%s: no memory for libjpeg-turbo", path);
    }
    rp_err err = decode(handle, path, bytes, count, out);
    (void)tjDestroy(handle);
    return err;
}
