/* Verbs that inspect and stop runs by their folders: ps, log, stop. */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/json_print.h"
#include "base/json_values.h"
#include "cli/cli.h"
#include "runs/follow.h"
#include "runs/found.h"
#include "runs/state.h"
#include "runs/tail.h"

enum { PATH_BYTES = 4096, LOOK_MS = 200, STEPS_SHOWN = 40, FOLLOW_S = 2, WAIT_S = 600 };

static void rest_ms(long ms) {
    const struct timespec span = {ms / 1000, ms % 1000 * 1000000};
    (void)nanosleep(&span, NULL);
}

/* ---- ps -------------------------------------------------------------------------------------- */

/* Path of a folder, relative if it is below the current folder. */
static const char *short_name(const char *folder) {
    char here[PATH_BYTES];
    const size_t length = getcwd(here, sizeof here) ? strlen(here) : 0;
    return length > 1 && strncmp(folder, here, length) == 0 && folder[length] == '/' &&
                   folder[length + 1]
               ? folder + length + 1
               : folder;
}

static json_t *text_or_null(const char *text) {
    return text[0] ? json_string(text) : json_null();
}

static json_t *count_or_null(uint64_t count) {
    return count > 0 ? json_integer((json_int_t)count) : json_null();
}

static json_t *state_json(const char *folder, const rp_run_state *state) {
    const bool there = state->owner.life == RP_OWNER_ALIVE;
    return json_pack("{s:o, s:s, s:o, s:o, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "folder",
                     rp_json_path(folder), "state", rp_run_condition_name(state->condition),
                     "model", text_or_null(state->model), "schedule", text_or_null(state->schedule),
                     "step", (json_int_t)state->step, "steps", count_or_null(state->steps), "loss",
                     rp_json_of_real(state->loss), "samples_per_s",
                     rp_json_of_real(state->samples_per_s), "left_s",
                     rp_json_of_real(state->left_s), "boards", count_or_null(state->boards), "pid",
                     count_or_null(there ? (uint64_t)state->owner.pid : 0), "host",
                     text_or_null(state->owner.host));
}

static void print_row(const char *folder, const rp_run_state *state, int width) {
    char step[48] = "-";
    char speed[32] = "-";
    char left[RP_STORY_TIME_BYTES] = "-";
    char boards[16] = "-";
    if (state->steps > 0) {
        (void)snprintf(step, sizeof step, "%s%" PRIu64 "/%" PRIu64, state->rounds ? "round " : "",
                       state->step, state->steps);
    }
    if (isfinite(state->samples_per_s)) {
        (void)snprintf(speed, sizeof speed, "%.*f", state->samples_per_s < 100,
                       state->samples_per_s);
    }
    if (isfinite(state->left_s)) {
        rp_story_time(state->left_s, left);
    }
    if (state->boards > 0) {
        (void)snprintf(boards, sizeof boards, "%u", state->boards);
    }
    (void)printf("%-*s  %-11s  %13s  %9s  %8s  %6s  %s %s\n", width, folder,
                 rp_run_condition_name(state->condition), step, speed, left, boards, state->model,
                 state->schedule);
}

static rp_err print_table(rp_arena *arena, const rp_runs *runs) {
    int width = 6;
    rp_err err = RP_OK;
    for (uint32_t i = 0; i < runs->count; i++) {
        const int length = (int)strlen(short_name(runs->folder[i]));
        width = length > width && length < 100 ? length : width;
    }
    if (runs->count > 0) {
        (void)printf("%-*s  %-11s  %13s  %9s  %8s  %6s  %s\n", width, "FOLDER", "STATE", "STEP",
                     "SAMPLES/S", "LEFT", "BOARDS", "MODEL, SCHEDULE");
    } else {
        (void)printf("this account has no active run on this machine\n");
    }
    for (uint32_t i = 0; i < runs->count; i++) {
        rp_run_state state;
        RP_TRY(rp_run_state_read(arena, runs->folder[i], &state));
        print_row(short_name(runs->folder[i]), &state, width);
    }
    if (runs->more) {
        (void)printf("... and more than %d\n", RP_RUNS_MAX);
    }
fail:
    return err;
}

static rp_err print_json(rp_arena *arena, const rp_runs *runs) {
    json_t *list = json_array();
    json_t *root = json_pack("{s:i, s:o}", "version", 1, "runs", list);
    rp_err err = RP_OK;
    for (uint32_t i = 0; i < runs->count; i++) {
        rp_run_state state;
        RP_TRY(rp_run_state_read(arena, runs->folder[i], &state));
        (void)json_array_append_new(list, state_json(runs->folder[i], &state));
    }
    return rp_json_print(root, 0, stdout);
fail:
    json_decref(root);
    return err;
}

rp_err rp_verb_ps(rp_arena *arena, const rp_cli_args *args) {
    static rp_runs runs; /* large for a stack */
    rp_err err = RP_OK;
    for (uint32_t i = 0; i < args->words.count; i++) {
        RP_TRY(rp_runs_below(arena, args->words.item[i], &runs));
    }
    if (args->words.count == 0) {
        RP_TRY(rp_runs_at_work(arena, &runs));
    }
    RP_TRY(rp_cli_is_json(args) ? print_json(arena, &runs) : print_table(arena, &runs));
fail:
    return err;
}

/* ---- log ------------------------------------------------------------------------------------- */

static rp_err print_state(rp_arena *arena, const char *folder) {
    rp_run_state state;
    char *text;
    rp_err err;
    RP_TRY(rp_run_state_read(arena, folder, &state));
    RP_TRY(rp_run_state_tell(arena, folder, &state, &text));
    (void)printf("%s\n", text);
fail:
    return err;
}

typedef struct {
    rp_follow lines;
    double gap_s;     /* time of the run between two steps that are shown */
    double shown_s;   /* time of the last line that was shown */
    rp_story skipped; /* last step that was not shown; RP_STORY_NOTHING: none */
} story_teller;

static void show_story(story_teller *teller, const rp_story *story) {
    (void)printf("%s\n", story->text);
    teller->shown_s = story->time_s;
    teller->skipped.kind = RP_STORY_NOTHING;
}

/* Shows new lines: all events, a step every gap_s, and the steps to which events belong. */
static void tell_lines(story_teller *teller) {
    rp_story story;
    while (rp_follow_next(&teller->lines, &story)) {
        const bool later = !(fabs(story.time_s - teller->shown_s) < teller->gap_s);
        if (story.kind == RP_STORY_STEP && !later) {
            teller->skipped = story;
            continue;
        }
        if (story.kind == RP_STORY_EVENT && teller->skipped.kind == RP_STORY_STEP &&
            teller->skipped.step == story.step) {
            show_story(teller, &teller->skipped);
        }
        show_story(teller, &story);
    }
    (void)fflush(stdout);
}

/* Shows new lines until the controller has ended. */
static void follow_log(story_teller *teller, const rp_owner *owner) {
    while (owner->life == RP_OWNER_ALIVE && rp_owner_is_alive(owner) && !ferror(stdout)) {
        tell_lines(teller);
        rest_ms(LOOK_MS);
    }
    tell_lines(teller);
}

/* *seconds: time of the run at the end of its log. */
static rp_err read_length(rp_arena *arena, const char *path, double *seconds) {
    char *text;
    uint64_t end;
    int64_t changed_ns;
    rp_err err;
    RP_TRY(rp_tail_read(arena, path, PATH_BYTES, &text, &end, &changed_ns));
    for (size_t length; *text; text += length + (text[length] != '\0')) {
        rp_story story;
        length = strcspn(text, "\n");
        rp_story_read(text, length, &story);
        *seconds = story.kind == RP_STORY_NOTHING ? *seconds : story.time_s;
    }
fail:
    return err;
}

rp_err rp_verb_log(rp_arena *arena, const rp_cli_args *args) {
    const char *folder = args->words.item[0];
    char *path;
    rp_run_state state;
    story_teller teller = {.shown_s = -INFINITY};
    double length_s = 0;
    rp_err err;
    RP_TRY(rp_run_state_read(arena, folder, &state));
    RP_TRY(rp_arena_printf(arena, &path, "%s/log.jsonl", folder));
    RP_TRY(read_length(arena, path, &length_s));
    teller.lines.path = path;
    teller.gap_s = args->log.all ? 0 : length_s / STEPS_SHOWN;
    tell_lines(&teller);
    if (args->log.follow) {
        teller.gap_s = args->log.all ? 0 : FOLLOW_S;
        follow_log(&teller, &state.owner);
    }
    if (teller.skipped.kind == RP_STORY_STEP) {
        show_story(&teller, &teller.skipped);
    }
    RP_TRY(print_state(arena, folder));
fail:
    rp_follow_close(&teller.lines);
    return err;
}

/* ---- stop ------------------------------------------------------------------------------------ */

static rp_err ask_to_stop(const char *folder, const rp_owner *owner) {
    if (kill((pid_t)owner->pid, SIGUSR1) == 0 || errno == ESRCH) {
        return RP_OK;
    }
    return rp_fail(RP_ERR_USAGE, "%s: process %" PRId64 " cannot be asked to stop: %s", folder,
                   owner->pid, strerror(errno));
}

static rp_err wait_for_end(const char *folder, const rp_owner *owner, uint32_t wait_s) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    const int64_t end_s = now.tv_sec + wait_s;
    while (rp_owner_is_alive(owner)) {
        (void)clock_gettime(CLOCK_MONOTONIC, &now);
        if (now.tv_sec > end_s) {
            return rp_fail(RP_ERR_TIMEOUT,
                           "%s: still active %u s after the request to stop (process %" PRId64
                           "); to end it without a checkpoint, run `kill -INT %" PRId64 "` twice",
                           folder, wait_s, owner->pid, owner->pid);
        }
        rest_ms(LOOK_MS / 4);
    }
    return RP_OK;
}

/* Reads the owners of all folders, before any is stopped. */
static rp_err read_owners(rp_arena *arena, const rp_cli_args *args, rp_owner *owner) {
    rp_err err = RP_OK;
    for (uint32_t i = 0; i < args->words.count; i++) {
        rp_run_state state;
        RP_TRY(rp_run_state_read(arena, args->words.item[i], &state));
        owner[i] = state.owner;
        if (state.condition == RP_RUN_ELSEWHERE) {
            return rp_fail(RP_ERR_USAGE, "%s: its controller runs on the machine %s; stop it there",
                           args->words.item[i], state.owner.host);
        }
    }
fail:
    return err;
}

rp_err rp_verb_stop(rp_arena *arena, const rp_cli_args *args) {
    rp_owner *owner;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(arena, args->words.count, &owner));
    RP_TRY(read_owners(arena, args, owner));
    for (uint32_t i = 0; i < args->words.count; i++) { /* all end concurrently */
        RP_TRY(owner[i].life == RP_OWNER_ALIVE ? ask_to_stop(args->words.item[i], &owner[i])
                                               : RP_OK);
    }
    for (uint32_t i = 0; i < args->words.count; i++) {
        RP_TRY(owner[i].life == RP_OWNER_ALIVE
                   ? wait_for_end(args->words.item[i], &owner[i], rp_cli_wait_s(args, WAIT_S))
                   : RP_OK);
        if (args->words.count > 1) {
            (void)printf("%s: ", args->words.item[i]);
        }
        RP_TRY(print_state(arena, args->words.item[i]));
    }
fail:
    return err;
}
