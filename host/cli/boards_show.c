/* boards show: the condition of a board in any state. Missing values are "-", or null in JSON. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "agent/agent.h"
#include "base/json_print.h"
#include "base/log.h"
#include "cli/boards_ask.h"
#include "cli/system_slots.h"

enum { TEXT_BYTES = 256, WORDS_BEFORE = 5 /* lines up to and including a fault */ };

typedef struct {
    rp_Condition said;
    rp_Ordered holder;     /* host and run that use the board; zeros: none, or old software */
    int64_t round_trip_ns; /* 0: unknown */
    uint32_t word_count;   /* lines up to and including the last fault */
    struct {
        uint64_t number, time_ms;
        char text[sizeof((rp_Lines *)0)->text[0]];
    } word[WORDS_BEFORE];
} showing;

/* ---- asking ---------------------------------------------------------------------------------- */

static rp_err ask_words(rp_asker *asker, showing *s) {
    rp_Ask ask = {.what = RP_ASK_LINES, .count = 1, .level = RP_LOG_INFO};
    rp_Frame frame;
    rp_err err;
    RP_TRY(rp_asker_ask(asker, &ask, RP_CLI_ASK_NS, &frame, NULL));
    const uint64_t fault = frame.body.lines.fault; /* number of the line after the last fault */
    ask.first = fault > WORDS_BEFORE ? fault - WORDS_BEFORE : 1;
    for (uint32_t i = 0; fault > 0 && ask.first < fault && i < WORDS_BEFORE; i++) {
        RP_TRY(rp_asker_ask(asker, &ask, RP_CLI_ASK_NS, &frame, NULL));
        const rp_Lines *lines = &frame.body.lines;
        for (uint32_t k = 0; k < lines->text_count && k < lines->number_count &&
                             k < lines->time_ms_count && s->word_count < WORDS_BEFORE;
             k++) {
            if (lines->number[k] < fault) {
                s->word[s->word_count].number = lines->number[k];
                s->word[s->word_count].time_ms = lines->time_ms[k];
                memcpy(s->word[s->word_count++].text, lines->text[k], sizeof s->word[0].text);
            }
        }
        if (lines->next <= ask.first) {
            break;
        }
        ask.first = lines->next;
    }
fail:
    return err;
}

/* Older software, which does not know the question, answers with a different outcome. */
static rp_err ask_holder(rp_asker *asker, rp_Ordered *out) {
    const rp_Ask ask = {.what = RP_ASK_HOLDER};
    rp_Frame frame;
    rp_err err;
    RP_TRY(rp_asker_ask(asker, &ask, RP_CLI_ASK_NS, &frame, NULL));
    if (rp_frame_kind(&frame) == RP_KIND_ORDERED && frame.body.ordered.outcome == RP_ORDERED_DONE) {
        *out = frame.body.ordered;
    }
fail:
    return err;
}

/* Asks twice, because the first question also opens the connection; the second measures the round
 * trip. */
static rp_err ask_board(rp_asker *asker, showing *s) {
    const rp_Ask ask = {.what = RP_ASK_CONDITION};
    rp_Frame frame;
    rp_err err;
    *s = (showing){0};
    RP_TRY(rp_asker_ask(asker, &ask, RP_CLI_ASK_NS, &frame, NULL));
    RP_TRY(rp_asker_ask(asker, &ask, RP_CLI_ASK_NS, &frame, &s->round_trip_ns));
    if (rp_frame_kind(&frame) != RP_KIND_CONDITION) {
        return rp_fail(RP_ERR_PEER, "the board answered with the message %s, expected condition",
                       rp_kind_name(rp_frame_kind(&frame)));
    }
    s->said = frame.body.condition;
    RP_TRY(ask_holder(asker, &s->holder));
    RP_TRY(ask_words(asker, s));
fail:
    return err;
}

/* ---- readings -------------------------------------------------------------------------------- */

/* false: the board lacks this reading, or it is not finite. */
static bool find_reading(const rp_Condition *said, rp_reading what, double *out) {
    for (uint32_t i = 0; i < said->reading_count; i++) {
        if (said->reading[i].what == (uint32_t)what && isfinite(said->reading[i].value)) {
            *out = said->reading[i].value;
            return true;
        }
    }
    return false;
}

static const char *state_word(const rp_Condition *said) {
    return said->state < RP_AGENT_STATES ? rp_agent_state_name((rp_agent_state)said->state)
                                         : "unknown";
}

/* Writes the reading times `scale`, or "-". */
static void say_reading(const rp_Condition *said, rp_reading what, double scale, int digits,
                        char *out, size_t bytes) {
    double value;
    if (find_reading(said, what, &value)) {
        (void)snprintf(out, bytes, "%.*f", digits, value * scale);
    } else {
        (void)snprintf(out, bytes, "-");
    }
}

static const struct {
    uint32_t bit;
    const char *word;
} reasons[] = {{RP_THROTTLED_VOLTAGE, "voltage"},
               {RP_THROTTLED_CLOCK, "clock"},
               {RP_THROTTLED_HEAT, "heat"},
               {RP_THROTTLED_CURRENT, "current"}};
enum { REASONS = sizeof reasons / sizeof *reasons };

static void say_throttled(const rp_Condition *said, rp_reading what, char *out, size_t bytes) {
    double value;
    size_t used = 0;
    if (!find_reading(said, what, &value) || value < 0 || value > UINT32_MAX) {
        (void)snprintf(out, bytes, "-");
        return;
    }
    (void)snprintf(out, bytes, "none");
    for (uint32_t i = 0; i < REASONS; i++) {
        if ((uint32_t)value & reasons[i].bit && used < bytes) {
            used += (size_t)snprintf(out + used, bytes - used, "%s%s", used ? ", " : "",
                                     reasons[i].word);
        }
    }
}

static void say_time(const rp_Condition *said, rp_reading what, char *out, size_t bytes) {
    double seconds;
    if (!find_reading(said, what, &seconds) || seconds < 0 || seconds > 1e11) {
        (void)snprintf(out, bytes, "-");
        return;
    }
    const uint64_t s = (uint64_t)seconds;
    (void)snprintf(out, bytes, "%" PRIu64 " d %02u:%02u:%02u", s / 86400, (unsigned)(s / 3600 % 24),
                   (unsigned)(s / 60 % 60), (unsigned)(s % 60));
}

static const char *text_or_dash(const char *text) {
    return text[0] ? text : "-";
}

/* ---- as text --------------------------------------------------------------------------------- */

static void print_state(const rp_Condition *said) {
    char ready[TEXT_BYTES] = "";
    char left[TEXT_BYTES] = "";
    double kernels;
    double done;
    double left_s;
    if (find_reading(said, RP_READING_KERNELS, &kernels) &&
        find_reading(said, RP_READING_KERNELS_READY, &done)) {
        (void)snprintf(ready, sizeof ready, ", %.0f of %.0f kernels are ready%s%s", done, kernels,
                       said->building[0] ? ", building " : "", said->building);
    }
    if (find_reading(said, RP_READING_WARM_LEFT, &left_s)) {
        (void)snprintf(left, sizeof left, "; timeout in %.0f s", left_s);
    }
    (void)printf("  state        %s%s%s\n  stage        ", state_word(said), ready, left);
    for (uint32_t i = 0; i < said->stage_count; i++) {
        (void)printf("%s%" PRIu32, i ? ", " : "", said->stage[i]);
    }
    if (said->run == 0) {
        (void)printf("-\n");
    } else {
        (void)printf("%sstep %" PRIu64 " of run %016" PRIx64 ", term %" PRIu32 "\n",
                     said->stage_count ? "; " : "", said->step, said->run, said->term);
    }
}

static void print_holder(const rp_Ordered *holder) {
    char host[TEXT_BYTES] = "-";
    char heard[TEXT_BYTES] = "";
    if (rp_cause_is_held(holder)) {
        rp_cause_name_host(holder, host, sizeof host);
        if (holder->address[0]) {
            (void)snprintf(heard, sizeof heard, ", heard %.1f s ago",
                           (double)holder->silent_ms * 1e-3);
        }
    }
    (void)printf("  holder       %s%s\n", host, heard);
}

static void print_sensors(const rp_Condition *said) {
    char a[TEXT_BYTES];
    char b[TEXT_BYTES];
    char c[TEXT_BYTES];
    say_reading(said, RP_READING_TEMPERATURE, 1, 1, a, sizeof a);
    say_reading(said, RP_READING_CRITICAL, 1, 1, b, sizeof b);
    (void)printf("  temperature  %s C; critical at %s C\n", a, b);
    say_throttled(said, RP_READING_THROTTLED, a, sizeof a);
    say_throttled(said, RP_READING_WAS_THROTTLED, b, sizeof b);
    (void)printf("  throttled    now: %s; since power-on: %s\n", a, b);
    say_reading(said, RP_READING_POWER, 1, 1, a, sizeof a);
    (void)printf("  power        %s W\n", a);
    say_reading(said, RP_READING_CLOCK, 1e-9, 2, a, sizeof a);
    say_reading(said, RP_READING_CLOCK_MAX, 1e-9, 2, b, sizeof b);
    say_reading(said, RP_READING_DEVICE_CLOCK, 1e-9, 2, c, sizeof c);
    (void)printf("  clock        %s of %s GHz; GPU: %s GHz\n", a, b, c);
}

static void print_links(const showing *s) {
    const rp_Condition *said = &s->said;
    char trip[TEXT_BYTES] = "-";
    if (s->round_trip_ns > 0) {
        (void)snprintf(trip, sizeof trip, "%.2f", (double)s->round_trip_ns * 1e-6);
    }
    (void)printf("  link         round trip %s ms; %" PRIu64 " reconnections to its host\n", trip,
                 said->hosts);
    for (uint32_t i = 0; i < said->hop_count; i++) {
        const rp_HopState *hop = &said->hop[i];
        (void)printf("  hop          to board %u of the plan: %s, %.2f ms to the ack, %" PRIu64
                     " resets, %" PRIu64 " messages resent\n",
                     hop->peer + 1, hop->there ? "answers" : "silent", 1e3 * (double)hop->delay_s,
                     hop->resets, hop->resent);
    }
}

static void say_slots(const rp_Condition *said, char *out, size_t bytes) {
    static const char *const names[] = {"the system's own", "a", "b"};
    char good[64] = "the system's own software";
    char trial[96] = "";
    char failed[64] = "";
    if (!said->has_slots) {
        (void)snprintf(out, bytes, "-");
        return;
    }
    if (said->release > 0) {
        (void)snprintf(good, sizeof good, "release %" PRIu64, said->release);
    }
    if (said->trial_release > 0) {
        (void)snprintf(trial, sizeof trial, "; release %" PRIu64 " is on trial, %u starts left",
                       said->trial_release, said->starts);
    }
    if (said->failed > 0) {
        (void)snprintf(failed, sizeof failed, "; release %" PRIu64 " failed its trial",
                       said->failed);
    }
    (void)snprintf(out, bytes, "%s runs; %s is good%s%s", names[said->slot < 3 ? said->slot : 0],
                   good, trial, failed);
}

static void print_system(const rp_Condition *said) {
    char a[TEXT_BYTES];
    char b[TEXT_BYTES];
    char c[TEXT_BYTES];
    (void)printf("  versions     ringpipe %s, wire %u to %u; driver %s of %s\n",
                 text_or_dash(said->software), said->wire_min, said->wire_max,
                 text_or_dash(said->driver), text_or_dash(said->device));
    (void)printf("  system       %s, kernel %s; profile %s\n", text_or_dash(said->system),
                 text_or_dash(said->kernel), text_or_dash(said->board));
    say_slots(said, a, sizeof a);
    (void)printf("  slots        %s\n", a);
    if (rp_cli_say_system(said->system_slots, said->system_slots_count, said->system_slot, a,
                          sizeof a)) {
        (void)printf("  systems      %s\n", a);
    }
    say_reading(said, RP_READING_MEMORY_FREE, 1.0 / (1 << 20), 1, a, sizeof a);
    say_reading(said, RP_READING_MEMORY, 1.0 / (1 << 20), 1, b, sizeof b);
    say_reading(said, RP_READING_RESIDENT, 1.0 / (1 << 20), 1, c, sizeof c);
    (void)printf("  memory       %s of %s MiB free; the agent uses %s MiB\n", a, b, c);
    say_reading(said, RP_READING_DISK_FREE, 1.0 / (1 << 20), 1, a, sizeof a);
    say_reading(said, RP_READING_DISK, 1.0 / (1 << 20), 1, b, sizeof b);
    (void)printf("  disk         %s of %s MiB free\n", a, b);
    say_time(said, RP_READING_UP, a, sizeof a);
    say_time(said, RP_READING_AGENT_UP, b, sizeof b);
    say_reading(said, RP_READING_LOAD, 1, 1, c, sizeof c);
    (void)printf("  up           %s; the agent: %s; load %s; reboots by a host are %s\n", a, b, c,
                 said->may_reboot ? "allowed" : "not allowed");
}

static void print_text(const char *name, const showing *s) {
    (void)printf("%s\n", name);
    print_state(&s->said);
    print_holder(&s->holder);
    print_sensors(&s->said);
    print_links(s);
    print_system(&s->said);
    (void)printf("  last words   %s\n",
                 s->word_count ? "up to its last fault:" : "none, because no fault is known");
    for (uint32_t i = 0; i < s->word_count; i++) {
        rp_cli_print_line("    ", s->word[i].time_ms, s->word[i].text);
    }
}

/* ---- as JSON --------------------------------------------------------------------------------- */

static json_t *reading_json(const rp_Condition *said, rp_reading what) {
    double value;
    return find_reading(said, what, &value) ? json_real(value) : json_null();
}

static json_t *throttled_json(const rp_Condition *said, rp_reading what) {
    double value;
    if (!find_reading(said, what, &value) || value < 0 || value > UINT32_MAX) {
        return json_null();
    }
    json_t *list = json_array();
    for (uint32_t i = 0; i < REASONS; i++) {
        if ((uint32_t)value & reasons[i].bit) {
            (void)json_array_append_new(list, json_string(reasons[i].word));
        }
    }
    return list;
}

static json_t *text_json(const char *text) {
    return text[0] ? json_string(text) : json_null();
}

static json_t *run_json(const rp_Condition *said) {
    char run[20];
    json_t *stages = json_array();
    if (said->run == 0) {
        json_decref(stages);
        return json_null();
    }
    for (uint32_t i = 0; i < said->stage_count; i++) {
        (void)json_array_append_new(stages, json_integer(said->stage[i]));
    }
    (void)snprintf(run, sizeof run, "%016" PRIx64, said->run);
    return json_pack("{s:s, s:I, s:I, s:o}", "id", run, "term", (json_int_t)said->term, "step",
                     (json_int_t)said->step, "stages", stages);
}

static json_t *holder_json(const rp_Ordered *holder) {
    if (!rp_cause_is_held(holder)) {
        return json_null();
    }
    return json_pack("{s:o, s:o, s:o}", "origin", text_json(holder->origin), "address",
                     text_json(holder->address), "silent_s",
                     holder->address[0] ? json_real((double)holder->silent_ms * 1e-3)
                                        : json_null());
}

static json_t *hops_json(const rp_Condition *said) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < said->hop_count; i++) {
        const rp_HopState *hop = &said->hop[i];
        const double delay_s = isfinite(hop->delay_s) ? (double)hop->delay_s : 0;
        (void)json_array_append_new(
            list, json_pack("{s:I, s:b, s:f, s:I, s:I}", "board", (json_int_t)hop->peer, "there",
                            (int)hop->there, "delay_s", delay_s, "resets", (json_int_t)hop->resets,
                            "resent", (json_int_t)hop->resent));
    }
    return list;
}

static json_t *slots_json(const rp_Condition *said) {
    static const char *const names[] = {"", "a", "b"};
    return said->has_slots
               ? json_pack("{s:o, s:I, s:I, s:I, s:I, s:I}", "runs",
                           text_json(names[said->slot < 3 ? said->slot : 0]), "release",
                           (json_int_t)said->release, "trial_release",
                           (json_int_t)said->trial_release, "starts", (json_int_t)said->starts,
                           "former", (json_int_t)said->former, "failed", (json_int_t)said->failed)
               : json_null();
}

static json_t *words_json(const showing *s) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < s->word_count; i++) {
        (void)json_array_append_new(
            list, json_pack("{s:I, s:f, s:s}", "number", (json_int_t)s->word[i].number, "time_s",
                            (double)s->word[i].time_ms * 1e-3, "text", s->word[i].text));
    }
    return list;
}

static void add_readings(json_t *root, const rp_Condition *said) {
    static const struct {
        rp_reading what;
        const char *key;
    } rows[] = {{RP_READING_TEMPERATURE, "temperature_c"},
                {RP_READING_CRITICAL, "critical_c"},
                {RP_READING_POWER, "power_w"},
                {RP_READING_CLOCK, "clock_hz"},
                {RP_READING_CLOCK_MAX, "clock_max_hz"},
                {RP_READING_DEVICE_CLOCK, "device_clock_hz"},
                {RP_READING_MEMORY, "memory_bytes"},
                {RP_READING_MEMORY_FREE, "memory_free_bytes"},
                {RP_READING_DISK, "disk_bytes"},
                {RP_READING_DISK_FREE, "disk_free_bytes"},
                {RP_READING_LOAD, "load"},
                {RP_READING_UP, "up_s"},
                {RP_READING_AGENT_UP, "agent_up_s"},
                {RP_READING_RESIDENT, "resident_bytes"},
                {RP_READING_KERNELS, "kernels"},
                {RP_READING_KERNELS_READY, "kernels_ready"},
                {RP_READING_WARM_LEFT, "warm_left_s"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        (void)json_object_set_new(root, rows[i].key, reading_json(said, rows[i].what));
    }
    (void)json_object_set_new(root, "throttled", throttled_json(said, RP_READING_THROTTLED));
    (void)json_object_set_new(root, "was_throttled",
                              throttled_json(said, RP_READING_WAS_THROTTLED));
    (void)json_object_set_new(root, "building", text_json(said->building));
}

static rp_err print_json(const char *name, const showing *s) {
    const rp_Condition *said = &s->said;
    json_t *root = json_pack(
        "{s:i, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:[i,i], s:o, s:b, s:I, s:o, s:o}",
        "version", 1, "name", name, "state", state_word(said), "run", run_json(said), "software",
        text_json(said->software), "board", text_json(said->board), "device",
        text_json(said->device), "driver", text_json(said->driver), "system",
        text_json(said->system), "kernel", text_json(said->kernel), "wire", (int)said->wire_min,
        (int)said->wire_max, "slots", slots_json(said), "may_reboot", (int)said->may_reboot,
        "resets", (json_int_t)said->hosts, "hops", hops_json(said), "last_words", words_json(s));
    if (root) {
        (void)json_object_set_new(root, "holder", holder_json(&s->holder));
        (void)json_object_set_new(root, "round_trip_s",
                                  s->round_trip_ns > 0 ? json_real((double)s->round_trip_ns * 1e-9)
                                                       : json_null());
        (void)json_object_set_new(
            root, "systems",
            rp_cli_system_json(said->system_slots, said->system_slots_count, said->system_slot));
        add_readings(root, said);
    }
    return rp_json_print(root, JSON_COMPACT | JSON_REAL_PRECISION(9), stdout);
}

/* ---- the verb -------------------------------------------------------------------------------- */

static rp_err show_board(rp_arena *arena, rp_cli_asking *asking, const rp_roster_entry *board) {
    rp_asker *asker = NULL;
    showing s;
    rp_err err;
    RP_TRY(rp_cli_ask_open(arena, asking, board, &asker));
    RP_TRY(ask_board(asker, &s));
    if (rp_cli_is_json(asking->args)) {
        RP_TRY(print_json(board->name, &s));
    } else {
        print_text(board->name, &s);
    }
    (void)fflush(stdout);
fail:
    rp_asker_close(&asker);
    return err;
}

/* Continues after a board that does not answer; the worst error is the result. */
rp_err rp_verb_boards_show(rp_arena *arena, const rp_cli_args *args) {
    rp_cli_asking asking;
    rp_err worst = RP_OK;
    rp_err err;
    RP_TRY(rp_cli_asking_open(arena, args, &asking));
    for (uint32_t i = 0; i < asking.count && err != RP_ERR_INTERRUPTED; i++) {
        err = show_board(arena, &asking, &asking.boards[i]);
        worst = err != RP_OK ? err : worst;
    }
    err = worst;
fail:
    rp_cli_asking_close(&asking);
    return err;
}
