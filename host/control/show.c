/* What `ringpipe plan` and `profile` answer, and what a run folder is told before the first step.
 */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "control/show.h"
#include "planning/planfile.h"
#include "planning/tables.h"

static rp_err write_plan(const rp_run_view *v, FILE *file) {
    rp_arrangement_note_boards(v->setup);
    return rp_plan_write(rp_arrangement_plan(v->setup), file);
}

/* A plan may take the place of a plan, and a profile that of a profile. */
static bool is_own_output(const char *path, bool profile) {
    json_t *root = json_load_file(path, 0, NULL);
    const bool own = json_object_get(root, "model_digest") &&
                     json_object_get(root, profile ? "layers" : "edges");
    json_decref(root);
    return own;
}

rp_err rp_show_check_out(const rp_controller_options *options) {
    const bool profile = options->purpose == RP_PURPOSE_PROFILE;
    const char *path = options->out;
    struct stat facts;
    if ((!profile && options->purpose != RP_PURPOSE_PLAN) || !path || stat(path, &facts) != 0 ||
        (!S_ISREG(facts.st_mode) && !S_ISDIR(facts.st_mode)) || facts.st_size == 0) {
        return RP_OK; /* not there, empty, or a pipe */
    }
    return is_own_output(path, profile)
               ? RP_OK
               : rp_fail(RP_ERR_USAGE,
                         "--out %s: is there already and is not a %s, so it is not written over: "
                         "choose a new name",
                         path, profile ? "profile" : "plan");
}

/* To `path`; NULL: to the result, where one is wanted. */
static rp_err write_json(const rp_run_view *v, const char *path, bool profile) {
    FILE *file = path ? fopen(path, "w") : v->env->result;
    if (!file) {
        return path ? rp_fail(RP_ERR_IO, "%s: %s", path, strerror(errno)) : RP_OK;
    }
    rp_err err = profile ? rp_profile_write(file, v->run, rp_measure_profile(v->measure))
                         : write_plan(v, file);
    if (path && fclose(file) != 0 && err == RP_OK) {
        err = rp_fail(RP_ERR_IO, "%s: %s", path, strerror(errno));
    }
    return err;
}

/* What it would give to have forwards and backwards on boards of their own; beside pipedream's best
 * plan, which `best_s` is where that is the schedule. */
static rp_err show_split(const rp_run_view *v, double best_s, const char *const *name) {
    static const char *const kinds[] = {"pipedream", "1f1b", "pipefb"};
    const char *own = v->run->method.kind->name;
    rp_split_answer answer;
    bool wanted = false;
    rp_err err = RP_OK;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        wanted = wanted || strcmp(own, kinds[i]) == 0;
    }
    if (!wanted) {
        return RP_OK;
    }
    rp_split_ask ask = rp_measure_split_ask(v->measure);
    ask.without_s = strcmp(own, kinds[0]) == 0 ? best_s : 0;
    RP_TRY(rp_split_choose(&ask, &answer));
    rp_split_say(v->env->result, &answer, name);
fail:
    return err;
}

/* Where the layers were measured, what other boards would give. */
static rp_err show_advice(const rp_run_view *v) {
    const char *name[RP_JOINT_BOARDS_MAX];
    rp_joint_answer answer;
    rp_err err = RP_OK;
    if (rp_arrangement_plan_words(v->setup)) {
        (void)fputs(rp_arrangement_plan_words(v->setup), v->env->result);
        return RP_OK;
    }
    if (!rp_measure_has_profile(v->measure) || rp_arrangement_given(v->setup) ||
        v->ring->count > RP_JOINT_BOARDS_MAX) {
        return RP_OK;
    }
    rp_joint_ask ask = rp_measure_joint_ask(v->measure, rp_codecs_may_change(v->setup));
    rp_setup open = rp_setup_of(v->run);
    rp_runfile run;
    rp_setup_reopen_sizes(&open, v->run); /* they are of the ring as it is */
    rp_setup_run(v->run, &open, &run);
    ask.run = &run;
    for (uint32_t k = 0; k < v->ring->count; k++) {
        name[k] = v->ring->board[k].name;
    }
    RP_TRY(rp_joint_search(&ask, &answer));
    rp_joint_say(v->env->result, &answer, name);
    RP_TRY(show_split(v, answer.is_known ? answer.plan[0].step_s : 0, name));
fail:
    return err;
}

static rp_err show_text(const rp_run_view *v, bool profile) {
    if (profile) {
        rp_profile_show(v->env->result, v->run, rp_measure_profile(v->measure));
        return RP_OK;
    }
    rp_arrangement_note_boards(v->setup);
    rp_plan_table(v->env->result, rp_arrangement_plan(v->setup));
    if (rp_arrangement_schedule_words(v->setup)) {
        (void)fprintf(v->env->result, "By prediction, %s.\n",
                      rp_arrangement_schedule_words(v->setup));
    }
    const rp_err err = show_advice(v);
    if (v->run->data.bytes && v->run->inputs_why) {
        (void)fprintf(v->env->result, "\nInputs travel as %s, not as uint8: %s.\n",
                      rp_codec_name(rp_plan_input_codec(rp_arrangement_plan(v->setup))),
                      v->run->inputs_why);
    }
    return err;
}

rp_err rp_show_result(const rp_run_view *v, bool profile) {
    rp_err err = RP_OK;
    if (v->options->out) {
        RP_TRY(write_json(v, v->options->out, profile));
    }
    if (v->env->result && v->options->format == RP_FORMAT_TEXT) {
        RP_TRY(show_text(v, profile));
    } else {
        RP_TRY(write_json(v, NULL, profile));
    }
fail:
    return err;
}

rp_err rp_show_write_folder(const rp_run_view *v) {
    rp_about_board *board;
    rp_arena arena;
    rp_err err;
    rp_arena_init(&arena, "about", 0);
    RP_TRY(RP_ARENA_NEW(&arena, v->ring->count, &board));
    for (uint32_t k = 0; k < v->ring->count; k++) {
        board[k] = (rp_about_board){v->ring->board[k].name, v->ring->board[k].device};
    }
    const rp_about about = {.command = v->options->command,
                            .plan = rp_arrangement_is_shared(v->setup) ? "shared"
                                    : rp_arrangement_given(v->setup)   ? "given"
                                                                       : "made",
                            .board = board,
                            .board_count = v->ring->count};
    rp_arrangement_note_boards(v->setup);
    RP_TRY(rp_folder_write(v->folder,
                           &(rp_folder_contents){.run = v->run,
                                                 .plan = rp_arrangement_plan(v->setup),
                                                 .about = &about,
                                                 .resumed = v->options->resume && !v->has_begun,
                                                 .step = v->position->step}));
fail:
    rp_arena_finish(&arena);
    return err;
}
