#include "predict/text.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include <jansson.h>

#include "base/json_print.h"
#include "base/log.h"
#include "base/rng.h"
#include "base/utf8.h"
#include "data/encode.h"
#include "predict/score.h"
#include "predict/translate.h"

struct rp_texter {
    rp_text_options options;
    rp_trained net;
    rp_arena *arena;
    bool translates; /* the net was trained on pairs */
    uint32_t time;   /* tokens of a sample, or of a source */
    int32_t *id;     /* [time]: the last tokens of the text so far, then padding */
    uint32_t count;
    float *y;  /* [rows][outputs] of the net */
    double *p; /* [outputs] */
};

/* ---- opening --------------------------------------------------------------------------------- */

/* A sample is a source and a target of the same length. */
static bool is_translator(const rp_trained *net) {
    return strcmp(net->about.set, "pairs") == 0 && net->about.type == RP_I32 &&
           net->about.sample.dims == 1 && net->about.classes > 0 &&
           net->about.sample.dim[0] == 2 * rp_trained_rows(net);
}

/* What the net makes of a text decides which options have a meaning. */
static rp_err check_options(const rp_texter *t) {
    const rp_text_options *o = &t->options;
    const bool continues = !t->translates && rp_trained_rows(&t->net) > 1;
    const struct {
        bool given, applies;
        const char *name, *nets;
    } option[] = {
        {o->beam > 0, t->translates, "beam", "translate, which are trained on pairs of sentences"},
        {o->tokens > 0, continues, "tokens", "continue a text"},
        {o->temperature >= 0, continues, "temperature", "continue a text"},
        {o->top > 0, !t->translates && !continues, "top", "give a class"},
    };
    for (size_t i = 0; i < sizeof option / sizeof *option; i++) {
        if (option[i].given && !option[i].applies) {
            return rp_fail(RP_ERR_USAGE, "%s: --%s applies only to nets that %s", o->folder,
                           option[i].name, option[i].nets);
        }
    }
    return RP_OK;
}

static void fill_defaults(rp_text_options *options) {
    options->tokens = options->tokens > 0 ? options->tokens : 100;
    options->top = options->top > 0 ? options->top : 1;
    options->beam = options->beam > 0 ? options->beam : 1;
    options->temperature = options->temperature > 0 ? options->temperature : 0;
}

static rp_err check_net(const rp_texter *t) {
    const rp_description *about = &t->net.about;
    if (t->translates) {
        return t->options.format != RP_PREDICT_CSV
                   ? RP_OK
                   : rp_fail(RP_ERR_USAGE, "--format: a translation is text or json");
    }
    if (rp_trained_rows(&t->net) > 1 && t->options.format == RP_PREDICT_CSV) {
        return rp_fail(RP_ERR_USAGE, "--format: a text that is continued is text or json");
    }
    if (about->type != RP_I32 || about->sample.dims != 1 || about->classes == 0) {
        return rp_fail(RP_ERR_USAGE, "%s: the net was not trained on texts; predict takes files",
                       t->options.folder);
    }
    if (rp_trained_rows(&t->net) > 1 && rp_trained_rows(&t->net) != about->sample.dim[0]) {
        return rp_fail(RP_ERR_SHAPE,
                       "%s: has %u targets for a sample of %u tokens, expected 1 or one for each "
                       "token",
                       t->options.folder, rp_trained_rows(&t->net), about->sample.dim[0]);
    }
    return RP_OK;
}

/* Appends a token; the first one leaves if there is no room. */
static void add_token(rp_texter *t, int32_t id) {
    if (t->count == t->time) {
        memmove(t->id, t->id + 1, (t->time - 1) * sizeof *t->id);
        t->count--;
    }
    t->id[t->count++] = id;
}

static rp_err encode(rp_texter *t) {
    int32_t *ids;
    uint32_t count;
    rp_err err;
    RP_TRY(rp_text_encode(t->arena, &t->net.about.vocab, t->options.text, &ids, &count));
    if (count == 0) {
        return rp_fail(RP_ERR_USAGE, "--text: expected at least one token");
    }
    const bool begins = rp_trained_rows(&t->net) == 1 || t->translates; /* else the end counts */
    if (count > t->time) {
        rp_log_warn("the text has %u tokens, and the net reads the %s %u of them", count,
                    begins ? "first" : "last", t->time);
    }
    for (uint32_t i = 0; i < count && (!begins || i < t->time); i++) {
        add_token(t, ids[i]);
    }
fail:
    return err;
}

rp_err rp_text_open(rp_arena *arena, const rp_text_options *options, rp_texter **out) {
    rp_texter *t = NULL;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(arena, 1, &t));
    *t = (rp_texter){.options = *options, .arena = arena};
    RP_TRY(rp_trained_read(arena, options->folder, options->weights, &t->net));
    t->translates = is_translator(&t->net);
    RP_TRY(check_net(t));
    RP_TRY(check_options(t));
    fill_defaults(&t->options);
    t->time = t->net.about.sample.dim[0] / (t->translates ? 2 : 1);
    RP_TRY(RP_ARENA_NEW(arena, t->time, &t->id));
    RP_TRY(RP_ARENA_NEW(arena, rp_network_outputs(t->net.network), &t->y));
    RP_TRY(RP_ARENA_NEW(arena, rp_trained_outputs(&t->net), &t->p));
    RP_TRY(encode(t));
    *out = t;
    return RP_OK;
fail:
    rp_text_close(&t);
    return err;
}

/* ---- classes --------------------------------------------------------------------------------- */

static rp_err classify(rp_texter *t, const rp_device *device) {
    const uint32_t outputs = rp_trained_outputs(&t->net);
    const rp_input_place place = {.path = t->options.text, .kind = RP_INPUT_PICTURE};
    const rp_answers_options options = {.file = t->options.out,
                                        .format = t->options.format,
                                        .about = &t->net.about,
                                        .outputs = outputs,
                                        .top = t->options.top < outputs ? t->options.top : outputs,
                                        .weights = t->net.weights,
                                        .device = rp_device_facts_of(device)->name};
    rp_answers *answers = NULL;
    rp_err err;
    RP_TRY(rp_network_run(t->net.network, rp_buckets_hold(&t->net.about.buckets, t->count), t->id,
                          1, t->y));
    RP_TRY(rp_answers_open(t->arena, &options, &answers));
    RP_TRY(rp_answers_add(answers, &place, t->y));
    RP_TRY(rp_answers_finish(answers));
fail:
    rp_answers_close(&answers);
    return err;
}

/* ---- continuing ------------------------------------------------------------------------------ */

/* The next token from the outputs `y` of the last one. Outputs without a token are not chosen. */
static rp_err choose_token(rp_texter *t, const float *y, rp_rng *rng, uint32_t *out) {
    const uint32_t outputs = rp_trained_outputs(&t->net);
    const uint32_t tokens = t->net.about.vocab.count < outputs ? t->net.about.vocab.count : outputs;
    double sum = 0;
    if (!rp_score_softmax(y, outputs, NULL)) {
        return rp_fail(RP_ERR_NUMERIC, "an output of the net is not finite");
    }
    rp_score_top(y, tokens, 1, out);
    if (t->options.temperature <= 0) {
        return RP_OK;
    }
    for (uint32_t i = 0; i < tokens; i++) {
        const double below = ((double)y[i] - (double)y[*out]) / t->options.temperature;
        t->p[i] = exp(below);
        sum += t->p[i];
    }
    double at = (double)rp_rng_uniform(rng) * sum;
    for (uint32_t i = 0; i < tokens; i++) {
        at -= t->p[i];
        if (at < 0) {
            *out = i;
            break;
        }
    }
    return RP_OK;
}

static rp_err finish_write(FILE *file) {
    return fflush(file) == 0 && !ferror(file)
               ? RP_OK
               : rp_fail(RP_ERR_IO, "the answer cannot be written: %s", strerror(errno));
}

/* Writes the tokens that continue the text; a net that reads only earlier tokens ignores the
 * padding after them. */
static rp_err write_tokens(rp_texter *t, FILE *file) {
    const uint32_t outputs = rp_trained_outputs(&t->net);
    rp_rng rng = rp_rng_named(t->options.seed, "text");
    rp_err err = RP_OK;
    for (uint32_t i = 0; i < t->options.tokens; i++) {
        uint32_t id;
        RP_TRY(rp_network_run(t->net.network, 0, t->id, 1, t->y));
        RP_TRY(choose_token(t, t->y + (size_t)(t->count - 1) * outputs, &rng, &id));
        RP_TRY(rp_text_write_token(&t->net.about.vocab, id, file));
        add_token(t, (int32_t)id);
        RP_TRY(finish_write(file));
    }
fail:
    return err;
}

/* The text as it is, or shown if it is not UTF-8, which bytes need not be. */
static json_t *json_of_text(rp_arena *arena, const char *text, size_t bytes) {
    json_t *exact = json_stringn(text, bytes);
    const size_t room = 4 * bytes + 1;
    char *shown;
    if (exact || rp_arena_alloc(arena, 1, room, (void **)&shown) != RP_OK) {
        return exact;
    }
    return json_string(rp_utf8_show(text, bytes, shown, room));
}

static rp_err print_json(const rp_texter *t, const char *written, size_t bytes,
                         const rp_device *device) {
    json_t *object = json_pack(
        "{s:i, s:s, s:o, s:s, s:o, s:I}", "version", 1, "device", rp_device_facts_of(device)->name,
        "weights", rp_json_path(t->net.weights), "text", t->options.text, "continuation",
        json_of_text(t->arena, written, bytes), "tokens", (json_int_t)t->options.tokens);
    return rp_json_print(object, 0, t->options.out);
}

/* Bytes of the longest token, with what separates it. */
static size_t longest_token(const rp_vocab *vocab) {
    size_t most = 1;
    for (uint32_t i = 0; vocab->name && i < vocab->count; i++) {
        const size_t own = strlen(vocab->name[i]) + 1;
        most = own > most ? own : most;
    }
    return most;
}

static rp_err continue_as_json(rp_texter *t, const rp_device *device) {
    const size_t room = t->options.tokens * longest_token(&t->net.about.vocab) + 1;
    char *written;
    rp_err err = rp_arena_alloc(t->arena, 1, room, (void **)&written);
    FILE *file = err == RP_OK ? fmemopen(written, room, "w") : NULL;
    if (!file) {
        return rp_fail(RP_ERR_MEMORY, "no memory for an answer");
    }
    err = write_tokens(t, file);
    const long bytes = ftell(file);
    (void)fclose(file);
    return err == RP_OK ? print_json(t, written, (size_t)bytes, device) : err;
}

static rp_err continue_text(rp_texter *t, const rp_device *device) {
    rp_err err;
    if (t->options.format == RP_PREDICT_JSON) {
        return continue_as_json(t, device);
    }
    (void)fputs(t->options.text, t->options.out);
    RP_TRY(write_tokens(t, t->options.out));
    (void)fputc('\n', t->options.out);
    RP_TRY(finish_write(t->options.out));
fail:
    return err;
}

/* ---- translating ----------------------------------------------------------------------------- */

static rp_err print_translation(const rp_texter *t, const rp_text *translation,
                                const rp_device *device) {
    if (t->options.format != RP_PREDICT_JSON) {
        (void)fwrite(translation->at, 1, translation->bytes, t->options.out);
        (void)fputc('\n', t->options.out);
        return finish_write(t->options.out);
    }
    json_t *object = json_pack("{s:i, s:s, s:o, s:s, s:o}", "version", 1, "device",
                               rp_device_facts_of(device)->name, "weights",
                               rp_json_path(t->net.weights), "text", t->options.text, "translation",
                               json_of_text(t->arena, translation->at, translation->bytes));
    return rp_json_print(object, 0, t->options.out);
}

static rp_err translate(rp_texter *t, const rp_device *device) {
    rp_translator *translator;
    rp_text translation;
    rp_err err;
    RP_TRY(rp_translator_open(t->arena, t->net.network, &t->net.about.vocab, t->time,
                              t->options.beam, &translator));
    RP_TRY(rp_translate(translator, t->arena, t->id, 1, &translation));
    RP_TRY(print_translation(t, &translation, device));
fail:
    return err;
}

rp_err rp_text_run(rp_texter *t, rp_device *device) {
    rp_err err;
    RP_TRY(rp_network_start(t->net.network, device));
    RP_TRY(t->translates                   ? translate(t, device)
           : rp_trained_rows(&t->net) == 1 ? classify(t, device)
                                           : continue_text(t, device));
fail:
    return err;
}

void rp_text_close(rp_texter **texter) {
    if (*texter) {
        rp_trained_close(&(*texter)->net);
    }
    *texter = NULL;
}
