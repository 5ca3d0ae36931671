/* The result on standard output: a few lines for a person, or the summary as one JSON line. */
#include <inttypes.h>
#include <string.h>

#include "record/sink.h"

typedef struct {
    FILE *file;
    rp_format format;
    const char *folder; /* to tell of; NULL: none */
} result;

static rp_err open_sink(rp_arena *arena, const rp_sink_run *run, void **sink) {
    result *to = NULL;
    rp_err err = RP_OK;
    if (run->result) {
        RP_TRY(RP_ARENA_NEW(arena, 1, &to));
        *to = (result){run->result, run->format, run->temporary ? NULL : run->folder};
        *sink = to;
    }
fail:
    return err;
}

static void print_score(FILE *file, const char *split, const rp_summary_score *score,
                        bool classes) {
    if (score->known && classes) {
        (void)fprintf(file, "%s loss %.4f, accuracy %.2f %% of %" PRIu64 "\n", split, score->loss,
                      100 * score->accuracy, score->samples);
    } else if (score->known) {
        (void)fprintf(file, "%s loss %.6g of %" PRIu64 "\n", split, score->loss, score->samples);
    }
}

static void print_text(const result *to, const rp_summary *s) {
    const bool failed = strcmp(s->status, "failed") == 0;
    if (failed && s->samples == 0) {
        return; /* standard error has said why */
    }
    (void)fprintf(to->file, "%s: %s on %u stages", s->status, s->model, s->stages);
    if (s->boards > 0 && s->boards != s->stages) {
        (void)fprintf(to->file, " of %u boards", s->boards);
    }
    (void)fprintf(to->file, ", schedule %s, %" PRIu64 " steps, %.1f s\n", s->schedule, s->steps,
                  s->seconds);
    if (s->samples > 0) {
        if (!s->without_losses) {
            (void)fprintf(to->file, "train loss %.4f, ", s->train_loss);
        }
        (void)fprintf(to->file, "%.0f samples/s", s->samples_per_s);
        if (!failed) { /* busy times come at a segment's end */
            (void)fprintf(to->file, ", bubble %.0f %%", 100 * s->bubble);
        }
        (void)fprintf(to->file, "\n");
    }
    if (s->without_losses) {
        (void)fprintf(to->file, "simulated with the executor %s, which computes no losses\n",
                      s->executor);
    } else {
        print_score(to->file, "validation", &s->validation, s->classes);
        print_score(to->file, s->eval_split ? s->eval_split : "test", &s->eval, s->classes);
    }
    if (to->folder) {
        (void)fprintf(to->file, "everything is in %s\n", to->folder);
    }
}

static rp_err close_sink(void *sink, const rp_summary *summary) {
    const result *to = sink;
    if (!summary) {
        return RP_OK;
    }
    if (to->format == RP_FORMAT_JSON) {
        return rp_summary_print(summary, to->file);
    }
    print_text(to, summary);
    return RP_OK;
}

const rp_sink_kind rp_sink_result = {.name = "result", .open = open_sink, .close = close_sink};
