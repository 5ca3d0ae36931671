/* The result on standard output: a few lines of text, or the summary as one JSON line. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/log.h"
#include "record/sink.h"

/* A wire that is busy for at least this share of the time limits the run. */
static const double LIMIT_SHARE = 0.8;

typedef struct {
    FILE *file;
    rp_format format;
    const char *folder; /* to mention; NULL: do not mention it */
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

/* Prints "test loss 0.5"; four decimals with classes, because losses are of the order of 1. */
static void print_loss(FILE *file, const char *of, double loss, bool classes) {
    if (!isfinite(loss)) {
        (void)fprintf(file, "%s loss not finite", of);
    } else if (classes) {
        (void)fprintf(file, "%s loss %.4f", of, loss);
    } else {
        (void)fprintf(file, "%s loss %.6g", of, loss);
    }
}

static void print_left_out(FILE *file, const rp_summary *s) {
    if (s->left_out > 0 && isfinite(s->train_loss)) {
        (void)fprintf(file, " without %" PRIu64 " step%s whose loss is not finite", s->left_out,
                      s->left_out == 1 ? "" : "s");
    }
}

static void print_token_loss(FILE *file, rp_targets targets, double loss, double bits) {
    if (rp_targets_are_tokens(targets) && isfinite(loss)) {
        (void)fprintf(file, ", perplexity %.4g", rp_perplexity(loss));
    }
    if (targets == RP_TARGETS_TEXT && isfinite(bits)) {
        (void)fprintf(file, ", %.4f bits", bits);
    }
}

static void print_score(FILE *file, const char *split, const rp_summary *s,
                        const rp_summary_score *score) {
    if (!score->known) {
        return;
    }
    print_loss(file, split, score->loss, s->classes);
    print_token_loss(file, s->targets, score->loss, score->bits);
    if (s->classes) {
        (void)fprintf(file, ", accuracy %.2f %%", 100 * score->accuracy);
    }
    const char *word = rp_targets_word(s->targets);
    (void)fprintf(file, " of %" PRIu64 "%s%s", word ? score->counted : score->samples,
                  word ? " " : "", word ? word : "");
    if (s->targets == RP_TARGETS_PIXELS && isfinite(score->mean_iou)) {
        (void)fprintf(file, ", mean IoU %.2f %%", 100 * score->mean_iou);
    }
    (void)fputc('\n', file);
}

static void print_recoveries(FILE *file, const rp_summary *s) {
    uint64_t again = 0;
    for (uint32_t i = 0; i < s->recovery_count; i++) {
        again += s->recovery[i].replay_microbatches;
    }
    if (s->recovery_count > 0) {
        (void)fprintf(file,
                      "faults: went back %u time%s, %" PRIu64 " microbatches were done again\n",
                      s->recovery_count, s->recovery_count == 1 ? "" : "s", again);
    }
    if (s->boards_left > 0) {
        (void)fprintf(file, "boards: %u left the ring, %u joined it again\n", s->boards_left,
                      s->boards_joined);
    }
}

/* The busiest wire among those that a step waits for. */
static const rp_summary_wire *find_busiest(const rp_summary *s) {
    const rp_summary_wire *busiest = NULL;
    for (uint32_t i = 0; i < s->wire_count; i++) {
        const rp_summary_wire *wire = &s->wire[i];
        const bool carries = strcmp(wire->kind, "control") != 0 && isfinite(wire->utilisation);
        if (carries && (!busiest || wire->utilisation > busiest->utilisation)) {
            busiest = wire;
        }
    }
    return busiest;
}

static void print_end(FILE *file, uint32_t board) {
    if (board == UINT32_MAX) {
        (void)fprintf(file, "the host");
    } else {
        (void)fprintf(file, "board %" PRIu32, board);
    }
}

/* Names the wire that limits the run, if there is one. */
static void print_limit(FILE *file, const rp_summary *s) {
    const rp_summary_wire *wire = find_busiest(s);
    if (!wire || !(wire->utilisation >= LIMIT_SHARE)) {
        return;
    }
    (void)fprintf(file, "limited by the wire from ");
    print_end(file, wire->from);
    (void)fprintf(file, " to ");
    print_end(file, wire->to);
    (void)fprintf(file, ": %.3g Mbit/s, busy %.0f %% of the time", wire->rate_mbit,
                  100 * wire->utilisation);
    if (!wire->codec || strcmp(wire->codec, "f32") == 0) { /* a codec is not in use yet */
        (void)fprintf(file, "; links.%s sends fewer bytes",
                      wire->from == UINT32_MAX ? "inputs" : "codec");
    }
    (void)fprintf(file, "\n");
}

static void print_number(FILE *file, double value, bool known) {
    if (known) {
        (void)fprintf(file, "  %8.4g", value);
    } else {
        (void)fprintf(file, "  %8s", "-");
    }
}

/* Prints a table of wires, one row for each direction. */
static void print_wires(FILE *file, const rp_summary *s) {
    char ends[2][16];
    (void)fprintf(file,
                  "\nwire     from to          MiB    Mbit/s    busy %%   ms 50 %%   ms 95 %%  "
                  "  resent    resets  codec\n");
    for (uint32_t i = 0; i < s->wire_count; i++) {
        const rp_summary_wire *wire = &s->wire[i];
        for (uint32_t end = 0; end < 2; end++) {
            const uint32_t board = end == 0 ? wire->from : wire->to;
            (void)snprintf(ends[end], sizeof ends[end], board == UINT32_MAX ? "host" : "%" PRIu32,
                           board);
        }
        (void)fprintf(file, "%-7s  %-4s %-4s", wire->kind, ends[0], ends[1]);
        print_number(file, (double)wire->bytes / (1 << 20), true);
        print_number(file, wire->rate_mbit, isfinite(wire->rate_mbit));
        print_number(file, 100 * wire->utilisation, isfinite(wire->utilisation));
        print_number(file, wire->delay_ms[0], wire->delay_ms[0] > 0);
        print_number(file, wire->delay_ms[1], wire->delay_ms[1] > 0);
        print_number(file, (double)wire->resent, true);
        print_number(file, (double)wire->resets, true);
        (void)fprintf(file, "  %s\n", wire->codec ? wire->codec : "");
    }
}

static void print_text(const result *to, const rp_summary *s) {
    const bool failed = strcmp(s->status, "failed") == 0;
    if (failed && s->samples == 0) {
        return; /* the reason is on standard error */
    }
    (void)fprintf(to->file, "%s: %s on %u stage%s", s->status, s->model, s->stages,
                  s->stages == 1 ? "" : "s");
    if (s->boards > 0 && s->boards != s->stages) {
        (void)fprintf(to->file, " of %u boards", s->boards);
    }
    (void)fprintf(to->file, ", schedule %s, %" PRIu64 " steps, %.1f s\n", s->schedule, s->steps,
                  s->seconds);
    if (s->samples > 0) {
        if (!s->without_losses) {
            print_loss(to->file, "train", s->train_loss, true);
            print_token_loss(to->file, s->targets, s->train_loss, s->train_bits);
            print_left_out(to->file, s);
            (void)fprintf(to->file, ", ");
        }
        (void)fprintf(to->file, "%.0f samples/s", s->samples_per_s);
        if (rp_targets_are_tokens(s->targets)) {
            (void)fprintf(to->file, ", %.0f tokens/s", s->tokens_per_s);
        }
        if (!failed && isfinite(s->bubble)) {
            (void)fprintf(to->file, ", bubble %.0f %%", 100 * s->bubble);
        }
        (void)fprintf(to->file, "\n");
    }
    print_limit(to->file, s);
    if (s->without_losses) {
        (void)fprintf(to->file, "simulated with the executor %s, which computes no losses\n",
                      s->executor);
    } else {
        print_score(to->file, "validation", s, &s->validation);
        print_score(to->file, s->eval_split ? s->eval_split : "test", s, &s->eval);
    }
    print_recoveries(to->file, s);
    if (rp_log_level_now() >= RP_LOG_DEBUG && s->wire_count > 0) {
        print_wires(to->file, s);
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
