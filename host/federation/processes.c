/* The engine of real runs: a round is `ringpipe round`, an evaluation `ringpipe eval`. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "federation/engine.h"
#include "federation/federation_own.h"
#include "federation/ring_now.h"
#include "run/patterns.h"

enum { WORDS_MAX = 32 + 2 * RP_SITE_PATTERNS_MAX, NUMBER_BYTES = 32 };

static void add_length(const rp_round_order *order, char number[NUMBER_BYTES], const char **word) {
    (void)snprintf(number, NUMBER_BYTES, "%u", order->steps > 0 ? order->steps : order->epochs);
    word[0] = order->steps > 0 ? "--steps" : "--epochs";
    word[1] = number;
}

/* Texts of options, for the time of the call. */
typedef struct {
    char clip[NUMBER_BYTES], delta[RP_DELTA_TEXT];
} option_texts;

/* Returns how many words were added. */
static uint32_t add_options(const rp_round_order *order, option_texts *to, const char **word) {
    const rp_site_options *options = order->options;
    uint32_t count = 0;
    for (uint32_t i = 0; i < rp_patterns_count(options->keep); i++) {
        word[count++] = "--keep";
        word[count++] = rp_node_text(rp_patterns_at(options->keep, i));
    }
    if (options->drift) {
        word[count++] = "--drift";
    }
    if (options->keeps_optimizer) {
        word[count++] = "--optimizer";
        word[count++] = "keep";
    }
    if (options->clip > 0) {
        (void)snprintf(to->clip, sizeof to->clip, "%.17g", options->clip);
        word[count++] = "--clip";
        word[count++] = to->clip;
    }
    if (options->delta.kind != RP_DELTA_NONE) {
        rp_delta_print(&options->delta, to->delta);
        word[count++] = "--delta";
        word[count++] = to->delta;
    }
    if (rp_site_options_keep_state(options)) {
        word[count++] = "--state";
        word[count++] = order->kept;
    }
    return count;
}

static rp_err start_round(void *context, rp_child *child, const rp_round_order *order) {
    char round[NUMBER_BYTES];
    char length[NUMBER_BYTES];
    option_texts texts;
    const char *word[WORDS_MAX] = {"ringpipe", "round", order->run_yaml, "--quiet", "--in",
                                   order->in,  "--out", order->out,      "--round", round};
    uint32_t count = 10;
    rp_err err;
    (void)context;
    (void)snprintf(round, sizeof round, "%" PRIu64, order->round);
    add_length(order, length, word + count);
    count += 2;
    count += add_options(order, &texts, word + count);
    if (order->keys) {
        word[count++] = "--keys";
        word[count++] = order->keys;
    }
    word[count] = NULL;
    const int log = open(order->log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0666);
    err =
        log >= 0 ? rp_child_start(child, NULL, word, (const int[3]){-1, log, log}, -1) : RP_ERR_IO;
    if (err != RP_OK) {
        err = rp_fail(RP_ERR_IO, "%s: site %s cannot be started: %s", order->log, order->name,
                      strerror(errno));
    }
    if (log >= 0) {
        (void)close(log);
    }
    return err;
}

static rp_err start_score(void *context, rp_child *child, const rp_score_order *order) {
    const char *const word[] = {"ringpipe",
                                "eval",
                                order->folder,
                                "--weights",
                                order->weights,
                                "--format",
                                "json",
                                "--quiet",
                                order->keys ? "--keys" : NULL,
                                order->keys,
                                NULL};
    const int flags = O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW;
    const int out = open(order->scores, flags | O_TRUNC, 0666);
    const int log = open(order->log, flags | O_APPEND, 0666);
    (void)context;
    rp_err err = out >= 0 && log >= 0
                     ? rp_child_start(child, NULL, word, (const int[3]){-1, out, log}, -1)
                     : RP_ERR_IO;
    if (err != RP_OK) {
        err = rp_fail(RP_ERR_IO, "%s: the evaluation cannot be started: %s", order->log,
                      strerror(errno));
    }
    if (out >= 0) {
        (void)close(out);
    }
    if (log >= 0) {
        (void)close(log);
    }
    return err;
}

static void tell(void *context, rp_child *child, int64_t now_ns) {
    (void)context;
    rp_child_tell(child, now_ns);
}

static void press(void *context, rp_child *child, int64_t now_ns) {
    (void)context;
    rp_child_press(child, now_ns);
}

static bool reap(void *context, rp_child *child, int *code) {
    (void)context;
    return rp_child_reap(child, code);
}

static void kill_child(void *context, rp_child *child) {
    (void)context;
    rp_child_kill(child);
}

static void list_away(void *context, const char *out, char *names, size_t bytes) {
    char folder[RP_FEDERATION_PATH];
    (void)context;
    (void)snprintf(folder, sizeof folder, "%.4000s/run", out);
    rp_ring_now_list_away(folder, names, bytes);
}

static rp_err begin_center(void *context, const rp_runfile *run, const char *path) {
    (void)context;
    return rp_federation_begin_center(run, path);
}

static uint64_t file_bytes(void *context, const char *path) {
    struct stat facts;
    (void)context;
    return stat(path, &facts) == 0 ? (uint64_t)facts.st_size : 0;
}

rp_site_engine rp_site_processes(void) {
    static const rp_site_engine_kind kind = {.start_round = start_round,
                                             .start_score = start_score,
                                             .tell = tell,
                                             .press = press,
                                             .reap = reap,
                                             .kill = kill_child,
                                             .begin_center = begin_center,
                                             .file_bytes = file_bytes,
                                             .list_away = list_away};
    return (rp_site_engine){.kind = &kind};
}
