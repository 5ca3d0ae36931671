/* ringpipe: finds the verb, runs it, turns its error into an exit code. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/input.h"
#include "base/log.h"
#include "base/nearest.h"
#include "base/printable.h"
#include "base/process.h"
#include "base/share.h"
#include "base/shell.h"
#include "cli/cli.h"
#include "cli/safe_output.h"

const rp_cli_verb rp_cli_verbs[] = {
    {"train", "RUN.yaml", 1, 1, "sorfnkNPl", "Train a model over a ring of boards", NULL,
     rp_verb_train},
    {"resume", "DIR", 1, 1, "sfkl", "Go on with a run from its folder",
     "DIR is the folder of a run that was interrupted, or is to go further; only the data are "
     "elsewhere.",
     rp_verb_resume},
    {"eval", "RUN.yaml|DIR", 1, 1, "swpfkX", "Evaluate a weights file, or a run from its folder",
     NULL, rp_verb_eval},
    {"predict", "DIR FILE...", 2, UINT32_MAX, "wKCbt", "Ask a run's net about files",
     "DIR is the folder of a run, and all that is needed of it. A FILE is a picture, a CSV file or "
     "an "
     "array; - is standard input. It runs on this machine's device.",
     rp_verb_predict},
    {"plan", "RUN.yaml", 1, 1, "sofkPN", "Profile the ring and choose the cut", NULL, rp_verb_plan},
    {"profile", "RUN.yaml", 1, 1, "sofk", "Measure the cost of every layer", NULL, rp_verb_profile},
    {"sim", "RUN.yaml", 1, 1, "sorfxNPSALV;j", "Simulate a run on a virtual clock, with faults",
     "With --seeds, every seed is a run with faults of its own; exit 0 only when none hangs and "
     "all "
     "end with the weights that the method defines.",
     rp_verb_sim},
    {"lab", "COMPARE.yaml", 1, 1, "ofnjk", "Compare methods over seeds and models, with a report",
     "What is finished in the folder is kept, what was interrupted goes on: give the same command "
     "again.",
     rp_verb_lab},
    {"ps", "[DIR...]", 0, UINT32_MAX, "f", "List runs: those at work, or those in folders",
     "Without a DIR it lists the runs of this account that are at work on this machine. DIR is the "
     "folder of a run, at work or not, or one in which such folders lie.",
     rp_verb_ps},
    {"log", "DIR", 1, 1, "ZU", "Say what has happened in a run, and follow it",
     "DIR is the folder of a run, at work or not.", rp_verb_log},
    {"stop", "DIR...", 1, UINT32_MAX, "Q", "Let a run end as Ctrl-C does, and wait for that",
     "The run ends behind a checkpoint, exit 130, and `ringpipe resume DIR` goes on with it. Exit "
     "0 "
     "when it is not at work any more, 3 when it still is after the time of --wait.",
     rp_verb_stop},
    {"draw", "SCHEDULE", 1, 1, "dmcFW", "Draw a schedule, measured by replay",
     "SCHEDULE is a name as in a run file, e.g. 1f1b, or a plan.json; `table` compares them all.",
     rp_verb_draw},
    {"tune", "", 0, 0, "bMotyY", "Find the fastest kernel parameters of this device",
     "It replaces nothing by something slower, and nothing without a yes.", rp_verb_tune},
    {"doctor", "", 0, 0, "bftO@Ik", "Check driver, device, arithmetic and disk, or a ring's boards",
     "With --roster it asks every board who it is and lets neighbours try their links both ways; "
     "boards that are at work are left alone. Exit 3 when a run could not take them as they are, 5 "
     "when keys do not fit.",
     rp_verb_doctor},
    {"boards", "enrol|list|forget|...", 1, UINT32_MAX, "O@^%IkfeEB$_Qy=+!z126n0bsN#&",
     "Let boards into a roster, or out; ask them how they are",
     "enrol NAME... makes a token for each board, prints the command for it, waits, and writes who "
     "comes into the roster; with --list it lists the tokens, and with --withdraw NAME... no board "
     "can "
     "use them any more; adopt USER@ADDRESS does all of that over ssh with a system that runs; "
     "list prints the roster; forget NAME... takes boards out of it. warm RUN.yaml lets "
     "boards build the kernels of a run ahead of it. show BOARD... says how a board "
     "is, log BOARD what its agent has said last, and reboot BOARD lets it begin anew: also while "
     "it trains.",
     rp_verb_boards},
    {"image", "", 0, 0, "b123456790aokey~G",
     "Make a card for a board, or what a vendor's system needs",
     "It has a token that lets the board into a roster, where `ringpipe boards enrol` waits. "
     "Several names with ',' between give an image each, in the folder --out. --system makes a "
     "folder for `ringpipe bundle`: the system of such boards, for one that runs already.",
     rp_verb_image},
    {"flash", "[IMAGE... DEVICE]", 0, UINT32_MAX, "8ay",
     "Write an image to a card, and read it back",
     "Without words it lists the disks that may be written: those that can be taken out, and of "
     "which "
     "nothing is in use. Several images are written one after the other, each to another card.",
     rp_verb_flash},
    {"bundle", "[FOLDER]", 0, 1, "obkGg", "Sign software for boards",
     "FOLDER has what a board gets, with bin/ringpipe-agent in it, or a whole system that "
     "`ringpipe image` has made. --board says for which profile, "
     "--release which bundle it is: boards take larger numbers only. --new-key makes the pair of "
     "keys; boards keep its public half, update.key, beside their own.",
     rp_verb_bundle},
    {"push", "BUNDLE [BOARD...]", 1, UINT32_MAX, "O@IkfJ*zQ", "Bring signed software to boards",
     "To all boards of the roster, or those that are named or fit --where, in turn or "
     "--at-once N at a time: each takes the bundle, starts it, and has to say that it is good "
     "before the next one gets it. A board with a run is left alone.",
     rp_verb_push},
    {"slots", "[BOARD...]", 0, UINT32_MAX, "O@Ikf", "Say which software boards have", NULL,
     rp_verb_slots},
    {"validate", "[BOARD...]", 0, UINT32_MAX, "O@Ikf", "Take what is on trial there for good", NULL,
     rp_verb_validate},
    {"revert", "[BOARD...]", 0, UINT32_MAX, "O@Ikf~", "Go back to the software of before", NULL,
     rp_verb_revert},
    {"keys", "new|show|list|trust|untrust", 1, 3, "fDR", "CURVE keys and who is trusted",
     "new makes a pair; show prints the public key, show --roster NAME [ADDRESS] the line that a "
     "roster needs of a board (with its ADDRESS) or of a host; list prints the own key and all "
     "that are trusted; trust NAME KEY and untrust NAME change whom this account lets in.",
     rp_verb_keys},
    {"data", "fetch SET", 2, 2, "THf", "Fetch a data set's official files, checksums verified",
     NULL, rp_verb_data},
    {"inspect", "FILE.safetensors|MODEL.yaml", 1, 1, "f)(",
     "List the tensors of a file, or the layers of a model",
     "Tensors have their ranges. Layers have shapes, parameters, operations and memory for one "
     "sample; the model may be a name of the zoo (ringpipe list models). What it leaves to its "
     "data is given by --input and --classes, else assumed.",
     rp_verb_inspect},
    {"list", "[LIST]", 0, 1, "f", "List what there is: layers, schedules, ...",
     "LIST is one of the lists' names; without it all names are listed.", rp_verb_list},
    {NULL, NULL, 0, 0, NULL, NULL, NULL, NULL},
};

static void print_usage(FILE *file) {
    (void)fprintf(file, "Usage: ringpipe VERB ...\n"
                        "Trains neural networks in a pipeline over a ring of OpenCL boards.\n\n");
    for (const rp_cli_verb *verb = rp_cli_verbs; verb->name; verb++) {
        (void)fprintf(file, "  ringpipe %-8s %-24s %s\n", verb->name, verb->words, verb->summary);
    }
    (void)fprintf(
        file, "\nringpipe VERB --help lists the options of a verb; man ringpipe tells more.\n"
              "Exit codes: 0 finished, 2 bad usage or input, 3 the ring failed (resumable),\n"
              "4 device or driver fault, 5 refused by security, 130 interrupted (resumable).\n");
}

/* A word `-` is the standard input, which some read more than once. */
static rp_err run_verb(const rp_cli_verb *verb, const rp_cli_args *args) {
    rp_err err = RP_OK;
    if (args->quiet && args->verbose) {
        return rp_fail(RP_ERR_USAGE, "--quiet and --verbose exclude each other");
    }
    if (args->quiet || args->verbose) {
        rp_log_choose(args->quiet ? RP_LOG_ERROR : RP_LOG_DEBUG);
    }
    if (args->verbose) {
        (void)setenv("RP_LOG", "debug", 1); /* for local agents, and the runs of a comparison */
    }
    for (uint32_t i = 0; i < args->word_count && err == RP_OK; i++) {
        err = rp_input_is_standard(args->word[i]) ? rp_input_keep() : RP_OK;
    }
    return err == RP_OK ? verb->run(args) : err;
}

/* One line where it is clear enough what was meant, all verbs where nothing was. */
static int no_verb(const char *name) {
    rp_nearest nearest = {.word = name};
    if (!name[0]) {
        print_usage(stderr);
        return 2;
    }
    for (const rp_cli_verb *verb = rp_cli_verbs; verb->name; verb++) {
        rp_nearest_offer(&nearest, verb->name);
    }
    rp_print(stderr, "ringpipe: no verb '%s'", name);
    if (nearest.best) {
        rp_print(stderr, "; did you mean '%s'?\n", nearest.best);
    } else {
        (void)fprintf(stderr, "; there are:");
        for (const rp_cli_verb *verb = rp_cli_verbs; verb->name; verb++) {
            rp_print(stderr, " %s", verb->name);
        }
        (void)fprintf(stderr, "\n");
    }
    (void)fprintf(stderr, "`ringpipe --help` says what each is for.\n");
    return 2;
}

/* The line as it was typed, for about.json. */
static void keep_command(int argc, char **argv, rp_cli_args *args) {
    rp_arena arena;
    size_t used = 0;
    rp_arena_init(&arena, "command", 0);
    for (int i = 0; i < argc && used < sizeof args->command - 1; i++) {
        const char *word = argv[i];
        if (rp_shell_word(&arena, argv[i], &word) != RP_OK) {
            word = argv[i];
        }
        const int more =
            snprintf(args->command + used, sizeof args->command - used, "%s%s", i ? " " : "", word);
        used += more > 0 ? (size_t)more : 0;
    }
    args->program = argv[0];
    rp_arena_finish(&arena);
}

static int run_line(int argc, char **argv) {
    const char *name = argc > 1 ? argv[1] : "";
    rp_share_announce("RINGPIPE_MODELS", "models");
    rp_share_announce("RINGPIPE_LINKS", "links");
    rp_share_announce("RINGPIPE_BOARDS", "boards");
    rp_share_announce("RINGPIPE_IMAGE", "image");
    if (strcmp(name, "--help") == 0 || strcmp(name, "help") == 0) {
        print_usage(stdout);
        return 0;
    }
    if (strcmp(name, "--version") == 0) {
        (void)printf("ringpipe %s\n", RP_VERSION);
        return 0;
    }
    for (const rp_cli_verb *verb = rp_cli_verbs; verb->name; verb++) {
        if (strcmp(name, verb->name) == 0) {
            static char program[64];
            (void)snprintf(program, sizeof program, "ringpipe %s", name);
            rp_cli_args args = {.format = "text",
                                .split = "test",
                                .board = "auto",
                                .minutes = 5,
                                .wait_s = RP_CLI_WAIT_UNSAID,
                                .jobs = 1,
                                .top = 1,
                                .executor = "digest",
                                .faults = "none",
                                .seed_first = 1,
                                .seed_last = 1,
                                .stages = 4,
                                .micro = 8};
            rp_arena words;
            rp_arena_init(&words, "command line", 0);
            rp_err err = RP_ARENA_NEW(&words, (size_t)argc, &args.word);
            if (err == RP_OK) {
                keep_command(argc, argv, &args);
                argv[1] = program;
                rp_cli_parse(verb, argc - 1, argv + 1, &args);
                err = run_verb(verb, &args);
            }
            rp_arena_finish(&words);
            return rp_err_exit_code(err);
        }
    }
    return no_verb(name);
}

int main(int argc, char **argv) {
    rp_process_begin();
    rp_cli_open_safe_output();
    rp_log_setup_plain("ringpipe");
    return rp_process_end(run_line(argc, argv));
}
