/* The command line: verbs, their options, and nothing worth a unit test. */
#ifndef RP_CLI_CLI_H
#define RP_CLI_CLI_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

enum { RP_CLI_SETS_MAX = 64, RP_CLI_WHERE_MAX = 16 };
#define RP_CLI_WAIT_UNSAID UINT32_MAX

/* All options of all verbs; a verb names those it takes. */
typedef struct {
    const char **word; /* what is no option: RUN.yaml, SCHEDULE, ...; room for all of the line */
    uint32_t word_count;
    const char *set[RP_CLI_SETS_MAX];
    uint32_t set_count;
    const char *program; /* as it was called */
    char command[1024];  /* the whole line, cut where it is longer */
    const char *out, *resume, *format, *weights, *input, *split, *keys, *board, *dir, *to, *from;
    const char *executor, *faults, *profile, *plan;
    const char *ring, *listen; /* of doctor: a roster, where this host listens */
    uint64_t seed_first, seed_last;
    bool trace, once;
    uint32_t stages, micro, chunks, threads, jobs, top, classes;
    double minutes;
    uint32_t wait_s;                     /* of stop, boards, push; see rp_cli_wait_s() */
    uint32_t hours;                      /* of boards enrol */
    uint32_t release;                    /* of bundle */
    uint32_t mbit, at_once;              /* of push; at_once 0: the default */
    bool no_wait;                        /* of push */
    bool new_key;                        /* of bundle */
    bool token, open;                    /* of boards enrol: without waiting; without making one */
    bool list_tokens, withdraw;          /* of boards enrol: nothing else is done */
    const char *where[RP_CLI_WHERE_MAX]; /* of a roster: which boards */
    uint32_t where_count;
    bool ask;                                                           /* of boards list */
    const char *group;                                                  /* of boards enrol */
    const char *node, *host, *ssh_key, *wifi, *packages, *cache, *dial; /* of image */
    char *enrol;        /* of image: an argument, which is overwritten once it is read */
    const char *at;     /* of image and flash: where the board listens */
    bool overlay;       /* of image */
    bool whole_system;  /* of image and revert */
    const char *runner; /* of flash */
    bool follow, all;   /* of log */
    uint32_t lines;     /* of boards log; 0: not said */
    bool follow_board;  /* of boards log */
    bool force;         /* of boards reboot, warm */
    const char *run;    /* of boards enrol: a run file */
    uint32_t within_s;  /* of boards warm; 0: not said */
    bool lane;          /* standard input and output are the line to the run of lanes */
    bool dry_run, confusion, whole, roster, yes, system, quiet, verbose;
} rp_cli_args;

/* What --wait says, or what is usual. */
static inline uint32_t rp_cli_wait_s(const rp_cli_args *args, uint32_t usual) {
    return args->wait_s == RP_CLI_WAIT_UNSAID ? usual : args->wait_s;
}

typedef struct {
    const char *name;
    const char *words; /* for the usage line: "RUN.yaml" */
    uint32_t words_min, words_max;
    const char *options; /* letters of args.c's table; all verbs take q and v besides */
    const char *summary; /* one line */
    const char *details; /* behind the options in --help, or NULL */
    rp_err (*run)(const rp_cli_args *args);
} rp_cli_verb;

/* Ends with a name of NULL. */
extern const rp_cli_verb rp_cli_verbs[];

/* The name of the verb's option `index`, without its dashes; NULL behind the last. */
const char *rp_cli_option(const rp_cli_verb *verb, uint32_t index);

/* Parses argv of one verb (argv[0] = "ringpipe VERB"); leaves the process on bad usage (2) or
 * --help (0). */
void rp_cli_parse(const rp_cli_verb *verb, int argc, char **argv, rp_cli_args *out);

rp_err rp_verb_train(const rp_cli_args *args);
rp_err rp_verb_resume(const rp_cli_args *args);
rp_err rp_verb_eval(const rp_cli_args *args);
rp_err rp_verb_predict(const rp_cli_args *args);
rp_err rp_verb_plan(const rp_cli_args *args);
rp_err rp_verb_profile(const rp_cli_args *args);
/* Of boards warm: a controller for it. */
rp_err rp_cli_run_warm(const rp_cli_args *args, const char *run_path, uint32_t within_s);
rp_err rp_verb_sim(const rp_cli_args *args);
rp_err rp_verb_lab(const rp_cli_args *args);
rp_err rp_verb_ps(const rp_cli_args *args);
rp_err rp_verb_log(const rp_cli_args *args);
rp_err rp_verb_stop(const rp_cli_args *args);
rp_err rp_verb_draw(const rp_cli_args *args);
rp_err rp_verb_tune(const rp_cli_args *args);
rp_err rp_verb_doctor(const rp_cli_args *args);
rp_err rp_cli_report_reach(const rp_cli_args *args); /* doctor --roster */
rp_err rp_verb_push(const rp_cli_args *args);
rp_err rp_verb_slots(const rp_cli_args *args);
rp_err rp_verb_validate(const rp_cli_args *args);
rp_err rp_verb_revert(const rp_cli_args *args);
rp_err rp_verb_bundle(const rp_cli_args *args);
rp_err rp_verb_image(const rp_cli_args *args);
rp_err rp_verb_flash(const rp_cli_args *args);
rp_err rp_verb_boards(const rp_cli_args *args);
rp_err rp_verb_keys(const rp_cli_args *args);
rp_err rp_verb_data(const rp_cli_args *args);
rp_err rp_verb_inspect(const rp_cli_args *args);
rp_err rp_verb_list(const rp_cli_args *args);

#endif
