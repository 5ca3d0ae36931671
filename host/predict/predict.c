#include "predict/predict.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

struct rp_predictor {
    rp_predict_options options;
    rp_trained net;
    rp_answers *answers;
    rp_clock clock;
    int64_t shown_ns;
    uint32_t file; /* index of the present file */
    /* the microbatch that is being filled: */
    uint32_t count;
    float *x, *y;
    rp_input_place *place;
};

/* ---- opening --------------------------------------------------------------------------------- */

static rp_err check_net(const rp_predictor *p) {
    const rp_description *about = &p->net.about;
    const uint32_t rows = rp_trained_rows(&p->net);
    if (about->type != RP_F32) {
        return rp_fail(RP_ERR_USAGE,
                       "%s: the net was trained on token ids; expected a text with --text",
                       p->options.folder);
    }
    if (rows > 1 &&
        (about->sample.dims != 3 || rows != about->sample.dim[1] * about->sample.dim[2])) {
        return rp_fail(RP_ERR_FORMAT,
                       "%s/data.json: `target_width`: expected a target for each pixel of an "
                       "image, found %u",
                       p->options.folder, rows);
    }
    return RP_OK;
}

static rp_err check_inputs(const rp_predict_options *options) {
    for (uint32_t i = 0; i < options->input_count; i++) {
        const char *path = options->input[i];
        if (strcmp(path, "-") != 0 && access(path, R_OK) != 0) {
            return rp_fail(RP_ERR_IO, "%s: the file is missing or cannot be read", path);
        }
    }
    return RP_OK;
}

rp_err rp_predict_open(rp_arena *arena, const rp_predict_options *options, rp_predictor **out) {
    rp_predictor *p = NULL;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(arena, 1, &p));
    *p = (rp_predictor){.options = *options, .clock = rp_clock_real()};
    RP_TRY(rp_trained_read(arena, options->folder, options->weights, &p->net));
    RP_TRY(check_net(p));
    RP_TRY(check_inputs(options));
    const size_t micro = rp_network_micro(p->net.network);
    const uint32_t outputs = rp_network_outputs(p->net.network);
    RP_TRY(RP_ARENA_NEW(arena, micro * rp_shape_count(&p->net.about.sample), &p->x));
    RP_TRY(RP_ARENA_NEW(arena, micro * outputs, &p->y));
    RP_TRY(RP_ARENA_NEW(arena, micro, &p->place));
    const uint32_t most = rp_trained_outputs(&p->net);
    p->options.top = options->top < 1 ? 1 : options->top > most ? most : options->top;
    *out = p;
    return RP_OK;
fail:
    rp_predict_close(&p);
    return err;
}

/* ---- samples --------------------------------------------------------------------------------- */

/* Shows the progress in one line that is rewritten. */
static void show_progress(rp_predictor *p, bool last) {
    const int64_t now_ns = rp_clock_now_ns(&p->clock);
    if (!p->options.progress || (!last && now_ns - p->shown_ns < RP_NS_PER_S / 5) ||
        (last && p->shown_ns == 0)) {
        return;
    }
    p->shown_ns = now_ns;
    if (last) {
        (void)fprintf(p->options.progress, "\r\033[K");
    } else {
        (void)fprintf(p->options.progress, "\r\033[Kfile %u of %u, %" PRIu64 " samples",
                      p->file + 1, p->options.input_count, rp_answers_count(p->answers));
    }
    (void)fflush(p->options.progress);
}

static rp_err flush_samples(rp_predictor *p) {
    const uint32_t outputs = rp_network_outputs(p->net.network);
    rp_err err = RP_OK;
    if (p->count == 0) {
        return RP_OK;
    }
    RP_TRY(rp_network_run(p->net.network, 0, p->x, p->count, p->y));
    for (uint32_t i = 0; i < p->count; i++) {
        RP_TRY(rp_answers_add(p->answers, &p->place[i], p->y + (size_t)i * outputs));
    }
    show_progress(p, false);
fail:
    p->count = 0;
    return err;
}

static rp_err take_sample(void *context, const rp_input_place *place, const float *x) {
    rp_predictor *p = context;
    const size_t floats = rp_shape_count(&p->net.about.sample);
    memcpy(p->x + p->count * floats, x, floats * sizeof *x);
    p->place[p->count++] = *place;
    return p->count == rp_network_micro(p->net.network) ? flush_samples(p) : RP_OK;
}

rp_err rp_predict_run(rp_predictor *p, rp_device *device) {
    const uint32_t rows = rp_trained_rows(&p->net);
    const rp_answers_options options = {.file = p->options.out,
                                        .format = p->options.format,
                                        .about = &p->net.about,
                                        .outputs = rp_trained_outputs(&p->net),
                                        .pixels = rows > 1 ? rows : 0,
                                        .top = p->options.top,
                                        .weights = p->net.weights,
                                        .device = rp_device_facts_of(device)->name};
    rp_arena arena;
    rp_err err;
    rp_arena_init(&arena, "predictions", 0);
    RP_TRY(rp_network_start(p->net.network, device));
    RP_TRY(rp_answers_open(&arena, &options, &p->answers));
    for (p->file = 0; p->file < p->options.input_count; p->file++) {
        err = rp_inputs_read(&p->net.about, p->options.input[p->file], take_sample, p);
        if (err != RP_OK) {
            (void)!flush_samples(p); /* samples before the bad one */
            goto fail;
        }
    }
    RP_TRY(flush_samples(p));
    show_progress(p, true);
    RP_TRY(rp_answers_finish(p->answers));
fail:
    if (err != RP_OK && p->answers) {
        show_progress(p, true);
    }
    rp_answers_close(&p->answers);
    rp_arena_finish(&arena);
    return err;
}

void rp_predict_close(rp_predictor **predictor) {
    if (*predictor) {
        rp_trained_close(&(*predictor)->net);
    }
    *predictor = NULL;
}
