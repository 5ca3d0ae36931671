/* boards log: the last lines of a board's journal, including the previous run of the agent. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <jansson.h>

#include "base/json_print.h"
#include "base/log.h"
#include "cli/boards_ask.h"

enum { LINES = 30, LINES_MAX = 128 };
#define FOLLOW_NS (1 * RP_NS_PER_S)
#define RETURN_NS (5 * RP_NS_PER_S) /* time between attempts to reach a lost board */

typedef struct {
    const rp_cli_args *args;
    rp_asker *asker;
    rp_Ask ask;
    uint64_t life; /* of the agent that answered last; 0: no answer yet */
} reading;

static rp_err print_line(const reading *r, const rp_Lines *lines, uint32_t k) {
    if (!rp_cli_is_json(r->args)) {
        rp_cli_print_line("", lines->time_ms[k], lines->text[k]);
        return RP_OK;
    }
    static const char *const levels[] = {"error", "warn", "info", "debug"};
    json_t *one =
        json_pack("{s:I, s:f, s:s, s:s}", "number", (json_int_t)lines->number[k], "time_s",
                  (double)lines->time_ms[k] * 1e-3, "level",
                  levels[lines->level[k] < 4 ? lines->level[k] : 3], "text", lines->text[k]);
    return rp_json_print(one, JSON_COMPACT, stdout);
}

/* Prints the lines of one answer. *all: the journal has no further lines yet. */
static rp_err take_lines(reading *r, const rp_Frame *frame, bool *all) {
    const rp_Lines *lines = &frame->body.lines;
    rp_err err = RP_OK;
    if (rp_frame_kind(frame) != RP_KIND_LINES) {
        return rp_fail(RP_ERR_PEER, "the board answered with the message %s, expected lines",
                       rp_kind_name(rp_frame_kind(frame)));
    }
    /* A restarted agent without a file for its last words numbers lines from 1. */
    if (r->life != 0 && lines->life != r->life && lines->end < r->ask.first) {
        r->life = lines->life;
        r->ask.first = 1;
        *all = false;
        return RP_OK;
    }
    r->life = lines->life;
    for (uint32_t k = 0; k < lines->number_count && k < lines->text_count &&
                         k < lines->time_ms_count && k < lines->level_count;
         k++) {
        RP_TRY(print_line(r, lines, k));
    }
    *all = lines->next >= lines->end || lines->next <= r->ask.first;
    r->ask.first = lines->next > r->ask.first ? lines->next : r->ask.first;
    (void)fflush(stdout);
fail:
    return err;
}

static rp_err print_lines(reading *r) {
    rp_Frame frame;
    bool all = false;
    rp_err err = RP_OK;
    for (uint32_t i = 0; !all && i <= LINES_MAX; i++) {
        RP_TRY(rp_asker_ask(r->asker, &r->ask, RP_CLI_ASK_NS, &frame, NULL));
        RP_TRY(take_lines(r, &frame, &all));
    }
fail:
    return err;
}

/* Prints new lines until the user stops it or standard output is closed. Waits for a lost board. */
static rp_err follow(reading *r) {
    rp_err err = RP_OK;
    while (!ferror(stdout)) {
        rp_Frame frame;
        rp_greet_state came;
        bool all = true;
        const struct timespec nap = {.tv_sec = FOLLOW_NS / RP_NS_PER_S};
        RP_TRY(rp_asker_try(r->asker, &r->ask, RETURN_NS, &frame, NULL, &came));
        if (came == RP_GREET_THERE) {
            RP_TRY(take_lines(r, &frame, &all));
        } else if (came == RP_GREET_REFUSED) {
            return rp_fail(RP_ERR_REFUSED, "the board has started to refuse this host's key");
        }
        if (all) {
            (void)nanosleep(&nap, NULL);
        }
    }
fail:
    return err;
}

rp_err rp_verb_boards_log(rp_arena *arena, const rp_cli_args *args) {
    reading r = {.args = args,
                 .ask = {.what = RP_ASK_LINES,
                         .count = args->log.lines ? args->log.lines : LINES,
                         .level = args->verbose ? RP_LOG_DEBUG : RP_LOG_INFO}};
    rp_cli_asking asking;
    rp_err err;
    RP_TRY(rp_cli_asking_open(arena, args, &asking));
    if (asking.count != 1) {
        RP_TRY(rp_fail(RP_ERR_USAGE, "boards log: expected exactly one board, found %u",
                       asking.count));
    }
    RP_TRY(rp_cli_ask_open(arena, &asking, asking.boards, &r.asker));
    RP_TRY(print_lines(&r));
    RP_TRY(args->log.follow ? follow(&r) : RP_OK);
fail:
    rp_asker_close(&r.asker);
    rp_cli_asking_close(&asking);
    return err;
}
