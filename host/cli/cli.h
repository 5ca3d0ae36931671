/* The command line: verbs and their options. */
#ifndef RP_CLI_CLI_H
#define RP_CLI_CLI_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include <stdio.h>

#include "base/err.h"
#include "base/options.h"
#include "base/shape.h"

#define RP_CLI_WAIT_UNSAID UINT32_MAX

/* Values of train, resume, plan, profile and warm. */
typedef struct {
    const char *resume, *plan, *profile;
    bool silent;  /* no result on standard output */
    FILE *result; /* if silent: where it goes; NULL: nowhere */
    bool lane; /* standard input and output are the connection to the process that averages lanes */
} rp_cli_run;

/* Values of eval, predict and inspect. */
typedef struct {
    const char *weights, *split, *input, *text, *temperature;
    bool confusion, bleu;
    uint32_t top, classes, tokens, beam;
} rp_cli_model;

typedef struct {
    const char *executor, *faults;
    rp_option_range seeds;
    bool trace, once;
} rp_cli_sim;

typedef struct {
    uint32_t stages, micro, chunks; /* chunks 0: the schedule's default */
    bool whole;
} rp_cli_draw;

/* Values of log and boards log. */
typedef struct {
    bool follow, all;
    uint32_t lines; /* 0: the default */
} rp_cli_log;

/* Values of view. */
typedef struct {
    const char *listen, *token_file, *text_folder;
    bool text;
} rp_cli_view;

/* Values of boards enrol, and those that adopt and image share with it. */
typedef struct {
    const char *group, *run;
    const char *node, *host;
    const char *dial; /* address that the board dials */
    uint32_t hours;   /* 0: the default */
    bool token, open; /* make tokens without waiting; wait without making tokens */
    bool list, withdraw;
} rp_cli_enrol;

/* Values of image, flash and bundle. */
typedef struct {
    const char *ssh_key, *wifi, *packages, *cache, *runner;
    char *enrol;        /* a token; it is overwritten in argv after it was read */
    const char *listen; /* address at which the board listens */
    bool overlay, new_key;
    uint32_t release;
} rp_cli_image;

/* Values of push, slots, validate, revert, and boards reboot, warm and list. */
typedef struct {
    uint32_t mbit, at_once; /* at_once 0: the default */
    uint32_t within_s;      /* 0: the default */
    bool no_wait, force, ask;
} rp_cli_fleet;

/* Values of import, and of inspect for an ONNX model. */
typedef struct {
    const char *weights; /* the file to write */
    const char *names, *tied, *check;
    rp_option_list shapes, freeze;
    bool no_fuse, untie, accept_folded;
} rp_cli_onnx;

/* Values of data split. */
typedef struct {
    uint32_t sites, least;
    double validation; /* share of each site's samples */
    const char *by;    /* the rule */
} rp_cli_split;

/* Values of round. */
typedef struct {
    const char *in;        /* weights */
    const char *state;     /* folder of the site; NULL: the site keeps nothing */
    const char *optimizer; /* "keep" or "fresh"; NULL: fresh */
    const char *delta;     /* codec of differences; NULL: weights leave the site */
    rp_option_list keep;
    double anchor, clip;
    bool drift;
    uint32_t number, steps, epochs, within_s;
} rp_cli_round;

/* Values of export. */
typedef struct {
    uint32_t opset;
    bool train, merge;
} rp_cli_export;

/* The values of a command line. A member keeps its default if the verb has no such option. */
typedef struct {
    rp_option_words words; /* positional arguments: RUN.yaml, SCHEDULE, ... */
    const char *program;   /* argv[0] */
    char command[1024];    /* the whole command line, truncated if it is longer */
    bool help, quiet, verbose;

    /* of several verbs */
    rp_option_list set, where;
    const char *out, *format, *keys, *board, *roster, *listen;
    uint32_t threads, jobs;
    uint32_t wait_s; /* see rp_cli_wait_s() */
    bool dry_run, yes, system;

    rp_cli_run run;
    rp_cli_model model;
    rp_cli_sim sim;
    rp_cli_draw draw;
    rp_cli_log log;
    rp_cli_view view;
    rp_cli_enrol enrol;
    rp_cli_image image;
    rp_cli_fleet fleet;
    rp_cli_onnx onnx;
    rp_cli_split split;
    rp_cli_round round;
    rp_cli_export export;
    double minutes;        /* of tune */
    const char *to, *from; /* of data fetch */
    uint32_t vocab;        /* of data bpe */
    bool as_line;          /* of keys show: --roster */
} rp_cli_args;

/* The value of --wait, or the default of the verb. */
static inline uint32_t rp_cli_wait_s(const rp_cli_args *args, uint32_t usual) {
    return args->wait_s == RP_CLI_WAIT_UNSAID ? usual : args->wait_s;
}

static inline bool rp_cli_is_json(const rp_cli_args *args) {
    return strcmp(args->format, "json") == 0;
}

/* Runs a verb; `arena` lives until the command ends. */
typedef rp_err rp_cli_action(rp_arena *arena, const rp_cli_args *args);

typedef struct {
    const char *name;  /* "train"; "boards list" for a verb of a verb */
    const char *words; /* positional arguments for the usage line: "RUN.yaml" */
    uint32_t words_min, words_max;
    /* Names of rows of rp_cli_options; every verb also has quiet, verbose and help. "NAME!" is
     * required, "A|B" exclude each other, "NAME:VARIANT" chooses one of several rows of a name. */
    const char *options;
    const char *summary; /* one line, without a full stop */
    const char *details; /* before the options in --help, or NULL */
    rp_cli_action *run;
} rp_cli_verb;

/* Ends with a name of NULL. */
extern const rp_cli_verb rp_cli_verbs[];
/* All options of all verbs; ends with a name of NULL. */
extern const rp_option rp_cli_options[];

/* The options of a verb, as rp_options_parse() takes them. */
void rp_cli_options_of(const rp_cli_verb *verb, rp_option out[RP_OPTIONS_MAX]);

/* Reads the command line after the verb into *out, which has defaults for missing options.
 * Positional arguments are in `arena`. errors USAGE, MEMORY */
rp_err rp_cli_parse(rp_arena *arena, const rp_cli_verb *verb, int argc, char *const *argv,
                    rp_cli_args *out);

/* Runs a controller that only warms the boards of a run. */
rp_err rp_cli_run_warm(const rp_cli_args *args, const char *run_path, uint32_t within_s);
rp_err rp_cli_report_reach(rp_arena *arena, const rp_cli_args *args); /* doctor --roster */

/* Does the word name a model: a file that ends with .yaml or .yml, or a model of the zoo and not a
 * file? */
bool rp_cli_is_model(const char *word);
/* The shape of a sample that --input states, as in 3,32,32; NULL: none, with 0 dimensions.
 * errors  USAGE */
rp_err rp_cli_read_input(const char *text, rp_shape *out) RP_MUST_CHECK;
/* inspect of a model. errors  USAGE and SHAPE as for a run with this model */
rp_err rp_cli_inspect_model(rp_arena *arena, const rp_cli_args *args) RP_MUST_CHECK;

rp_cli_action rp_verb_train, rp_verb_resume, rp_verb_eval, rp_verb_predict, rp_verb_plan,
    rp_verb_profile, rp_verb_sim, rp_verb_lab, rp_verb_ps, rp_verb_log, rp_verb_stop, rp_verb_draw,
    rp_verb_tune, rp_verb_doctor, rp_verb_boards_enrol, rp_verb_boards_adopt, rp_verb_boards_list,
    rp_verb_boards_show, rp_verb_boards_log, rp_verb_boards_reboot, rp_verb_boards_warm,
    rp_verb_boards_forget, rp_verb_image, rp_verb_flash, rp_verb_bundle, rp_verb_push,
    rp_verb_slots, rp_verb_validate, rp_verb_revert, rp_verb_keys_new, rp_verb_keys_show,
    rp_verb_keys_list, rp_verb_keys_trust, rp_verb_keys_untrust, rp_verb_data_fetch,
    rp_verb_data_bpe, rp_verb_data_split, rp_verb_round, rp_verb_import, rp_verb_export,
    rp_verb_inspect, rp_verb_list, rp_verb_view;

#endif
