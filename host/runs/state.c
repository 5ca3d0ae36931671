#include "runs/state.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/shell.h"
#include "runs/story.h"
#include "runs/tail.h"

enum {
    PATH_BYTES = 4096,
    TAIL_BYTES = 64 * 1024,
    TIMES_MAX = 64,               /* number of last steps from whose times the rest is estimated */
    JSON_BYTES_MAX = 64 * 1048576 /* limit of a plan or a summary */
};

const char *rp_run_condition_name(rp_run_condition condition) {
    static const char *const names[RP_RUN_STATES] = {"starting", "training",    "recovering",
                                                     "finished", "interrupted", "failed",
                                                     "killed",   "elsewhere",   "not begun"};
    return condition < RP_RUN_STATES ? names[condition] : "";
}

static bool is_there(const char *folder, const char *name) {
    char path[PATH_BYTES];
    struct stat facts;
    return snprintf(path, sizeof path, "%s/%s", folder, name) < PATH_BYTES &&
           lstat(path, &facts) == 0 && S_ISREG(facts.st_mode);
}

bool rp_run_is_folder(const char *folder) {
    return is_there(folder, "identity.json") || is_there(folder, "controller.json") ||
           (is_there(folder, "run.yaml") &&
            (is_there(folder, "plan.json") || is_there(folder, "lanes.json") ||
             is_there(folder, "federation.json")));
}

/* NULL: missing, or not a JSON object. */
static json_t *load(const char *folder, const char *name) {
    char path[PATH_BYTES];
    struct stat facts;
    json_t *root = NULL;
    const int used = snprintf(path, sizeof path, "%s/%s", folder, name);
    const int fd = used < PATH_BYTES ? rp_tail_open(path) : -1;
    if (fd >= 0 && fstat(fd, &facts) == 0 && facts.st_size <= JSON_BYTES_MAX) {
        root = json_loadfd(fd, 0, NULL);
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    return root;
}

static void take_text(const json_t *root, const char *key, char to[RP_RUN_NAME_BYTES]) {
    const char *text = json_string_value(json_object_get(root, key));
    (void)snprintf(to, RP_RUN_NAME_BYTES, "%s", text ? text : "");
}

static void take_plan(const char *folder, rp_run_state *out) {
    out->rounds = is_there(folder, "federation.json");
    const char *name = is_there(folder, "lanes.json") ? "lanes.json"
                       : out->rounds                  ? "federation.json"
                                                      : "plan.json";
    json_t *plan = load(folder, name);
    const json_int_t steps = json_integer_value(json_object_get(plan, "steps"));
    take_text(plan, "model", out->model);
    take_text(plan, "schedule", out->schedule);
    out->steps = steps > 0 ? (uint64_t)steps : 0;
    out->boards = (uint32_t)json_array_size(json_object_get(plan, "nodes"));
    json_decref(plan);
}

/* ---- the log --------------------------------------------------------------------------------- */

typedef struct {
    double time_s[TIMES_MAX];
    uint32_t count; /* of all steps; the last TIMES_MAX times are kept */
    bool fault;     /* a fault since the last step */
    int64_t changed_ns;
} log_facts;

static void take_line(const char *line, size_t length, log_facts *log, rp_run_state *out) {
    json_t *object = json_loadb(line, length, 0, NULL);
    const char *event = json_string_value(json_object_get(object, "event"));
    const json_t *step = json_object_get(object, "step");
    if (event) {
        log->fault = strcmp(event, "fault") == 0 || (log->fault && strcmp(event, "recovered") != 0);
    } else if (json_is_integer(step) && json_integer_value(step) > 0) {
        const json_t *loss = json_object_get(object, "loss");
        const json_t *speed = json_object_get(object, "samples_per_s");
        const double time_s = json_number_value(json_object_get(object, "time_s"));
        out->step = (uint64_t)json_integer_value(step);
        out->loss = json_is_number(loss) ? json_number_value(loss) : NAN;
        out->samples_per_s = json_number_value(speed) > 0 ? json_number_value(speed) : NAN;
        log->time_s[log->count++ % TIMES_MAX] = time_s;
        log->fault = false;
    }
    json_decref(object);
}

static rp_err take_log(rp_arena *arena, const char *folder, log_facts *log, rp_run_state *out) {
    char path[PATH_BYTES];
    char *text;
    uint64_t end;
    rp_err err;
    (void)snprintf(path, sizeof path, "%s/log.jsonl", folder);
    RP_TRY(rp_tail_read(arena, path, TAIL_BYTES, &text, &end, &log->changed_ns));
    while (*text) {
        const size_t length = strcspn(text, "\n");
        take_line(text, length, log, out);
        text += length + 1;
    }
fail:
    return err;
}

static int by_size(const void *left, const void *right) {
    const double a = *(const double *)left;
    const double b = *(const double *)right;
    return (a > b) - (a < b);
}

/* Median duration of a step, so that outages and evaluations between steps do not count. */
static double step_seconds(const log_facts *log) {
    double span[TIMES_MAX];
    const uint32_t kept = log->count < TIMES_MAX ? log->count : TIMES_MAX;
    uint32_t count = 0;
    for (uint32_t i = 1; i < kept; i++) {
        const uint32_t at = log->count - kept + i;
        const double s = log->time_s[at % TIMES_MAX] - log->time_s[(at - 1) % TIMES_MAX];
        if (s > 0) {
            span[count++] = s;
        }
    }
    if (count == 0) {
        return NAN;
    }
    qsort(span, count, sizeof *span, by_size);
    return span[count / 2];
}

/* ---- condition ------------------------------------------------------------------------------- */

static rp_run_condition read_summary(const char *folder, rp_run_state *out) {
    json_t *summary = load(folder, "summary.json");
    const char *status = json_string_value(json_object_get(summary, "status"));
    rp_run_condition condition = RP_RUN_KILLED;
    for (uint32_t i = RP_RUN_FINISHED; status && i <= RP_RUN_FAILED; i++) {
        condition = strcmp(status, rp_run_condition_name((rp_run_condition)i)) == 0
                        ? (rp_run_condition)i
                        : condition;
    }
    if (condition != RP_RUN_KILLED) { /* average over the whole run, not over the last steps */
        const json_t *speed = json_object_get(summary, "samples_per_s");
        out->samples_per_s = json_is_number(speed) ? json_number_value(speed) : NAN;
    }
    json_decref(summary);
    return condition;
}

static rp_run_condition condition_of(const char *folder, const log_facts *log, rp_run_state *out) {
    switch (out->owner.life) {
    case RP_OWNER_ALIVE:
        return log->count == 0 || log->changed_ns < out->owner.made_ns ? RP_RUN_STARTING
               : log->fault                                            ? RP_RUN_RECOVERING
                                                                       : RP_RUN_TRAINING;
    case RP_OWNER_ELSEWHERE:
        return RP_RUN_ELSEWHERE;
    case RP_OWNER_DEAD:
        return is_there(folder, "run.yaml") ? RP_RUN_KILLED : RP_RUN_NOT_BEGUN;
    case RP_OWNER_NONE:
        break;
    }
    return is_there(folder, "run.yaml") ? read_summary(folder, out) : RP_RUN_NOT_BEGUN;
}

rp_err rp_run_state_read(rp_arena *arena, const char *folder, rp_run_state *out) {
    log_facts log = {.count = 0};
    rp_err err;
    *out = (rp_run_state){.loss = NAN, .samples_per_s = NAN, .left_s = NAN};
    if (!rp_run_is_folder(folder)) {
        struct stat facts;
        return rp_fail(RP_ERR_USAGE, "%s: %s", folder,
                       stat(folder, &facts) != 0 ? "the folder does not exist"
                                                 : "this is not a run folder");
    }
    rp_owner_read(folder, &out->owner);
    take_plan(folder, out);
    RP_TRY(take_log(arena, folder, &log, out));
    out->condition = condition_of(folder, &log, out);
    if (out->condition == RP_RUN_TRAINING || out->condition == RP_RUN_RECOVERING ||
        out->condition == RP_RUN_ELSEWHERE) {
        out->left_s = out->steps >= out->step && out->steps > 0
                          ? (double)(out->steps - out->step) * step_seconds(&log)
                          : NAN;
    } else if (out->condition == RP_RUN_STARTING || out->condition == RP_RUN_KILLED) {
        out->samples_per_s = NAN;
    }
fail:
    return err;
}

/* ---- text ------------------------------------------------------------------------------------ */

/* Hint how to continue the run; %s: its folder. */
static const char *find_hint(rp_run_condition condition) {
    switch (condition) {
    case RP_RUN_INTERRUPTED:
    case RP_RUN_FAILED:
    case RP_RUN_KILLED:
        return "; continue it with `ringpipe resume %s`";
    case RP_RUN_NOT_BEGUN:
        return "; to start it, repeat the command that made %s";
    default:
        return "";
    }
}

rp_err rp_run_state_tell(rp_arena *arena, const char *folder, const rp_run_state *state,
                         char **out) {
    char step[64] = "";
    char speed[48] = "";
    char left[RP_STORY_TIME_BYTES + 16] = "";
    char time[RP_STORY_TIME_BYTES];
    char on[RP_RUN_NAME_BYTES] = "";
    char *way = NULL;
    const char *word = folder;
    rp_err err;
    RP_TRY(rp_shell_word(arena, folder, &word));
    if (state->steps > 0) {
        (void)snprintf(step, sizeof step, ": %s %" PRIu64 " of %" PRIu64,
                       state->rounds ? "round" : "step", state->step, state->steps);
    }
    if (state->samples_per_s > 0) {
        (void)snprintf(speed, sizeof speed, ", %.*f samples/s", state->samples_per_s < 100,
                       state->samples_per_s);
    }
    if (isfinite(state->left_s)) {
        rp_story_time(state->left_s, time);
        (void)snprintf(left, sizeof left, ", %s left", time);
    }
    if (state->condition == RP_RUN_ELSEWHERE) {
        (void)snprintf(on, sizeof on, " (on %.100s)", state->owner.host);
    }
    RP_TRY(rp_arena_printf(arena, out, "%s%s%s%s%s", rp_run_condition_name(state->condition), on,
                           step, speed, left));
    const char *format = find_hint(state->condition);
    const char *at = strstr(format, "%s");
    if (at) {
        RP_TRY(rp_arena_printf(arena, &way, "%s%.*s%s%s", *out, (int)(at - format), format, word,
                               at + 2));
        *out = way;
    }
fail:
    return err;
}
