/* Writes the results of `ringpipe plan` and `profile`, and a run folder's files before the first
 * step. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "planning/planfile.h"
#include "planning/tables.h"
#include "setup/setup_own.h"
#include "setup/show.h"

static rp_err write_plan(rp_arrangement *a, FILE *file) {
    rp_arrangement_note_boards(a);
    return rp_plan_write(a->plan, file);
}

/* Only a plan may replace a plan, and a profile a profile. */
static bool is_own_output(const char *path, bool profile) {
    json_t *root = json_load_file(path, 0, NULL);
    const bool own = json_object_get(root, "model_digest") &&
                     json_object_get(root, profile ? "layers" : "edges");
    json_decref(root);
    return own;
}

rp_err rp_show_check_out(const rp_show_order *order) {
    const char *path = order->out;
    struct stat facts;
    if (!path || stat(path, &facts) != 0 || (!S_ISREG(facts.st_mode) && !S_ISDIR(facts.st_mode)) ||
        facts.st_size == 0) {
        return RP_OK; /* missing, empty, or a pipe */
    }
    return is_own_output(path, order->profile)
               ? RP_OK
               : rp_fail(RP_ERR_USAGE,
                         "--out %s: already exists and is not a %s, so it is not overwritten: "
                         "choose another name",
                         path, order->profile ? "profile" : "plan");
}

/* Writes to `path`; NULL: to `result`, if any. */
static rp_err write_json(rp_arrangement *a, const char *path, FILE *result, bool profile) {
    FILE *file = path ? fopen(path, "w") : result;
    if (!file) {
        return path ? rp_fail(RP_ERR_IO, "%s: %s", path, strerror(errno)) : RP_OK;
    }
    rp_err err = profile ? rp_profile_write(file, &a->run, rp_measure_profile(a->measure))
                         : write_plan(a, file);
    if (path && fclose(file) != 0 && err == RP_OK) {
        err = rp_fail(RP_ERR_IO, "%s: %s", path, strerror(errno));
    }
    return err;
}

/* Shows what a schedule with forwards and backwards on separate boards would give, next to
 * pipedream's best plan, which takes `best_s` if that is the run's schedule. */
static rp_err show_split(rp_arrangement *a, FILE *file, double best_s, const char *const *name) {
    static const char *const kinds[] = {"pipedream", "1f1b", "pipefb"};
    const char *own = a->run.method.kind->name;
    rp_split_answer answer;
    bool wanted = false;
    rp_err err = RP_OK;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        wanted = wanted || strcmp(own, kinds[i]) == 0;
    }
    if (!wanted) {
        return RP_OK;
    }
    rp_split_ask ask = rp_measure_split_ask(a->measure);
    ask.without_s = strcmp(own, kinds[0]) == 0 ? best_s : 0;
    RP_TRY(rp_split_choose(&ask, &answer));
    rp_split_say(file, &answer, name);
fail:
    return err;
}

/* Shows what other boards would give, if the layers were measured. */
static rp_err show_advice(rp_arrangement *a, FILE *file) {
    const char *name[RP_JOINT_BOARDS_MAX];
    rp_joint_answer answer;
    rp_err err = RP_OK;
    if (a->plan_words) {
        (void)fputs(a->plan_words, file);
        return RP_OK;
    }
    if (!rp_measure_has_profile(a->measure) || rp_arrangement_is_fixed(a) ||
        a->ring->count > RP_JOINT_BOARDS_MAX) {
        return RP_OK;
    }
    rp_joint_ask ask = rp_measure_joint_ask(a->measure, rp_codecs_may_change(a));
    rp_setup open = rp_setup_of(&a->run);
    rp_runfile run;
    rp_setup_reopen_sizes(&open, &a->run); /* they belong to the current ring */
    rp_setup_run(&a->run, &open, &run);
    ask.run = &run;
    for (uint32_t k = 0; k < a->ring->count; k++) {
        name[k] = a->ring->board[k].name;
    }
    RP_TRY(rp_joint_search(&ask, &answer));
    rp_joint_say(file, &answer, name);
    RP_TRY(show_split(a, file, answer.is_known ? answer.plan[0].step_s : 0, name));
fail:
    return err;
}

static rp_err show_text(rp_arrangement *a, FILE *file, bool profile) {
    const rp_runfile *run = &a->run;
    if (profile) {
        rp_profile_show(file, run, rp_measure_profile(a->measure));
        return RP_OK;
    }
    rp_arrangement_note_boards(a);
    rp_plan_table(file, a->plan);
    if (a->schedule_words) {
        (void)fprintf(file, "By prediction, %s.\n", a->schedule_words);
    }
    const rp_err err = show_advice(a, file);
    if (run->data.bytes && run->inputs_why) {
        (void)fprintf(file, "\nInputs travel as %s, not as uint8: %s.\n",
                      rp_codec_name(rp_plan_input_codec(a->plan)), run->inputs_why);
    }
    return err;
}

rp_err rp_show_result(rp_arrangement *a, const rp_show_order *order) {
    const bool profile = order->profile;
    rp_err err = RP_OK;
    if (order->out) {
        RP_TRY(write_json(a, order->out, NULL, profile));
    }
    RP_TRY(order->result && order->format == RP_FORMAT_TEXT
               ? show_text(a, order->result, profile)
               : write_json(a, NULL, order->result, profile));
fail:
    return err;
}

rp_err rp_show_write_folder(rp_arrangement *a, const char *command) {
    rp_about_board *board;
    rp_arena arena;
    rp_err err;
    rp_arena_init(&arena, "about", 0);
    RP_TRY(RP_ARENA_NEW(&arena, a->ring->count, &board));
    for (uint32_t k = 0; k < a->ring->count; k++) {
        board[k] = (rp_about_board){a->ring->board[k].name, a->ring->board[k].device};
    }
    const rp_about about = {.command = command,
                            .plan = a->now.group ? "shared"
                                    : a->given   ? "given"
                                                 : "made",
                            .board = board,
                            .board_count = a->ring->count};
    rp_arrangement_note_boards(a);
    RP_TRY(rp_folder_write(a->folder, &(rp_folder_contents){.run = &a->run,
                                                            .plan = a->plan,
                                                            .about = &about,
                                                            .resumed = a->resume && !a->has_begun,
                                                            .step = a->position->step}));
fail:
    rp_arena_finish(&arena);
    return err;
}
