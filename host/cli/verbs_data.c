/* data fetch and data bpe. */
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include "base/clock.h"
#include "base/json_print.h"
#include "cli/cli.h"
#include "cli/output_file.h"
#include "cli/signals.h"
#include "data/bpe_train.h"
#include "data/fetch.h"
#include "data/vocab.h"

/* ---- fetch ----------------------------------------------------------------------------------- */

/* Prints names and sizes of the fetched files. */
static rp_err print_fetched(const rp_cli_args *args) {
    const bool json = rp_cli_is_json(args);
    const char *name;
    json_t *files = json_array();
    for (uint32_t i = 0; (name = rp_data_fetch_file(args->words.item[0], i)) != NULL; i++) {
        char path[4096];
        struct stat facts = {0};
        (void)snprintf(path, sizeof path, "%s/%s", args->to, name);
        if (stat(path, &facts) != 0) {
            json_decref(files);
            return rp_fail(RP_ERR_IO, "%s: %s", path, strerror(errno));
        }
        (void)json_array_append_new(
            files, json_pack("{s:s, s:I}", "name", name, "bytes", (json_int_t)facts.st_size));
        if (!json) {
            (void)printf("%-28s %12lld bytes\n", name, (long long)facts.st_size);
        }
    }
    json_t *object = json_pack("{s:i, s:s, s:s, s:o}", "version", 1, "set", args->words.item[0],
                               "folder", args->to, "files", files);
    if (json) {
        return rp_json_print(object, 0, stdout);
    }
    json_decref(object);
    return RP_OK;
}

rp_err rp_verb_data_fetch(rp_arena *arena, const rp_cli_args *args) {
    (void)arena;
    const rp_err err = rp_data_fetch(args->words.item[0], args->from, args->to);
    return err == RP_OK ? print_fetched(args) : err;
}

/* ---- bpe ------------------------------------------------------------------------------------- */

/* What a user sees of a training. */
typedef struct {
    int64_t began_ns, told_ns; /* told_ns: when progress was printed last */
    uint32_t calls;
    bool quiet, shown;
} watching;

enum { CALLS_BETWEEN = 256 /* looks at the clock and for signals, except for the last call */ };

static void show_progress(watching *w, uint32_t tokens, uint32_t most) {
    const rp_clock clock = rp_clock_real();
    const int64_t now_ns = rp_clock_now_ns(&clock);
    const int64_t last_ns = w->told_ns > 0 ? w->told_ns : w->began_ns;
    if (now_ns - last_ns < RP_NS_PER_S || w->quiet) {
        return;
    }
    w->told_ns = now_ns;
    w->shown = true;
    if (tokens == 0) {
        (void)fprintf(stderr, "\rreading %.0f s ", (double)(now_ns - w->began_ns) / RP_NS_PER_S);
    } else {
        (void)fprintf(stderr, "\r%u of %u tokens ", tokens, most);
    }
    (void)fflush(stderr);
}

static bool go_on(void *own, uint32_t tokens, uint32_t most) {
    watching *w = own;
    const bool last = tokens == most;
    if (w->calls++ % CALLS_BETWEEN > 0 && !last) {
        return true;
    }
    show_progress(w, tokens, most);
    return !rp_cli_is_stopped(NULL);
}

static rp_err print_learnt(const rp_cli_args *args, const rp_bpe_learnt *learnt) {
    if (rp_cli_is_json(args)) {
        return rp_json_print(json_pack("{s:i, s:s, s:I, s:I, s:I}", "version", 1, "file", args->out,
                                       "tokens", (json_int_t)learnt->tokens, "merges",
                                       (json_int_t)learnt->merges, "words",
                                       (json_int_t)learnt->words),
                             0, stdout);
    }
    (void)printf("%s: %u tokens, %u merges, from %llu different words\n", args->out, learnt->tokens,
                 learnt->merges, (unsigned long long)learnt->words);
    if (learnt->tokens < args->vocab) {
        (void)printf("fewer than %u tokens, because no further pair occurs twice in a word of the "
                     "texts\n",
                     args->vocab);
    }
    return RP_OK;
}

rp_err rp_verb_data_bpe(rp_arena *arena, const rp_cli_args *args) {
    const rp_clock clock = rp_clock_real();
    watching w = {.began_ns = rp_clock_now_ns(&clock),
                  .quiet = args->quiet || !isatty(STDERR_FILENO)};
    const rp_bpe_watch watch = {.go_on = go_on, .own = &w};
    rp_bpe_learnt learnt;
    rp_err err;
    (void)arena;
    if (args->vocab < RP_BPE_VOCAB_MIN) {
        return rp_fail(
            RP_ERR_USAGE,
            "data bpe: --vocab: expected %d to %d tokens, because 4 special ones and 256 "
            "bytes are among them, found %u",
            RP_BPE_VOCAB_MIN, RP_TOKENS_MAX, args->vocab);
    }
    RP_TRY(rp_cli_check_inputs(args, args->out));
    RP_TRY(rp_cli_check_output(args, args->out));
    RP_TRY(rp_cli_watch_signals());
    err =
        rp_bpe_train(args->words.item, args->words.count, args->vocab, args->out, &watch, &learnt);
    if (w.shown) {
        (void)fputc('\n', stderr);
    }
    RP_TRY(err);
    RP_TRY(print_learnt(args, &learnt));
fail:
    return err;
}
