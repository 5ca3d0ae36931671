#include "predict/confusion.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include <jansson.h>

#include "base/json_print.h"
#include "predict/score.h"

enum {
    TABLE_MAX = 20,  /* most classes for which text has the table */
    ERRORS_MAX = 20, /* number of errors listed instead of a larger table */
    NAME_COLUMNS = 24,
    HEAD_COLUMNS = 8, /* width of a name above a column */
    NUMBER_BYTES = 16,
    DIGITS = 10 /* as in summary.json */
};

rp_err rp_confusion_open(rp_arena *arena, uint32_t classes, uint32_t outputs, bool table,
                         rp_confusion *out) {
    const uint64_t cells = (uint64_t)classes * outputs;
    RP_ASSERT(outputs > 0 && outputs >= classes);
    *out = (rp_confusion){.classes = classes, .outputs = outputs};
    if (classes == 0 || !table) {
        return RP_OK;
    }
    if (cells > RP_CONFUSION_CELLS_MAX) {
        return rp_fail(RP_ERR_LIMIT,
                       "a confusion table of %u classes and %u outputs is too large; expected at "
                       "most %d cells",
                       classes, outputs, RP_CONFUSION_CELLS_MAX);
    }
    return RP_ARENA_NEW(arena, (size_t)cells, &out->count);
}

/* Cross-entropy with label smoothing, as in kernels/loss.cl. */
static double cross_entropy(const float *y, uint32_t count, uint32_t label, double smoothing) {
    double most = (double)y[0];
    double sum = 0;
    double below = 0;
    for (uint32_t i = 1; i < count; i++) {
        most = (double)y[i] > most ? (double)y[i] : most;
    }
    for (uint32_t i = 0; i < count; i++) {
        sum += exp((double)y[i] - most);
        below += (most - (double)y[i]) / count;
    }
    return log(sum) + (1 - smoothing) * (most - (double)y[label]) + smoothing * below;
}

static rp_err fail_not_finite(const rp_confusion *c) {
    return rp_fail(RP_ERR_NUMERIC, "sample %" PRIu64 ": an output of the net is not finite",
                   c->samples);
}

rp_err rp_confusion_add_values(rp_confusion *c, const float *y, const float *target) {
    double squares = 0;
    for (uint32_t i = 0; i < c->outputs; i++) {
        const double error = (double)y[i] - (double)target[i];
        squares += error * error;
    }
    if (!isfinite(squares)) {
        return fail_not_finite(c);
    }
    c->loss_sum += squares / c->outputs;
    c->samples++;
    return RP_OK;
}

rp_err rp_confusion_add(rp_confusion *c, const float *y, int32_t label, float smoothing) {
    uint32_t index[RP_CONFUSION_TOP];
    const uint32_t top = c->outputs < RP_CONFUSION_TOP ? c->outputs : RP_CONFUSION_TOP;
    if (label < 0 || (uint32_t)label >= c->classes) {
        return rp_fail(RP_ERR_FORMAT, "sample %" PRIu64 ": invalid class %d; expected 0 to %u",
                       c->samples, label, c->classes - 1);
    }
    if (!rp_score_softmax(y, c->outputs, NULL)) {
        return rp_fail(RP_ERR_NUMERIC, "sample %" PRIu64 ": an output of the net is not finite",
                       c->samples);
    }
    const uint32_t class = (uint32_t)label;
    rp_score_top(y, c->outputs, top, index);
    if (c->count) {
        c->count[(size_t) class * c->outputs + index[0]]++;
    }
    c->right += index[0] == class;
    for (uint32_t i = 0; i < top; i++) {
        c->among_top += index[i] == class;
    }
    c->loss_sum += cross_entropy(y, c->outputs, class, (double)smoothing);
    c->samples++;
    return RP_OK;
}

uint64_t rp_confusion_samples(const rp_confusion *c, uint32_t class) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < c->outputs; i++) {
        sum += c->count[(size_t) class * c->outputs + i];
    }
    return sum;
}

uint64_t rp_confusion_answered(const rp_confusion *c, uint32_t class) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < c->classes; i++) {
        sum += c->count[(size_t)i * c->outputs + class];
    }
    return sum;
}

double rp_confusion_mean_iou(const rp_confusion *c) {
    double sum = 0;
    uint32_t present = 0;
    RP_ASSERT(c->count);
    for (uint32_t i = 0; i < c->classes; i++) {
        const uint64_t both = c->count[(size_t)i * c->outputs + i];
        const uint64_t any = rp_confusion_samples(c, i) + rp_confusion_answered(c, i) - both;
        sum += any > 0 ? (double)both / (double)any : 0;
        present += any > 0;
    }
    return present > 0 ? sum / present : 0;
}

/* ---- text ------------------------------------------------------------------------------------ */

static uint64_t cell(const rp_confusion *c, uint32_t row, uint32_t column) {
    return c->count[(size_t)row * c->outputs + column];
}

static const char *name_of(const rp_confusion *c, const rp_confusion_about *about, uint32_t class,
                           char number[NUMBER_BYTES]) {
    if (about->class_name && class < c->classes) {
        return about->class_name[class];
    }
    (void)snprintf(number, NUMBER_BYTES, "%u", class);
    return number;
}

/* Number of characters of UTF-8 text. */
static uint32_t columns_of(const char *text) {
    uint32_t columns = 0;
    for (; *text; text++) {
        columns += ((unsigned char)*text & 0xc0) != 0x80;
    }
    return columns;
}

/* Writes a text cut or padded to `columns`; `right`: aligned to the right. */
static void put_name(FILE *file, const char *text, uint32_t columns, bool right) {
    const uint32_t own = columns_of(text);
    const int padding = own < columns ? (int)(columns - own) : 0;
    size_t bytes = 0;
    for (uint32_t at = 0; text[bytes]; bytes++) {
        at += ((unsigned char)text[bytes] & 0xc0) != 0x80;
        if (at > columns) {
            break;
        }
    }
    (void)fprintf(file, "%*s%.*s%*s", right ? padding : 0, "", (int)bytes, text,
                  right ? 0 : padding, "");
}

static void put_share(FILE *file, uint64_t part, uint64_t whole, int columns) {
    if (whole == 0) {
        (void)fprintf(file, "%*s", columns, "-");
    } else {
        (void)fprintf(file, "%*.2f %%", columns - 2, 100 * (double)part / (double)whole);
    }
}

static uint32_t name_columns(const rp_confusion *c, const rp_confusion_about *about) {
    char number[NUMBER_BYTES];
    uint32_t most = 5;
    for (uint32_t i = 0; i < c->classes; i++) {
        const uint32_t own = columns_of(name_of(c, about, i, number));
        most = own > most ? own : most;
    }
    return most < NAME_COLUMNS ? most : NAME_COLUMNS;
}

static void print_classes(const rp_confusion *c, const rp_confusion_about *about, FILE *file) {
    const uint32_t columns = name_columns(c, about);
    char number[NUMBER_BYTES];
    put_name(file, "\nclass", columns + 1, false);
    (void)fprintf(file, "  samples    right    recall  answered  precision\n");
    for (uint32_t i = 0; i < c->classes; i++) {
        const uint64_t samples = rp_confusion_samples(c, i);
        const uint64_t answered = rp_confusion_answered(c, i);
        put_name(file, name_of(c, about, i, number), columns, false);
        (void)fprintf(file, "  %7" PRIu64 "  %7" PRIu64 "  ", samples, cell(c, i, i));
        put_share(file, cell(c, i, i), samples, 8);
        (void)fprintf(file, "  %8" PRIu64 "  ", answered);
        put_share(file, cell(c, i, i), answered, 9);
        (void)fprintf(file, "\n");
    }
}

static void print_table(const rp_confusion *c, const rp_confusion_about *about, FILE *file) {
    const uint32_t columns = name_columns(c, about);
    char number[NUMBER_BYTES];
    (void)fprintf(file, "\nconfusion table: a row for each class, a column for each answer\n");
    put_name(file, "", columns, false);
    for (uint32_t k = 0; k < c->outputs; k++) {
        (void)fprintf(file, " ");
        put_name(file, name_of(c, about, k, number), HEAD_COLUMNS, true);
    }
    (void)fprintf(file, "\n");
    for (uint32_t i = 0; i < c->classes; i++) {
        put_name(file, name_of(c, about, i, number), columns, false);
        for (uint32_t k = 0; k < c->outputs; k++) {
            (void)fprintf(file, " %*" PRIu64, HEAD_COLUMNS, cell(c, i, k));
        }
        (void)fprintf(file, "\n");
    }
}

/* Finds the largest cells outside of the diagonal, in descending order. */
static uint32_t find_errors(const rp_confusion *c, size_t error[ERRORS_MAX]) {
    uint32_t kept = 0;
    for (size_t i = 0; i < (size_t)c->classes * c->outputs; i++) {
        uint32_t at = kept;
        if (c->count[i] == 0 || i / c->outputs == i % c->outputs) {
            continue;
        }
        while (at > 0 && c->count[error[at - 1]] < c->count[i]) {
            at--;
        }
        if (at == ERRORS_MAX) {
            continue;
        }
        kept += kept < ERRORS_MAX;
        memmove(&error[at + 1], &error[at], (kept - 1 - at) * sizeof *error);
        error[at] = i;
    }
    return kept;
}

static void print_errors(const rp_confusion *c, const rp_confusion_about *about, FILE *file) {
    size_t error[ERRORS_MAX];
    const uint32_t count = find_errors(c, error);
    char number[2][NUMBER_BYTES];
    (void)fprintf(file, "\nmost frequent errors; --format json prints the whole table\n");
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t row = (uint32_t)(error[i] / c->outputs);
        const uint32_t column = (uint32_t)(error[i] % c->outputs);
        (void)fprintf(file, "%7" PRIu64 " times %s instead of %s\n", c->count[error[i]],
                      name_of(c, about, column, number[0]), name_of(c, about, row, number[1]));
    }
}

/* With classes the loss has four decimals, because it is of the order of 1. */
static void print_score(const rp_confusion *c, const rp_confusion_about *about, FILE *file) {
    const double samples = (double)c->samples;
    if (c->classes == 0) {
        (void)fprintf(file, "%s loss %.6g of %" PRIu64 "\n", about->split, c->loss_sum / samples,
                      c->samples);
        return;
    }
    const double loss = c->loss_sum / samples;
    (void)fprintf(file, "%s loss %.4f", about->split, loss);
    const bool tokens = about->targets > 1 && !about->pixels;
    if (tokens) {
        (void)fprintf(file, ", perplexity %.4g", exp(loss));
    }
    if (tokens && about->bits > 0) {
        (void)fprintf(file, ", %.4f bits", loss * about->bits);
    }
    (void)fprintf(file, ", accuracy %.2f %% of %" PRIu64 "%s", 100 * (double)c->right / samples,
                  c->samples,
                  about->pixels ? " pixels"
                  : tokens      ? " tokens"
                                : "");
    if (c->classes > RP_CONFUSION_TOP) {
        (void)fprintf(file, ", top-%d %.2f %%", RP_CONFUSION_TOP,
                      100 * (double)c->among_top / samples);
    }
    if (about->pixels) {
        (void)fprintf(file, ", mean IoU %.2f %%", 100 * rp_confusion_mean_iou(c));
    }
    (void)fprintf(file, "\n");
    if (about->bleu) {
        (void)fprintf(file, "BLEU %.2f (nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp)\n",
                      *about->bleu);
    }
}

void rp_confusion_print(const rp_confusion *c, const rp_confusion_about *about, FILE *file) {
    RP_ASSERT(c->samples > 0);
    print_score(c, about, file);
    if (c->count && !about->without_table) {
        print_classes(c, about, file);
        if (c->outputs <= TABLE_MAX) {
            print_table(c, about, file);
        } else {
            print_errors(c, about, file);
        }
    }
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static json_t *share_of(uint64_t part, uint64_t whole) {
    return whole > 0 ? json_real((double)part / (double)whole) : json_null();
}

static json_t *class_object(const rp_confusion *c, const rp_confusion_about *about, uint32_t i) {
    char number[NUMBER_BYTES];
    const uint64_t samples = rp_confusion_samples(c, i);
    const uint64_t answered = rp_confusion_answered(c, i);
    return json_pack("{s:s, s:I, s:I, s:I, s:I, s:o, s:o}", "class", name_of(c, about, i, number),
                     "index", (json_int_t)i, "samples", (json_int_t)samples, "right",
                     (json_int_t)cell(c, i, i), "answered", (json_int_t)answered, "recall",
                     share_of(cell(c, i, i), samples), "precision",
                     share_of(cell(c, i, i), answered));
}

static json_t *eval_object(const rp_confusion *c, const rp_confusion_about *about) {
    json_t *eval = json_pack("{s:f, s:o*, s:I}", "loss", c->loss_sum / (double)c->samples,
                             "accuracy", c->classes > 0 ? share_of(c->right, c->samples) : NULL,
                             "samples", (json_int_t)c->samples);
    if (eval && about->pixels) {
        (void)json_object_set_new(eval, "mean_iou", json_real(rp_confusion_mean_iou(c)));
        (void)json_object_set_new(eval, "pixels", json_integer((json_int_t)c->samples));
        (void)json_object_set_new(eval, "samples", json_integer((json_int_t)c->sequences));
    } else if (eval && about->targets > 1) {
        const double loss = c->loss_sum / (double)c->samples;
        (void)json_object_set_new(eval, "perplexity", json_real(exp(loss)));
        (void)json_object_set_new(eval, "tokens", json_integer((json_int_t)c->samples));
        (void)json_object_set_new(eval, "samples", json_integer((json_int_t)c->sequences));
        if (about->bits > 0) {
            (void)json_object_set_new(eval, "bits", json_real(loss * about->bits));
        }
    }
    if (eval && about->bleu) {
        (void)json_object_set_new(eval, "bleu", json_real(*about->bleu));
    }
    if (eval && c->classes > RP_CONFUSION_TOP) {
        (void)json_object_set_new(eval, "top5", share_of(c->among_top, c->samples));
    }
    if (eval && strcmp(about->split, "test") != 0) { /* as in summary.json */
        (void)json_object_set_new(eval, "split", json_string(about->split));
    }
    return eval;
}

/* Adds the table to the object; false: incomplete. */
static bool add_table(const rp_confusion *c, const rp_confusion_about *about, json_t *root) {
    json_t *classes = json_array();
    json_t *table = json_array();
    bool good = true;
    for (uint32_t i = 0; i < c->classes && good; i++) {
        json_t *row = json_array();
        for (uint32_t k = 0; k < c->outputs; k++) {
            good = json_array_append_new(row, json_integer((json_int_t)cell(c, i, k))) == 0 && good;
        }
        good = json_array_append_new(table, row) == 0 && good;
        good = json_array_append_new(classes, class_object(c, about, i)) == 0 && good;
    }
    good = json_object_set_new(root, "classes", classes) == 0 && good;
    return json_object_set_new(root, "confusion", table) == 0 && good;
}

rp_err rp_confusion_print_json(const rp_confusion *c, const rp_confusion_about *about, FILE *file) {
    RP_ASSERT(c->samples > 0);
    json_t *root = json_pack("{s:i, s:s, s:s, s:o, s:s, s:o}", "version", 1, "status", "finished",
                             "model", about->model, "weights", rp_json_path(about->weights),
                             "device", about->device, "eval", eval_object(c, about));
    if (root && c->count && !about->without_table && !add_table(c, about, root)) {
        json_decref(root);
        root = NULL; /* rp_json_print() reports the error */
    }
    return rp_json_print(root, JSON_REAL_PRECISION(DIGITS), file);
}
