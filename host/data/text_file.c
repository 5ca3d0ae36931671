#include "data/text_file.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/input.h"
#include "data/unicode.h"

#define BYTE_ORDER_MARK "\xef\xbb\xbf"

static rp_err read_open(rp_arena *arena, int fd, rp_text_file *file) {
    struct stat facts;
    char *text;
    rp_err err;
    if (fstat(fd, &facts) != 0) {
        return rp_fail(RP_ERR_IO, "%s: cannot be read: %s", file->path, strerror(errno));
    }
    if (facts.st_size == 0) {
        return rp_fail(RP_ERR_FORMAT, "%s: the file is empty", file->path);
    }
    if ((uint64_t)facts.st_size > RP_TEXT_FILE_BYTES_MAX) {
        return rp_fail(RP_ERR_LIMIT, "%s: has %lld bytes, expected at most %llu (2 GiB)",
                       file->path, (long long)facts.st_size,
                       (unsigned long long)RP_TEXT_FILE_BYTES_MAX);
    }
    file->bytes = (size_t)facts.st_size;
    RP_TRY(RP_ARENA_NEW(arena, file->bytes + 1, &text));
    RP_TRY(rp_input_read(fd, file->path, 0, text, file->bytes));
    file->skipped = strncmp(text, BYTE_ORDER_MARK, 3) == 0 ? 3 : 0;
    file->text = text + file->skipped;
    file->bytes -= file->skipped;
    if (file->bytes == 0) {
        return rp_fail(RP_ERR_FORMAT, "%s: the file is empty after its byte order mark",
                       file->path);
    }
fail:
    return err;
}

rp_err rp_text_file_read(rp_arena *arena, const char *path, rp_text_file *out) {
    const char *why;
    const int fd = rp_input_open(path, &why);
    *out = (rp_text_file){.path = path};
    if (fd < 0) {
        return rp_fail(RP_ERR_IO, "%s: cannot be opened: %s", path, why);
    }
    const rp_err err = read_open(arena, fd, out);
    (void)close(fd);
    return err;
}

rp_err rp_text_file_check(const rp_text_file *file) {
    const char *end = file->text + file->bytes;
    uint32_t code = 0;
    uint32_t length;
    for (const char *at = file->text; at < end; at += length) {
        length = rp_unicode_read(at, end, &code);
        if (length == 0 || code == 0) {
            const size_t place = (size_t)(at - file->text);
            return rp_fail(RP_ERR_FORMAT,
                           "%s:%u: byte %zu of the file is 0x%02x: expected a text in UTF-8%s",
                           file->path, rp_text_file_line(file, place), file->skipped + place,
                           (uint8_t)*at, length > 0 ? " without zero bytes" : "");
        }
    }
    return RP_OK;
}

rp_err rp_text_file_check_nfc(const rp_text_file *file) {
    const size_t place = rp_unicode_nfc_bytes(file->text, file->bytes);
    return place == file->bytes
               ? RP_OK
               : rp_fail(RP_ERR_FORMAT,
                         "%s:%u: byte %zu of the file: the tokeniser expects a text in normal form "
                         "C; convert it, as with Python's unicodedata.normalize(\"NFC\", text)",
                         file->path, rp_text_file_line(file, place), file->skipped + place);
}

uint32_t rp_text_file_line(const rp_text_file *file, size_t at) {
    uint32_t line = 1;
    for (size_t i = 0; i < at; i++) {
        line += file->text[i] == '\n';
    }
    return line;
}
