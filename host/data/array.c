#include "data/array.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <zlib.h>

#include "base/input.h"
#include "data/gzip.h"

enum {
    COUNT_MAX = 1000 * 1000 * 1000,
    HEADER_BYTES_MAX = 65536,
    IDX_DIMS_MAX = RP_DIMS_MAX + 1,
    PIECE_BYTES = 16384,
    CLASS_MAX = 65535,
    PACKED_MOST = 1032 /* largest compression ratio of deflate */
};

/* ---- .npy ------------------------------------------------------------------------------------ */

/* Parser of the header: a Python dict of three keys. */
typedef struct {
    const char *at, *end;
    const char *path;
} parser;

static rp_err fail_header(const parser *p, const char *expected) {
    const int shown = (int)(p->end - p->at < 24 ? p->end - p->at : 24);
    return rp_fail(RP_ERR_FORMAT, "%s: header: expected %s at '%.*s'", p->path, expected, shown,
                   p->at);
}

static void skip_blanks(parser *p) {
    while (p->at < p->end && strchr(" \t\n", *p->at) && *p->at) {
        p->at++;
    }
}

static bool take_char(parser *p, char c) {
    skip_blanks(p);
    if (p->at < p->end && *p->at == c) {
        p->at++;
        return true;
    }
    return false;
}

static bool take_word(parser *p, const char *word) {
    const size_t length = strlen(word);
    skip_blanks(p);
    if ((size_t)(p->end - p->at) >= length && memcmp(p->at, word, length) == 0) {
        p->at += length;
        return true;
    }
    return false;
}

/* '...' or "..."; at most 31 bytes. */
static bool take_text(parser *p, char text[32]) {
    skip_blanks(p);
    const char quote = p->at < p->end ? *p->at : '\0';
    size_t length = 0;
    if (quote != '\'' && quote != '"') {
        return false;
    }
    for (p->at++; p->at < p->end && *p->at != quote && length < 31; p->at++) {
        text[length++] = *p->at;
    }
    text[length] = '\0';
    return take_char(p, quote);
}

static rp_err take_type(parser *p, rp_array *out) {
    static const struct {
        const char *name;
        rp_number number;
        uint32_t bytes;
    } types[] = {
        {"f4", RP_NUMBER_FLOAT, 4},    {"f8", RP_NUMBER_FLOAT, 8},    {"u1", RP_NUMBER_UNSIGNED, 1},
        {"u2", RP_NUMBER_UNSIGNED, 2}, {"u4", RP_NUMBER_UNSIGNED, 4}, {"u8", RP_NUMBER_UNSIGNED, 8},
        {"i1", RP_NUMBER_SIGNED, 1},   {"i2", RP_NUMBER_SIGNED, 2},   {"i4", RP_NUMBER_SIGNED, 4},
        {"i8", RP_NUMBER_SIGNED, 8},
    };
    char text[32];
    if (!take_text(p, text)) {
        return fail_header(p, "a type of numbers");
    }
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        const bool ordered = text[0] == '<' || text[0] == '>' || types[i].bytes == 1;
        if (ordered && text[0] && strcmp(text + 1, types[i].name) == 0) {
            out->number = types[i].number;
            out->bytes = types[i].bytes;
            out->big_endian = text[0] == '>';
            return RP_OK;
        }
    }
    return rp_fail(RP_ERR_FORMAT,
                   "%s: unsupported type of numbers '%s'; expected f4, f8, u1 to u8 or i1 to i8",
                   p->path, text);
}

static rp_err take_shape(parser *p, rp_array *out) {
    uint64_t dim[IDX_DIMS_MAX];
    uint32_t dims = 0;
    if (!take_char(p, '(')) {
        return fail_header(p, "a shape");
    }
    while (!take_char(p, ')')) {
        uint64_t value = 0;
        skip_blanks(p);
        const char *first = p->at;
        while (p->at < p->end && *p->at >= '0' && *p->at <= '9' && value <= COUNT_MAX) {
            value = value * 10 + (uint64_t)(*p->at++ - '0');
        }
        if (p->at == first || value > COUNT_MAX || dims == IDX_DIMS_MAX) {
            p->at = first;
            return fail_header(p, "a shape of up to 7 dimensions");
        }
        dim[dims++] = value;
        if (!take_char(p, ',') && !(p->at < p->end && *p->at == ')')) {
            return fail_header(p, "',' or ')'");
        }
    }
    if (dims == 0) {
        return rp_fail(RP_ERR_FORMAT,
                       "%s: the array is a single number; expected one dimension or more, the "
                       "first of which counts samples",
                       p->path);
    }
    out->count = (uint32_t)dim[0];
    out->sample.dims = dims - 1;
    for (uint32_t i = 1; i < dims; i++) {
        out->sample.dim[i - 1] = (uint32_t)dim[i];
    }
    return RP_OK;
}

static rp_err take_entry(parser *p, rp_array *out, uint32_t *seen) {
    static const char *const keys[] = {"descr", "fortran_order", "shape"};
    char key[32];
    uint32_t k = 0;
    if (!take_text(p, key) || !take_char(p, ':')) {
        return fail_header(p, "a key");
    }
    while (k < 3 && strcmp(key, keys[k]) != 0) {
        k++;
    }
    if (k == 3 || *seen & 1u << k) {
        return fail_header(p, "each of descr, fortran_order, shape once");
    }
    *seen |= 1u << k;
    if (k == 1 && take_word(p, "True")) {
        return rp_fail(RP_ERR_FORMAT,
                       "%s: the array is in Fortran order, which is not supported; save it with "
                       "numpy.ascontiguousarray()",
                       p->path);
    }
    return k == 0                  ? take_type(p, out)
           : k == 2                ? take_shape(p, out)
           : take_word(p, "False") ? RP_OK
                                   : fail_header(p, "True or False");
}

rp_err rp_array_parse_npy(const char *text, size_t bytes, const char *path, rp_array *out) {
    parser p = {text, text + bytes, path};
    uint32_t seen = 0;
    rp_err err = RP_OK;
    if (!take_char(&p, '{')) {
        return fail_header(&p, "'{'");
    }
    while (!take_char(&p, '}')) {
        RP_TRY(take_entry(&p, out, &seen));
        skip_blanks(&p);
        if (!take_char(&p, ',') && !(p.at < p.end && *p.at == '}')) {
            return fail_header(&p, "',' or '}'");
        }
    }
    skip_blanks(&p);
    if (seen != 7 || p.at != p.end) {
        return fail_header(&p, "exactly the keys descr, fortran_order and shape");
    }
fail:
    return err;
}

/* Where the header's text begins and how long it is, from the first bytes of a file. */
static rp_err find_npy_header(const uint8_t first[12], size_t got, const char *path, uint64_t *at,
                              uint64_t *bytes) {
    if (got < 10 || memcmp(first, "\x93NUMPY", 6) != 0 || first[6] < 1 || first[6] > 3) {
        return rp_fail(RP_ERR_FORMAT, "%s: this is not a .npy file of version 1, 2 or 3", path);
    }
    const bool wide = first[6] > 1;
    *at = wide ? 12 : 10;
    *bytes = (uint64_t)first[8] | (uint64_t)first[9] << 8 |
             (wide ? (uint64_t)first[10] << 16 | (uint64_t)first[11] << 24 : 0);
    return RP_OK;
}

static rp_err fail_npy_header(const char *path, uint64_t bytes) {
    return rp_fail(RP_ERR_FORMAT,
                   "%s: invalid header of %llu bytes: the file is truncated or "
                   "damaged",
                   path, (unsigned long long)bytes);
}

static rp_err read_npy(int fd, const char *path, rp_array *out) {
    uint8_t first[12] = {0};
    char text[HEADER_BYTES_MAX];
    const ssize_t got = pread(fd, first, sizeof first, 0);
    uint64_t at;
    uint64_t bytes;
    const rp_err err = find_npy_header(first, got > 0 ? (size_t)got : 0, path, &at, &bytes);
    if (err != RP_OK) {
        return err;
    }
    if (bytes > sizeof text || pread(fd, text, bytes, (off_t)at) != (ssize_t)bytes) {
        return fail_npy_header(path, bytes);
    }
    out->at = at + bytes;
    return rp_array_parse_npy(text, (size_t)bytes, path, out);
}

/* ---- idx ------------------------------------------------------------------------------------- */

static uint32_t big_u32(const uint8_t *b) {
    return (uint32_t)b[3] | (uint32_t)b[2] << 8 | (uint32_t)b[1] << 16 | (uint32_t)b[0] << 24;
}

/* Parses a header of at most 4 + 4 * 7 bytes. */
static rp_err parse_idx(const uint8_t *head, size_t bytes, const char *path, rp_array *out) {
    static const struct {
        uint8_t code;
        rp_number number;
        uint32_t bytes;
    } types[] = {{8, RP_NUMBER_UNSIGNED, 1}, {9, RP_NUMBER_SIGNED, 1}, {11, RP_NUMBER_SIGNED, 2},
                 {12, RP_NUMBER_SIGNED, 4},  {13, RP_NUMBER_FLOAT, 4}, {14, RP_NUMBER_FLOAT, 8}};
    size_t i = 0;
    while (bytes >= 4 && i < sizeof types / sizeof *types && types[i].code != head[2]) {
        i++;
    }
    if (bytes < 4 || head[0] || head[1] || i == sizeof types / sizeof *types || head[3] < 1 ||
        head[3] > IDX_DIMS_MAX || bytes < 4 + 4 * (size_t)head[3]) {
        return rp_fail(RP_ERR_FORMAT, "%s: this is not an idx file of 1 to %d dimensions", path,
                       IDX_DIMS_MAX);
    }
    out->number = types[i].number;
    out->bytes = types[i].bytes;
    out->big_endian = true;
    out->count = big_u32(head + 4);
    out->sample.dims = head[3] - 1u;
    for (uint32_t d = 0; d < out->sample.dims; d++) {
        out->sample.dim[d] = big_u32(head + 8 + 4 * (size_t)d);
    }
    out->at = 4 + 4 * (uint64_t)head[3];
    return RP_OK;
}

/* ---- opening --------------------------------------------------------------------------------- */

/* Total bytes of the numbers; 0: invalid count or shape. */
static uint64_t bytes_of(const rp_array *a) {
    if (a->count == 0 || a->count > COUNT_MAX || !rp_shape_check(&a->sample)) {
        return 0;
    }
    return (uint64_t)a->count * rp_shape_count(&a->sample) * a->bytes; /* below 2^30 * 2^31 * 8 */
}

static rp_err check_size(const rp_array *a, uint64_t file_bytes) {
    const uint64_t bytes = bytes_of(a);
    if (bytes == 0) {
        return rp_fail(RP_ERR_FORMAT,
                       "%s: invalid size: %u samples; expected 1 to %d samples, each of at least "
                       "one number and less than 2^31",
                       a->path, a->count, COUNT_MAX);
    }
    if (file_bytes != a->at + bytes) {
        return rp_fail(
            RP_ERR_FORMAT,
            "%s: the header requires %llu bytes, but the file has %llu: it is truncated or damaged",
            a->path, (unsigned long long)(a->at + bytes), (unsigned long long)file_bytes);
    }
    return RP_OK;
}

/* `says`: the unpacked size modulo 2^32, which gzip stores at the end of the file. */
static rp_err unpack_idx(rp_arena *arena, gzFile file, uint64_t packed, uint32_t says,
                         rp_array *out) {
    uint8_t head[4 + 4 * IDX_DIMS_MAX];
    uint8_t *numbers;
    rp_err err;
    const int got = gzread(file, head, sizeof head);
    RP_TRY(parse_idx(head, got > 0 ? (size_t)got : 0, out->path, out));
    const uint64_t bytes = bytes_of(out);
    if (bytes == 0 || bytes / PACKED_MOST > packed || (uint32_t)(out->at + bytes) != says) {
        return rp_fail(RP_ERR_FORMAT,
                       "%s: the header does not match the unpacked size: the file is truncated or "
                       "damaged",
                       out->path);
    }
    RP_TRY(RP_ARENA_NEW(arena, bytes, &numbers));
    if (gzseek(file, (z_off_t)out->at, SEEK_SET) < 0) {
        return rp_fail(RP_ERR_FORMAT, "%s: %s", out->path, rp_gzip_problem(file));
    }
    for (uint64_t done = 0; done < bytes;) {
        const uint64_t rest = bytes - done;
        const int part = gzread(file, numbers + done, rest < 1 << 20 ? (unsigned)rest : 1u << 20);
        if (part <= 0) {
            return rp_fail(RP_ERR_FORMAT, "%s: is truncated or damaged: %s", out->path,
                           part < 0 ? rp_gzip_problem(file) : "it ends too early");
        }
        done += (uint64_t)part;
    }
    RP_TRY(rp_gzip_check_end(file, out->path));
    out->unpacked = numbers;
fail:
    return err;
}

static rp_err read_packed(rp_arena *arena, int fd, off_t file_bytes, rp_array *out) {
    uint8_t tail[4] = {0};
    (void)!pread(fd, tail, 4, file_bytes - 4);
    const uint32_t says = (uint32_t)tail[0] | (uint32_t)tail[1] << 8 | (uint32_t)tail[2] << 16 |
                          (uint32_t)tail[3] << 24;
    const int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    gzFile file = copy >= 0 ? gzdopen(copy, "rb") : NULL;
    if (!file) {
        if (copy >= 0) {
            (void)close(copy);
        }
        return rp_fail(RP_ERR_MEMORY, "%s: no memory for zlib", out->path);
    }
    rp_err err = unpack_idx(arena, file, (uint64_t)file_bytes, says, out);
    (void)gzclose(file);
    return err;
}

static rp_err read_header(rp_arena *arena, int fd, rp_array *out) {
    struct stat facts;
    uint8_t head[4 + 4 * IDX_DIMS_MAX] = {0};
    const size_t length = strlen(out->path);
    rp_err err;
    if (fstat(fd, &facts) != 0 || !S_ISREG(facts.st_mode)) {
        return rp_fail(RP_ERR_IO, "%s: is not a regular file", out->path);
    }
    const ssize_t got = pread(fd, head, sizeof head, 0);
    if (length > 4 && strcmp(out->path + length - 4, ".npy") == 0) {
        RP_TRY(read_npy(fd, out->path, out));
    } else if (got > 2 && head[0] == 0x1f && head[1] == 0x8b) {
        return read_packed(arena, fd, facts.st_size, out);
    } else {
        RP_TRY(parse_idx(head, got > 0 ? (size_t)got : 0, out->path, out));
    }
    RP_TRY(check_size(out, (uint64_t)facts.st_size));
fail:
    return err;
}

rp_err rp_array_open(rp_arena *arena, const char *path, rp_array *out) {
    *out = (rp_array){.fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
    if (out->fd < 0) {
        return rp_fail(RP_ERR_IO, "%s: cannot be opened: %s", path, strerror(errno));
    }
    out->path = path;
    rp_err err = read_header(arena, out->fd, out);
    if (err != RP_OK || out->unpacked) {
        (void)close(out->fd);
        out->fd = -1;
    }
    if (err != RP_OK) {
        *out = (rp_array){.fd = -1};
    }
    return err;
}

rp_err rp_array_open_bytes(const uint8_t *bytes, size_t count, const char *name, rp_array *out) {
    uint8_t first[12] = {0};
    uint64_t at;
    uint64_t length;
    rp_err err;
    memcpy(first, bytes, count < sizeof first ? count : sizeof first);
    *out = (rp_array){.fd = -1, .path = name};
    RP_TRY(find_npy_header(first, count, name, &at, &length));
    if (length > HEADER_BYTES_MAX || count < at || length > count - at) {
        return fail_npy_header(name, length);
    }
    RP_TRY(rp_array_parse_npy((const char *)bytes + at, (size_t)length, name, out));
    out->at = at + length;
    RP_TRY(check_size(out, count));
    out->unpacked = bytes + out->at;
fail:
    return err;
}

void rp_array_close(rp_array *array) {
    if (array->path && array->fd >= 0) {
        (void)close(array->fd);
    }
    *array = (rp_array){.fd = -1};
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Copies bytes [first, first + count) of the numbers to `to`. */
static rp_err fetch_bytes(const rp_array *a, uint64_t first, uint8_t *to, size_t count) {
    if (a->unpacked) {
        memcpy(to, a->unpacked + first, count);
        return RP_OK;
    }
    return rp_input_read(a->fd, a->path, a->at + first, to, count);
}

/* Bits of a number, whose byte order may be either. */
static uint64_t bits_of(const rp_array *a, const uint8_t *at) {
    uint64_t bits = 0;
    for (uint32_t i = 0; i < a->bytes; i++) {
        bits |= (uint64_t)at[a->big_endian ? a->bytes - 1 - i : i] << (8 * i);
    }
    return bits;
}

static int64_t whole_of(const rp_array *a, uint64_t bits) {
    const uint32_t unused = 64 - 8 * a->bytes;
    return a->number == RP_NUMBER_UNSIGNED ? (int64_t)bits : (int64_t)(bits << unused) >> unused;
}

static double value_of(const rp_array *a, uint64_t bits) {
    float single;
    double wide;
    if (a->number == RP_NUMBER_UNSIGNED) {
        return (double)bits;
    }
    if (a->number == RP_NUMBER_SIGNED) {
        return (double)whole_of(a, bits);
    }
    if (a->bytes == 4) {
        const uint32_t low = (uint32_t)bits;
        memcpy(&single, &low, sizeof single);
        return (double)single;
    }
    memcpy(&wide, &bits, sizeof wide);
    return wide;
}

const char *rp_array_type(const rp_array *a, char *text) {
    text[0] = "fui"[a->number];
    text[1] = (char)('0' + a->bytes);
    text[2] = '\0';
    return text;
}

bool rp_array_has_bytes(const rp_array *a) {
    return a->number == RP_NUMBER_UNSIGNED && a->bytes == 1;
}

/* Fills `value` with doubles, or `row` with floats if `value` is NULL. */
static rp_err read_numbers(const rp_array *a, uint32_t index, double unit, double *value,
                           float *row) {
    uint8_t piece[PIECE_BYTES];
    const size_t values = rp_shape_count(&a->sample);
    const size_t step = PIECE_BYTES / a->bytes;
    const uint64_t first = (uint64_t)index * values * a->bytes;
    for (size_t done = 0; done < values; done += step) {
        const size_t n = values - done < step ? values - done : step;
        rp_err err = fetch_bytes(a, first + done * a->bytes, piece, n * a->bytes);
        if (err != RP_OK) {
            return err;
        }
        for (size_t i = 0; i < n; i++) {
            const double number = value_of(a, bits_of(a, piece + i * a->bytes)) / unit;
            if (!isfinite((float)number)) {
                return rp_fail(RP_ERR_FORMAT, "%s: value %zu of sample %u is not finite", a->path,
                               done + i, index);
            }
            if (value) {
                value[done + i] = number;
            } else {
                row[done + i] = (float)number;
            }
        }
    }
    return RP_OK;
}

rp_err rp_array_read(const rp_array *a, uint32_t index, bool pixels, double *value) {
    return read_numbers(a, index, pixels && rp_array_has_bytes(a) ? 255 : 1, value, NULL);
}

rp_err rp_array_read_row(const rp_array *a, uint32_t index, float *row) {
    return read_numbers(a, index, 1, NULL, row);
}

/* A number that is too large for it is INT64_MAX. */
static int64_t limit_whole(const rp_array *a, uint64_t bits) {
    const bool huge = a->number == RP_NUMBER_UNSIGNED && bits > INT64_MAX;
    return huge ? INT64_MAX : whole_of(a, bits);
}

rp_err rp_array_read_whole(const rp_array *a, uint32_t index, int32_t least, int32_t most,
                           int32_t *value) {
    uint8_t piece[PIECE_BYTES];
    const size_t values = rp_shape_count(&a->sample);
    const size_t step = PIECE_BYTES / a->bytes;
    const uint64_t first = (uint64_t)index * values * a->bytes;
    RP_ASSERT(a->number != RP_NUMBER_FLOAT);
    for (size_t done = 0; done < values; done += step) {
        const size_t n = values - done < step ? values - done : step;
        rp_err err = fetch_bytes(a, first + done * a->bytes, piece, n * a->bytes);
        if (err != RP_OK) {
            return err;
        }
        for (size_t i = 0; i < n; i++) {
            const int64_t number = limit_whole(a, bits_of(a, piece + i * a->bytes));
            if (number < least || number > most) {
                return rp_fail(RP_ERR_FORMAT,
                               "%s: value %zu of sample %u is %lld, expected a whole number from "
                               "%d to %d",
                               a->path, done + i, index, (long long)number, least, most);
            }
            value[done + i] = (int32_t)number;
        }
    }
    return RP_OK;
}

rp_err rp_array_read_class(const rp_array *a, uint32_t index, int32_t *label) {
    uint8_t bytes[8];
    RP_ASSERT(a->number != RP_NUMBER_FLOAT);
    rp_err err = fetch_bytes(a, (uint64_t)index * a->bytes, bytes, a->bytes);
    if (err != RP_OK) {
        return err;
    }
    const int64_t class = limit_whole(a, bits_of(a, bytes));
    *label = (int32_t) class;
    return class >= 0 && class <= CLASS_MAX
               ? RP_OK
               : rp_fail(RP_ERR_FORMAT, "%s: invalid class %lld of sample %u; expected 0 to %d",
                         a->path, (long long)class, index, CLASS_MAX);
}
