/* ringpipe: finds the verb, runs it, and converts its error to an exit code. */
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

/* The verb's name without its group if it belongs to `group` ("boards ", or "" for top-level
 * verbs), else NULL. */
static const char *name_in(const rp_cli_verb *verb, const char *group) {
    const size_t length = strlen(group);
    const bool inside = strncmp(verb->name, group, length) == 0;
    return inside && !strchr(verb->name + length, ' ') ? verb->name + length : NULL;
}

static const rp_cli_verb *find_verb(const char *group, const char *name) {
    const rp_cli_verb *verb = rp_cli_verbs;
    while (verb->name && (!name_in(verb, group) || strcmp(name_in(verb, group), name) != 0)) {
        verb++;
    }
    return verb->name ? verb : NULL;
}

static void print_usage(FILE *file, const char *group) {
    (void)fprintf(file, "Usage: ringpipe %sVERB ...\n", group);
    if (!group[0]) {
        (void)fprintf(file,
                      "Trains neural networks in a pipeline over a ring of OpenCL boards.\n\n");
    }
    for (const rp_cli_verb *verb = rp_cli_verbs; verb->name; verb++) {
        if (name_in(verb, group)) {
            (void)fprintf(file, "  ringpipe %-*s %-24s %s\n", group[0] ? 14 : 8, verb->name,
                          verb->words, verb->summary);
        }
    }
    (void)fprintf(file,
                  "\nringpipe %sVERB --help lists the options of a verb; see also man ringpipe.\n"
                  "Exit codes: 0 finished, 2 bad usage or input, 3 the ring failed (resumable),\n"
                  "4 device or driver fault, 5 refused by security, 130 interrupted (resumable).\n",
                  group);
}

static void print_help(const rp_cli_verb *verb) {
    rp_option table[RP_OPTIONS_MAX];
    rp_cli_options_of(verb, table);
    (void)printf("Usage: ringpipe %s", verb->name);
    for (const rp_option *at = table; at->name; at++) {
        if (at->required) {
            (void)printf(" --%s %s", at->name, at->value);
        }
    }
    (void)printf(" [OPTION...]%s%s\n%s.\n\n", verb->words[0] ? " " : "", verb->words,
                 verb->summary);
    if (verb->details) {
        rp_options_wrap(stdout, verb->details, 0);
        (void)printf("\n");
    }
    rp_options_print(stdout, table);
}

/* The word `-` is standard input, which is kept because some verbs read it more than once. */
static rp_err run_verb(rp_arena *arena, const rp_cli_verb *verb, const rp_cli_args *args) {
    rp_err err = RP_OK;
    if (args->help) {
        print_help(verb);
        return RP_OK;
    }
    if (args->quiet || args->verbose) {
        rp_log_choose(args->quiet ? RP_LOG_ERROR : RP_LOG_DEBUG);
    }
    if (args->verbose) {
        (void)setenv("RP_LOG", "debug", 1); /* for child processes: local agents, runs of lab */
    }
    for (uint32_t i = 0; i < args->words.count && err == RP_OK; i++) {
        err = rp_input_is_standard(args->words.item[i]) ? rp_input_keep() : RP_OK;
    }
    return err == RP_OK ? verb->run(arena, args) : err;
}

/* Reports an unknown or missing verb; suggests the nearest verb, or lists all of them. */
static int fail_verb(const char *group, const char *name) {
    rp_nearest nearest = {.word = name};
    if (!name[0]) {
        print_usage(stderr, group);
        return 2;
    }
    for (const rp_cli_verb *verb = rp_cli_verbs; verb->name; verb++) {
        if (name_in(verb, group)) {
            rp_nearest_offer(&nearest, name_in(verb, group));
        }
    }
    rp_print(stderr, "ringpipe: unknown verb '%s%s'", group, name);
    if (nearest.best) {
        rp_print(stderr, "; did you mean '%s%s'?\n", group, nearest.best);
    } else {
        (void)fprintf(stderr, "; expected one of:");
        for (const rp_cli_verb *verb = rp_cli_verbs; verb->name; verb++) {
            if (name_in(verb, group)) {
                (void)fprintf(stderr, " %s", name_in(verb, group));
            }
        }
        (void)fprintf(stderr, "\n");
    }
    (void)fprintf(stderr, "`ringpipe %s--help` lists all verbs with a description.\n", group);
    return 2;
}

/* Keeps the command line, quoted for a shell, for about.json. */
static void keep_command(rp_arena *arena, int argc, char **argv, rp_cli_args *args) {
    size_t used = 0;
    for (int i = 0; i < argc && used < sizeof args->command - 1; i++) {
        const char *word = argv[i];
        if (rp_shell_word(arena, argv[i], &word) != RP_OK) {
            word = argv[i];
        }
        const int more =
            snprintf(args->command + used, sizeof args->command - used, "%s%s", i ? " " : "", word);
        used += more > 0 ? (size_t)more : 0;
    }
    args->program = argv[0];
}

static bool asks_for_help(const char *word) {
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "help") == 0;
}

static int run_line(int argc, char **argv) {
    const char *name = argc > 1 ? argv[1] : "";
    const rp_cli_verb *verb = find_verb("", name);
    char group[16] = "";
    int used = 2; /* words of argv up to the verb */
    if (strcmp(name, "--version") == 0) {
        (void)printf("ringpipe %s\n", RP_VERSION);
        return 0;
    }
    if (verb && !verb->run) {
        (void)snprintf(group, sizeof group, "%s ", verb->name);
        name = argc > used ? argv[used] : "";
        verb = find_verb(group, name);
        used++;
    }
    if (!verb && asks_for_help(name)) {
        print_usage(stdout, group);
        return 0;
    }
    if (!verb) {
        return fail_verb(group, name);
    }
    rp_share_announce("RINGPIPE_MODELS", "models");
    rp_share_announce("RINGPIPE_LINKS", "links");
    rp_share_announce("RINGPIPE_BOARDS", "boards");
    rp_share_announce("RINGPIPE_IMAGE", "image");
    rp_cli_args args;
    rp_arena arena;
    rp_err err;
    rp_arena_init(&arena, "command", 0);
    RP_TRY(rp_cli_parse(&arena, verb, argc - used, argv + used, &args));
    keep_command(&arena, argc, argv, &args);
    RP_TRY(run_verb(&arena, verb, &args));
fail:
    rp_arena_finish(&arena);
    return rp_err_exit_code(err);
}

int main(int argc, char **argv) {
    rp_process_begin();
    rp_cli_open_safe_output();
    rp_log_setup_plain("ringpipe");
    return rp_process_end(run_line(argc, argv));
}
