#include "data/image.h"

#include <setjmp.h>
#include <stdio.h>

#include <jpeglib.h>

#include <jerror.h>

enum { SCANS_MAX = 500 }; /* a small progressive file could contain many more, as an attack */

/* State of libjpeg's callbacks. */
typedef struct {
    struct jpeg_error_mgr callbacks; /* first member, because cinfo->err is cast to this struct */
    struct jpeg_progress_mgr progress;
    jmp_buf leave;
    char message[JMSG_LENGTH_MAX];
    int code; /* of the message (jerror.h) */
} failure;

static _Noreturn void leave(j_common_ptr cinfo) {
    failure *f = (failure *)cinfo->err;
    f->code = cinfo->err->msg_code;
    cinfo->err->format_message(cinfo, f->message);
    longjmp(f->leave, 1);
}

/* Every warning is treated as an error, because it means wrong pixels. Exception: extra bytes
 * between parts of the file, which real pictures have and every decoder ignores. */
static void heed_warning(j_common_ptr cinfo, int level) {
    if (level < 0 && cinfo->err->msg_code != JWRN_EXTRANEOUS_DATA) {
        leave(cinfo);
    }
}

static void limit_scans(j_common_ptr cinfo) {
    if (cinfo->is_decompressor && ((j_decompress_ptr)cinfo)->input_scan_number > SCANS_MAX) {
        ERREXIT(cinfo, JERR_BAD_PROGRESSION);
    }
}

/* Is the file valid, but of a kind that libjpeg does not support? */
static bool is_unsupported(int code) {
    return code == JERR_SOF_UNSUPPORTED || code == JERR_BAD_PRECISION ||
           code == JERR_ARITH_NOTIMPL || code == JERR_CONVERSION_NOTIMPL ||
           code == JERR_FRACT_SAMPLE_NOTIMPL || code == JERR_CCIR601_NOTIMPL ||
           code == JERR_NOT_COMPILED;
}

/* a * b / 255, rounded */
static uint8_t multiply(uint32_t a, uint32_t b) {
    const uint32_t product = a * b + 128;
    return (uint8_t)((product + (product >> 8)) >> 8);
}

/* Converts CMYK to red, green and blue: 255 - ink, darkened by black. With Adobe's marker each ink
 * is stored as 255 - ink. source  Pillow: convert("RGB") of a CMYK picture */
static void mix_inks(const uint8_t *inks, bool inverted, uint32_t width, uint8_t *to) {
    for (uint32_t x = 0; x < width; x++, inks += 4, to += 3) {
        for (int c = 0; c < 3; c++) {
            to[c] =
                inverted ? multiply(inks[c], inks[3]) : multiply(255u - inks[c], 255u - inks[3]);
        }
    }
}

/* Contains every call that may longjmp. No local variable is read after a longjmp. */
static rp_err decode(struct jpeg_decompress_struct *jpeg, failure *f, const char *path,
                     const uint8_t *bytes, size_t count, rp_image *out) {
    if (setjmp(f->leave) != 0) {
        return rp_fail(RP_ERR_FORMAT, "%s: %s: %s", path,
                       is_unsupported(f->code) ? "this kind of JPEG is not supported"
                                               : "the picture is damaged",
                       f->message);
    }
    jpeg_create_decompress(jpeg);
    jpeg->progress = &f->progress;
    jpeg_mem_src(jpeg, bytes, (unsigned long)count);
    (void)jpeg_read_header(jpeg, TRUE); /* returns only if there is a picture */
    rp_err err = rp_image_new(path, jpeg->image_width, jpeg->image_height, out);
    if (err != RP_OK) {
        return err;
    }
    const bool inks = jpeg->num_components == 4;
    jpeg->out_color_space = inks ? JCS_CMYK : JCS_RGB;
    (void)jpeg_start_decompress(jpeg);
    uint8_t *row = inks ? jpeg->mem->alloc_large((j_common_ptr)jpeg, JPOOL_IMAGE,
                                                 (size_t)jpeg->output_width * 4)
                        : NULL;
    while (jpeg->output_scanline < jpeg->output_height) {
        uint8_t *to = out->pixels + (size_t)jpeg->output_scanline * jpeg->output_width * 3;
        uint8_t *line = inks ? row : to;
        (void)jpeg_read_scanlines(jpeg, &line, 1);
        if (inks) {
            mix_inks(row, jpeg->saw_Adobe_marker, jpeg->output_width, to);
        }
    }
    (void)jpeg_finish_decompress(jpeg);
    return RP_OK;
}

rp_err rp_image_decode_jpeg(const char *path, const uint8_t *bytes, size_t count, rp_image *out) {
    struct jpeg_decompress_struct jpeg = {0};
    failure f = {.progress = {.progress_monitor = limit_scans}};
    jpeg.err = jpeg_std_error(&f.callbacks);
    f.callbacks.error_exit = leave;
    f.callbacks.emit_message = heed_warning;
    rp_err err = decode(&jpeg, &f, path, bytes, count, out);
    jpeg_destroy_decompress(&jpeg);
    return err;
}
