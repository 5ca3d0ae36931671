#include "data/inputs.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/input.h"
#include "data/array.h"
#include "data/columns.h"
#include "data/image.h"
#include "data/layout.h"
#include "data/pixels.h"
#include "data/resize.h"

enum { PARTS_BYTES = 600 };

/* State of reading one file. */
typedef struct {
    const rp_description *about;
    const char *path; /* to open */
    rp_input_place place;
    rp_err (*on_sample)(void *context, const rp_input_place *place, const float *x);
    void *context;
    rp_arena arena;
    float *x;
    double *value; /* of rows and arrays: x before it is normalised and rounded */
    /* for a CSV file: */
    bool began;
    uint32_t columns;
    rp_fields fields; /* of the training file, with the columns of this file */
    double *number;   /* [fields.count] */
} reading;

static rp_err give_sample(reading *r, uint32_t number) {
    r->place.number = number;
    return r->on_sample(r->context, &r->place, r->x);
}

/* Normalises and rounds as a set does (norm.h). */
static void round_values(reading *r, bool bytes) {
    static const rp_norm none = {0};
    const size_t count = rp_shape_count(&r->about->sample);
    rp_norm_round(bytes ? &none : &r->about->norm, r->value, r->x, count);
    if (bytes) {
        rp_norm_apply(&r->about->norm, r->x, count);
    }
}

/* ---- a picture ------------------------------------------------------------------------------- */

static rp_err read_picture(reading *r) {
    const rp_shape *sample = &r->about->sample;
    rp_image image = {0};
    void *pixels = NULL;
    rp_err err;
    RP_TRY(rp_image_read(r->path, sample->dim[0] == 1, &image));
    RP_TRY(rp_block_new(rp_shape_count(sample), &pixels));
    RP_TRY(rp_resize(&image, sample->dim[1], sample->dim[2], pixels));
    rp_pixels_spread(pixels, sample, r->x);
    rp_norm_apply(&r->about->norm, r->x, rp_shape_count(sample));
    RP_TRY(give_sample(r, 0));
fail:
    if (pixels) {
        rp_block_free(pixels);
    }
    rp_image_free(&image);
    return err;
}

/* ---- a CSV file ------------------------------------------------------------------------------ */

static bool is_named(const reading *r) {
    return r->fields.field[0].name != NULL;
}

static bool has_names(const reading *r, const rp_column_names *names) {
    uint32_t at;
    uint32_t i = 0;
    while (is_named(r) && i < r->fields.count &&
           rp_column_names_count(names, r->fields.field[i].name, &at) > 0) {
        i++;
    }
    return i == r->fields.count;
}

/* Assigns columns by position: the file has either only the inputs, or the columns of the training
 * file. false: neither. */
static bool take_places(reading *r, const rp_csv_row *first) {
    const uint32_t count = r->fields.count;
    for (uint32_t i = 0; i < count && first->count == count; i++) {
        r->fields.field[i].column = i;
    }
    return first->count == count ||
           (r->about->fields.count > 0 && first->count == r->about->columns);
}

/* Is the row a header? Yes if it has the names of all inputs, or cannot be a sample and has no
 * number. */
static bool is_header(reading *r, const rp_csv_row *row, const rp_column_names *names) {
    const rp_column_keys keys = {.header = RP_HEADER_AUTO};
    const bool sample = take_places(r, row) && rp_fields_fit(&r->fields, row);
    return has_names(r, names) || (!sample && rp_columns_is_header(&keys, row));
}

static rp_err find_names(reading *r, const rp_column_names *names) {
    rp_err err = RP_OK;
    for (uint32_t i = 0; i < r->fields.count && err == RP_OK; i++) {
        rp_field *field = &r->fields.field[i];
        err = rp_column_names_find(names, field->name, &field->column);
    }
    return err;
}

static rp_err find_places(reading *r, const rp_csv_row *first) {
    const rp_description *about = r->about;
    char shape[RP_LAYOUT_TEXT_BYTES];
    char more[64] = "";
    if (take_places(r, first)) {
        return RP_OK;
    }
    if (about->fields.count > 0 && about->columns != r->fields.count) {
        (void)snprintf(more, sizeof more, ", or %u as in the training file", about->columns);
    }
    return rp_fail(RP_ERR_FORMAT, "%s:%u: expected %u columns (the net's input %s)%s, found %u",
                   r->place.path, first->line, r->fields.count,
                   rp_layout_text(&about->sample, shape), more, first->count);
}

/* *counts: the row is a sample, not a header. */
static rp_err take_first_row(reading *r, const rp_csv_row *row, bool *counts) {
    rp_column_names names;
    rp_err err;
    RP_TRY(rp_column_names_sort(&r->arena, row, &names));
    *counts = !is_header(r, row, &names);
    r->began = true;
    r->columns = row->count;
    RP_TRY(!*counts && is_named(r) ? find_names(r, &names) : find_places(r, row));
fail:
    return err;
}

static rp_err take_row(void *context, const rp_csv_row *from) {
    reading *r = context;
    rp_csv_row row = *from;
    bool counts = true;
    rp_err err = RP_OK;
    row.path = r->place.path;
    if (!r->began) {
        RP_TRY(take_first_row(r, &row, &counts));
    }
    if (!counts) {
        return RP_OK;
    }
    if (row.count != r->columns) {
        const uint32_t more = r->columns + 1;
        return rp_fail(RP_ERR_FORMAT, "%s:%u:%u: expected %u fields in a row, found %u", row.path,
                       row.line, row.count < more ? row.count : more, r->columns, row.count);
    }
    RP_TRY(rp_fields_read(&r->fields, &row, r->number));
    rp_fields_spread(&r->fields, r->number, r->value);
    round_values(r, false);
    RP_TRY(give_sample(r, row.line));
fail:
    return err;
}

/* If the set is not a table, each value is a number with its own column. */
static rp_err open_fields(reading *r) {
    const rp_fields *known = &r->about->fields;
    const uint32_t count =
        known->count > 0 ? known->count : (uint32_t)rp_shape_count(&r->about->sample);
    rp_err err;
    r->fields = *known;
    r->fields.count = count;
    RP_TRY(RP_ARENA_NEW(&r->arena, count, &r->fields.field));
    RP_TRY(RP_ARENA_NEW(&r->arena, count, &r->number));
    for (uint32_t i = 0; i < count; i++) {
        r->fields.field[i] = known->count > 0 ? known->field[i] : (rp_field){.column = i};
    }
fail:
    return err;
}

static rp_err read_rows(reading *r) {
    const char delimiter = r->about->delimiter ? r->about->delimiter : ',';
    rp_err err;
    r->place.kind = RP_INPUT_ROW;
    RP_TRY(open_fields(r));
    RP_TRY(rp_csv_read(r->path, delimiter, take_row, r));
    if (!r->began) {
        return rp_fail(RP_ERR_FORMAT, "%s: has no rows of data; expected one sample in each row",
                       r->place.path);
    }
fail:
    return err;
}

/* ---- an array -------------------------------------------------------------------------------- */

/* Writes which inputs of the model a sample has; "" if there is one. Returns `text`. */
static const char *list_parts(const rp_description *about, char text[PARTS_BYTES]) {
    size_t used = 0;
    text[0] = '\0';
    for (uint32_t i = 0; i < about->parts && used < PARTS_BYTES; i++) {
        const int more = snprintf(text + used, PARTS_BYTES - used, "%s '%.40s' (%u)",
                                  i > 0 ? "," : ", in which the model's inputs follow one another:",
                                  about->part[i].name, about->part[i].size);
        used += more > 0 ? (size_t)more : 0;
    }
    return text;
}

/* *turned: samples have their channels last, like the training arrays. */
static rp_err check_shape(const reading *r, const rp_array *array, bool *turned) {
    const rp_shape *sample = &r->about->sample;
    const rp_shape *s = &array->sample;
    char shape[2][RP_LAYOUT_TEXT_BYTES];
    char parts[PARTS_BYTES];
    rp_shape wanted = *sample;
    *turned = r->about->channels_last && s->dims == 3;
    if (*turned) {
        wanted = rp_layout_channels_last(sample);
    }
    const bool flat = s->dims == 1 && s->dim[0] == rp_shape_count(sample);
    return (flat && !r->about->channels_last) || rp_layout_fits(&wanted, s)
               ? RP_OK
               : rp_fail(RP_ERR_FORMAT, "%s: expected samples of shape %s%s, found %s",
                         r->place.path, rp_layout_text(&wanted, shape[0]),
                         list_parts(r->about, parts), rp_layout_text(s, shape[1]));
}

/* A net that was trained on bytes also accepts numbers from 0 to 1. */
static rp_err check_values(const reading *r, uint32_t index) {
    const size_t count = rp_shape_count(&r->about->sample);
    for (size_t i = 0; i < count && r->about->values == RP_VALUES_BYTES; i++) {
        if (!(r->value[i] >= 0 && r->value[i] <= 1)) {
            return rp_fail(RP_ERR_FORMAT,
                           "%s: value %zu of sample %u is %g, but the net was trained on bytes "
                           "divided by 255: expected bytes (u1) or numbers from 0 to 1",
                           r->place.path, i, index, r->value[i]);
        }
    }
    return RP_OK;
}

static rp_err read_array(reading *r) {
    const rp_description *about = r->about;
    const bool table = strcmp(about->set, "table") == 0;
    rp_array array = {.fd = -1};
    bool turned;
    rp_err err;
    r->place.kind = RP_INPUT_ELEMENT;
    RP_TRY(rp_array_open(&r->arena, r->path, &array));
    RP_TRY(check_shape(r, &array, &turned));
    const bool pixels = !table && rp_array_has_bytes(&array);
    if (pixels && about->values == RP_VALUES_REAL) {
        err = rp_fail(RP_ERR_FORMAT,
                      "%s: has bytes (u1), which are divided by 255, but the net was trained on "
                      "numbers that are not scaled: expected a different type, like f4",
                      r->place.path);
        goto fail;
    }
    for (uint32_t i = 0; i < array.count; i++) {
        RP_TRY(rp_array_read(&array, i, pixels, r->value));
        RP_TRY(turned ? rp_layout_turn(&about->sample, r->value) : RP_OK);
        RP_TRY(check_values(r, i));
        round_values(r, pixels || about->values == RP_VALUES_BYTES);
        RP_TRY(give_sample(r, i));
    }
fail:
    rp_array_close(&array);
    return err;
}

/* ---- kinds of files -------------------------------------------------------------------------- */

static bool ends_in(const char *path, const char *end) {
    const size_t length = strlen(path);
    const size_t own = strlen(end);
    return length >= own && strcmp(path + length - own, end) == 0;
}

typedef enum { PICTURE, ROWS, ARRAY } input_kind;

/* Finds the kind of a file by its first bytes, and arrays also by name. */
static rp_err detect_kind(const reading *r, input_kind *out) {
    unsigned char head[8] = {0};
    const char *why;
    FILE *file = rp_input_fopen(r->path, &why);
    if (!file) {
        return rp_fail(RP_ERR_IO, "%s: cannot be opened: %s", r->place.path, why);
    }
    const size_t count = fread(head, 1, sizeof head, file);
    const bool failed = ferror(file) != 0;
    const int problem = errno;
    (void)fclose(file);
    if (failed) {
        return rp_fail(RP_ERR_IO, "%s: cannot be read: %s", r->place.path, strerror(problem));
    }
    if (count == 0) {
        return rp_fail(RP_ERR_FORMAT, "%s: the file is empty", r->place.path);
    }
    const bool png = memcmp(head, "\x89PNG\r\n\x1a\n", 8) == 0;
    const bool jpeg = memcmp(head, "\xff\xd8\xff", 3) == 0;
    const bool idx = head[0] == 0 && head[1] == 0 && head[2] >= 8 && head[2] <= 14;
    const bool array = idx || ends_in(r->path, ".npy") || ends_in(r->path, ".gz") ||
                       memcmp(head, "\x93NUMPY", 6) == 0;
    *out = png || jpeg ? PICTURE : array ? ARRAY : ROWS;
    return RP_OK;
}

static rp_err read_kind(reading *r, input_kind kind) {
    char shape[RP_LAYOUT_TEXT_BYTES];
    const char *wanted = rp_layout_text(&r->about->sample, shape);
    switch (kind) {
    case PICTURE:
        return r->about->images
                   ? read_picture(r)
                   : rp_fail(RP_ERR_FORMAT,
                             "%s: is a picture, but the net takes samples of shape %s: expected a "
                             "CSV file or an array",
                             r->place.path, wanted);
    case ROWS:
        return r->about->images
                   ? rp_fail(RP_ERR_FORMAT,
                             "%s: is neither a JPEG nor a PNG file nor an array (.npy or idx), but "
                             "the net takes images of shape %s",
                             r->place.path, wanted)
                   : read_rows(r);
    default:
        return read_array(r);
    }
}

rp_err rp_inputs_read(const rp_description *about, const char *path,
                      rp_err (*on_sample)(void *context, const rp_input_place *place,
                                          const float *x),
                      void *context) {
    reading r = {.about = about,
                 .path = rp_input_path(path),
                 .place = {.path = rp_input_name(path), .kind = RP_INPUT_PICTURE},
                 .on_sample = on_sample,
                 .context = context};
    input_kind kind = ROWS;
    rp_err err;
    RP_ASSERT(about->type == RP_F32);
    rp_arena_init(&r.arena, "input", 0);
    RP_TRY(detect_kind(&r, &kind));
    RP_TRY(RP_ARENA_NEW(&r.arena, rp_shape_count(&about->sample), &r.x));
    RP_TRY(RP_ARENA_NEW(&r.arena, rp_shape_count(&about->sample), &r.value));
    RP_TRY(read_kind(&r, kind));
fail:
    rp_arena_finish(&r.arena);
    return err;
}
