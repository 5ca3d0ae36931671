#include "predict/answers.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include <csv.h>
#include <jansson.h>

#include "base/json_print.h"
#include "base/process.h"
#include "predict/score.h"

enum {
    DIGITS = 9 /* enough to read back the same float */,
    NAME_BYTES = 16,
    PIECE_BYTES = 1 << 16
};

struct rp_answers {
    rp_answers_options options;
    FILE *spool;     /* temporary file for JSON, until it is complete */
    double *p;       /* [outputs] probabilities, or shares of pixels */
    float *share;    /* [outputs] the same as p */
    uint32_t *mask;  /* [pixels] class of each pixel */
    uint32_t *index; /* [top] */
    uint64_t count;
};

/* ---- words ----------------------------------------------------------------------------------- */

/* Name of a class; number[NAME_BYTES]: buffer for a class without a name. */
static const char *class_name(const rp_description *about, uint32_t index, char *number) {
    if (about->class_name && index < about->classes) {
        return about->class_name[index];
    }
    (void)snprintf(number, NAME_BYTES, "%u", index);
    return number;
}

/* What the number next to a class is. */
static const char *number_word(const rp_answers *w) {
    return w->options.pixels > 0 ? "share" : "probability";
}

static rp_err fail_write(const FILE *file) {
    return file == stdout ? rp_process_lost_output(errno)
                          : rp_fail(RP_ERR_IO,
                                    "a temporary file of the predictions cannot "
                                    "be written: %s",
                                    strerror(errno));
}

static rp_err fail_not_finite(const rp_input_place *place) {
    return rp_fail(RP_ERR_NUMERIC, "%s: sample %u: an output of the net is not finite", place->path,
                   place->number);
}

/* ---- text ------------------------------------------------------------------------------------ */

static rp_err add_text(rp_answers *w, const rp_input_place *place, const float *y) {
    const rp_description *about = w->options.about;
    FILE *file = w->options.file;
    char number[NAME_BYTES];
    (void)fputs(place->path, file);
    if (place->kind == RP_INPUT_ROW) {
        (void)fprintf(file, ":%u", place->number);
    } else if (place->kind == RP_INPUT_ELEMENT) {
        (void)fprintf(file, "[%u]", place->number);
    }
    for (uint32_t i = 0; about->classes > 0 && i < w->options.top; i++) {
        const uint32_t k = w->index[i];
        (void)fprintf(file, "%s %s %.2f %%", i ? "," : ":", class_name(about, k, number),
                      100 * w->p[k]);
    }
    for (uint32_t i = 0; about->classes == 0 && i < w->options.outputs; i++) {
        const char *name = about->y_name ? about->y_name[i] : "";
        (void)fprintf(file, "%s%s%s %.6g", i ? "," : ":", name[0] ? " " : "", name, (double)y[i]);
    }
    return fputc('\n', file) == EOF || ferror(file) ? fail_write(file) : RP_OK;
}

/* ---- CSV ------------------------------------------------------------------------------------- */

static void put_field(FILE *file, const char *text) {
    if (strpbrk(text, ",;\"\r\n") || text[0] == '#' || text[0] == ' ') {
        (void)csv_fwrite(file, text, strlen(text));
    } else {
        (void)fputs(text, file);
    }
}

static rp_err begin_csv(const rp_answers *w) {
    const rp_description *about = w->options.about;
    FILE *file = w->options.file;
    (void)fputs("input,sample", file);
    for (uint32_t i = 0; about->classes > 0 && i < w->options.top; i++) {
        if (i == 0) {
            (void)fprintf(file, ",class,%s", number_word(w));
        } else {
            (void)fprintf(file, ",class_%u,%s_%u", i + 1, number_word(w), i + 1);
        }
    }
    for (uint32_t i = 0; about->classes == 0 && i < w->options.outputs; i++) {
        (void)fputc(',', file);
        if (about->y_name) {
            put_field(file, about->y_name[i]);
        } else {
            (void)fprintf(file, "y%u", i + 1);
        }
    }
    return fputc('\n', file) == EOF || ferror(file) ? fail_write(file) : RP_OK;
}

static rp_err add_csv(rp_answers *w, const rp_input_place *place, const float *y) {
    const rp_description *about = w->options.about;
    FILE *file = w->options.file;
    char number[NAME_BYTES];
    put_field(file, place->path);
    (void)fputc(',', file);
    if (place->kind != RP_INPUT_PICTURE) {
        (void)fprintf(file, "%u", place->number);
    }
    for (uint32_t i = 0; about->classes > 0 && i < w->options.top; i++) {
        (void)fputc(',', file);
        put_field(file, class_name(about, w->index[i], number));
        (void)fprintf(file, ",%.*g", DIGITS, w->p[w->index[i]]);
    }
    for (uint32_t i = 0; about->classes == 0 && i < w->options.outputs; i++) {
        (void)fprintf(file, ",%.*g", DIGITS, (double)y[i]);
    }
    return fputc('\n', file) == EOF || ferror(file) ? fail_write(file) : RP_OK;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static rp_err dump_value(const json_t *value, FILE *file) {
    const size_t flags = JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(DIGITS);
    if (!value) {
        return rp_fail(RP_ERR_FORMAT,
                       "the predictions cannot be written as JSON; expected names of "
                       "classes and targets in UTF-8");
    }
    return json_dumpf(value, file, flags) == 0 ? RP_OK : fail_write(file);
}

/* Writes `key` with a text, which may be a path. */
static rp_err dump_text(const char *key, const char *text, FILE *file) {
    json_t *value = rp_json_path(text);
    (void)fprintf(file, ", \"%s\": ", key);
    const rp_err err = dump_value(value, file);
    json_decref(value);
    return err;
}

static rp_err begin_json(rp_answers *w) {
    const rp_description *about = w->options.about;
    json_t *names = json_array();
    bool good = true;
    rp_err err = RP_OK;
    w->spool = tmpfile();
    if (!w->spool) {
        err = fail_write(NULL);
        goto fail;
    }
    (void)fputs("{\"version\": 1", w->spool);
    RP_TRY(dump_text("device", w->options.device, w->spool));
    RP_TRY(dump_text("weights", w->options.weights, w->spool));
    for (uint32_t i = 0; about->classes == 0 && about->y_name && i < w->options.outputs; i++) {
        good = json_array_append_new(names, json_string(about->y_name[i])) == 0 && good;
    }
    if (json_array_size(names) > 0) {
        (void)fputs(", \"names\": ", w->spool);
        RP_TRY(dump_value(good ? names : NULL, w->spool));
    }
    (void)fputs(", \"predictions\": [", w->spool);
fail:
    json_decref(names);
    return err;
}

static json_t *class_object(const rp_answers *w, uint32_t index) {
    char number[NAME_BYTES];
    return json_pack("{s:s, s:I, s:f}", "class", class_name(w->options.about, index, number),
                     "index", (json_int_t)index, number_word(w), w->p[index]);
}

/* Lists of classes, one for each row of the image. */
static json_t *mask_rows(const rp_answers *w) {
    const rp_shape *image = &w->options.about->sample;
    const uint32_t width = image->dim[image->dims - 1];
    json_t *rows = json_array();
    json_t *row = NULL;
    bool good = true;
    for (uint32_t i = 0; i < w->options.pixels; i++) {
        if (i % width == 0) {
            row = json_array();
            good = json_array_append_new(rows, row) == 0 && good;
        }
        good = good && json_array_append_new(row, json_integer(w->mask[i])) == 0;
    }
    if (!good) {
        json_decref(rows);
        return NULL;
    }
    return rows;
}

static json_t *answer_object(const rp_answers *w, const rp_input_place *place, const float *y) {
    json_t *list = json_array();
    json_t *object = json_object();
    bool good = json_object_set_new(object, "input", rp_json_path(place->path)) == 0;
    if (place->kind != RP_INPUT_PICTURE) {
        const char *key = place->kind == RP_INPUT_ROW ? "line" : "element";
        good = json_object_set_new(object, key, json_integer(place->number)) == 0 && good;
    }
    if (w->options.about->classes > 0) {
        for (uint32_t i = 0; i < w->options.top; i++) {
            good = json_array_append_new(list, class_object(w, w->index[i])) == 0 && good;
        }
        good = json_object_update(object, json_array_get(list, 0)) == 0 && good;
    } else {
        for (uint32_t i = 0; i < w->options.outputs; i++) {
            good = json_array_append_new(list, json_real((double)y[i])) == 0 && good;
        }
    }
    const char *key = w->options.about->classes > 0 ? "top" : "values";
    good = json_object_set_new(object, key, list) == 0 && good;
    if (w->options.pixels > 0) {
        good = json_object_set_new(object, "mask", mask_rows(w)) == 0 && good;
    }
    if (!good) {
        json_decref(object);
        return NULL;
    }
    return object;
}

static rp_err add_json(rp_answers *w, const rp_input_place *place, const float *y) {
    json_t *object = answer_object(w, place, y);
    (void)fputs(w->count > 0 ? ",\n " : "\n ", w->spool);
    const rp_err err = dump_value(object, w->spool);
    json_decref(object);
    return err;
}

static rp_err finish_json(rp_answers *w) {
    static const size_t room = PIECE_BYTES;
    char piece[PIECE_BYTES];
    size_t got;
    (void)fprintf(w->spool, "],\n \"samples\": %" PRIu64 "}\n", w->count);
    if (fflush(w->spool) != 0 || ferror(w->spool) || fseek(w->spool, 0, SEEK_SET) != 0) {
        return fail_write(w->spool);
    }
    while ((got = fread(piece, 1, room, w->spool)) > 0) {
        if (fwrite(piece, 1, got, w->options.file) != got) {
            return fail_write(w->options.file);
        }
    }
    return ferror(w->spool) ? fail_write(w->spool) : RP_OK;
}

/* ---- all of them ----------------------------------------------------------------------------- */

rp_err rp_answers_open(rp_arena *arena, const rp_answers_options *options, rp_answers **out) {
    rp_answers *w = NULL;
    rp_err err;
    RP_ASSERT(options->top >= 1 && options->top <= options->outputs);
    RP_TRY(RP_ARENA_NEW(arena, 1, &w));
    *w = (rp_answers){.options = *options};
    RP_TRY(RP_ARENA_NEW(arena, options->outputs, &w->p));
    RP_TRY(RP_ARENA_NEW(arena, options->outputs, &w->share));
    RP_TRY(RP_ARENA_NEW(arena, options->pixels + 1, &w->mask));
    RP_TRY(RP_ARENA_NEW(arena, options->top, &w->index));
    RP_TRY(options->format == RP_PREDICT_CSV    ? begin_csv(w)
           : options->format == RP_PREDICT_JSON ? begin_json(w)
                                                : RP_OK);
    *out = w;
    return RP_OK;
fail:
    rp_answers_close(&w);
    return err;
}

/* Finds the class of each pixel and the shares of the classes; false: an output is not finite. */
static bool count_pixels(rp_answers *w, const float *y) {
    const uint32_t pixels = w->options.pixels;
    memset(w->p, 0, w->options.outputs * sizeof *w->p);
    for (uint32_t i = 0; i < pixels; i++) {
        uint32_t best = 0;
        for (uint32_t k = 0; k < w->options.outputs; k++) {
            const float value = y[(size_t)k * pixels + i];
            best = value > y[(size_t)best * pixels + i] ? k : best;
            if (!isfinite(value)) {
                return false;
            }
        }
        w->mask[i] = best;
        w->p[best]++;
    }
    for (uint32_t k = 0; k < w->options.outputs; k++) {
        w->p[k] /= pixels;
        w->share[k] = (float)w->p[k];
    }
    return true;
}

rp_err rp_answers_add(rp_answers *w, const rp_input_place *place, const float *y) {
    const bool pixels = w->options.pixels > 0;
    if (pixels ? !count_pixels(w, y) : !rp_score_softmax(y, w->options.outputs, w->p)) {
        return fail_not_finite(place);
    }
    rp_score_top(pixels ? w->share : y, w->options.outputs, w->options.top, w->index);
    const rp_err err = w->options.format == RP_PREDICT_JSON  ? add_json(w, place, y)
                       : w->options.format == RP_PREDICT_CSV ? add_csv(w, place, y)
                                                             : add_text(w, place, y);
    w->count += err == RP_OK;
    return err;
}

uint64_t rp_answers_count(const rp_answers *w) {
    return w->count;
}

rp_err rp_answers_finish(rp_answers *w) {
    const rp_err err = w->options.format == RP_PREDICT_JSON ? finish_json(w) : RP_OK;
    return err == RP_OK && fflush(w->options.file) != 0 ? fail_write(w->options.file) : err;
}

void rp_answers_close(rp_answers **answers) {
    if (*answers && (*answers)->spool) {
        (void)fclose((*answers)->spool);
    }
    *answers = NULL;
}
