/* boards adopt: installs the agent and a token on a running system, and adds it to the roster. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "adopt/adopt.h"
#include "agent/board.h"
#include "base/clock.h"
#include "base/printable.h"
#include "cli/boards_ask.h"
#include "cli/signals.h"
#include "enrol/door.h"
#include "enrol/enrol.h"
#include "enrol/issue.h"
#include "run/roster.h"

typedef struct {
    const rp_cli_args *args;
    const char *keys_folder, *listen;
    rp_keypair keys;
    rp_adopt adopt;
    rp_adopt_system system;
    const char *name;       /* in the roster */
    const char *door;       /* ADDRESS:PORT at which the board reaches this host */
    const char *update_key; /* a file, or NULL */
} adopting;

/* ---- arguments ------------------------------------------------------------------------------- */

static rp_err check_words(const rp_cli_args *args) {
    if (!rp_adopt_is_address(args->words.item[0])) {
        return rp_fail(RP_ERR_USAGE, "expected USER@ADDRESS, as ssh takes it, found '%s'",
                       args->words.item[0]);
    }
    if (args->listen && !rp_roster_is_address(args->listen)) {
        return rp_fail(RP_ERR_USAGE, "--listen: expected " RP_ROSTER_ADDRESS ", found '%s'",
                       args->listen);
    }
    return args->enrol.dial ? rp_enrol_check_dial("--dial", args->enrol.dial) : RP_OK;
}

static rp_err read_keys(rp_arena *arena, adopting *a) {
    char *path;
    rp_err err = RP_OK;
    a->keys_folder = a->args->keys;
    RP_TRY(a->keys_folder ? RP_OK : rp_keys_home(arena, &a->keys_folder));
    RP_TRY(rp_keys_read(a->keys_folder, &a->keys));
    RP_TRY(rp_arena_printf(arena, &path, "%s/update.key", a->keys_folder));
    a->update_key = access(path, R_OK) == 0 ? path : NULL;
fail:
    return err;
}

/* The address of this host for the board: --host, else the one from which the ssh connection came.
 */
static rp_err find_door(rp_arena *arena, adopting *a) {
    const bool told = a->args->enrol.host != NULL;
    const char *host = told ? a->args->enrol.host : a->system.from;
    if (!host[0]) {
        return rp_fail(RP_ERR_USAGE,
                       "%s does not report the address of this host; give it with --host ADDRESS",
                       a->adopt.to);
    }
    return rp_enrol_door(arena, told ? "--host" : "this host's address as the board sees it", host,
                         a->listen, &a->door);
}

static rp_err find_name(rp_arena *arena, adopting *a) {
    const rp_cli_args *args = a->args;
    rp_roster_entry *boards = NULL;
    uint32_t count = 0;
    rp_err err = RP_OK;
    a->name = args->enrol.node ? args->enrol.node : a->system.name;
    if (!rp_image_is_name(a->name)) {
        return rp_fail(RP_ERR_USAGE,
                       "%s '%s': expected 1 to %d letters, digits and -, as in a host name; set "
                       "the name with --node",
                       args->enrol.node ? "--node" : "its host name", a->name, RP_IMAGE_NAME_MAX);
    }
    if (access(args->roster, F_OK) == 0) {
        RP_TRY(rp_roster_read_begun(arena, args->roster, &boards, &count));
    }
    RP_TRY(args->enrol.group ? rp_roster_check_group(args->roster, args->enrol.group) : RP_OK);
    for (uint32_t k = 0; k < count && !args->yes; k++) {
        if (strcmp(boards[k].name, a->name) == 0) {
            return rp_fail(RP_ERR_USAGE,
                           "%s has a board '%s' already: replace it with --yes, or choose a "
                           "different name with --node",
                           args->roster, a->name);
        }
    }
fail:
    return err;
}

/* The profile names the packages of its driver. Without a profile, PoCL is installed on a system
 * that has no driver. */
static rp_err find_drivers(rp_arena *arena, adopting *a) {
    rp_board_about about;
    rp_err err;
    if (strcmp(a->args->board, "auto") == 0) {
        a->adopt.drivers = a->system.driver[0] ? "" : "pocl-opencl-icd";
        return RP_OK;
    }
    RP_TRY(rp_board_read_about(arena, a->args->board, &about));
    a->adopt.drivers = about.packages;
fail:
    return err;
}

/* ---- installation ---------------------------------------------------------------------------- */

static rp_err inspect_system(rp_arena *arena, adopting *a) {
    const rp_cli_args *args = a->args;
    rp_err err;
    RP_TRY(rp_adopt_look(a->adopt.to, &a->system));
    if (!args->quiet) {
        rp_print(stderr, "%s: %s on %s, %s %s\n", a->adopt.to,
                 a->system.system[0] ? a->system.system : a->system.os, a->system.machine,
                 a->system.bare ? "no dpkg: files of the package for" : "packages for",
                 a->system.arch[0] ? a->system.arch : "-");
    }
    RP_TRY(rp_adopt_check(a->adopt.to, &a->system));
    if (strcmp(a->system.service, "active") == 0 && !args->yes) {
        return rp_fail(RP_ERR_USAGE,
                       "%s: an agent runs there already; --yes replaces its configuration",
                       a->adopt.to);
    }
    RP_TRY(find_name(arena, a));
    RP_TRY(find_door(arena, a));
    RP_TRY(find_drivers(arena, a));
fail:
    return err;
}

static rp_err install(rp_arena *arena, adopting *a) {
    const rp_cli_args *args = a->args;
    const int64_t hours = args->enrol.hours ? args->enrol.hours : RP_ENROL_HOURS;
    const int64_t now_s = rp_wall_s();
    rp_enrol_token drawn = {.word = ""};
    char *token = NULL;
    rp_image_node node = {.name = a->name,
                          .board = args->board,
                          .listen = args->enrol.dial ? NULL : "tcp://0.0.0.0:7000",
                          .dial = args->enrol.dial,
                          .update_key = a->update_key};
    rp_err err;
    RP_TRY(rp_arena_printf(arena, &token, "token@%s", a->door));
    node.token = token;
    RP_TRY(rp_image_check_node(&node)); /* with a placeholder, before a token is made */
    rp_enrol_draw(a->keys.public_text, &drawn);
    RP_TRY(rp_arena_printf(arena, &token, "%s@%s", drawn.word, a->door));
    node.token = token;
    RP_TRY(rp_adopt_install(&a->adopt, &a->system, &node));
    /* The token becomes valid last, so that a failed installation leaves no token. */
    RP_TRY(rp_enrol_open(a->keys_folder, &drawn, a->name, now_s + hours * 3600, rp_wall_s()));
fail:
    explicit_bzero(&drawn, sizeof drawn);
    return err;
}

/* Ctrl-C ends the running ssh process, but not this program, which still removes files with the
 * token. */
static rp_err install_with_signals(rp_arena *arena, adopting *a) {
    rp_cli_signals came;
    int signals;
    rp_err err;
    RP_TRY(rp_cli_open_signals(&signals));
    err = install(arena, a);
    rp_cli_read_signals(signals, &came);
    if (came.interrupts || came.asked) {
        return rp_fail(RP_ERR_INTERRUPTED, "stopped");
    }
fail:
    return err;
}

rp_err rp_verb_boards_adopt(rp_arena *arena, const rp_cli_args *args) {
    adopting a = {.args = args, .listen = args->listen ? args->listen : RP_ENROL_ADDRESS};
    rp_err err;
    RP_TRY(check_words(args));
    a.adopt = (rp_adopt){.to = args->words.item[0],
                         .packages = args->image.packages ? args->image.packages : "build-package",
                         .drivers = ""};
    RP_TRY(rp_adopt_scratch(arena, &a.adopt.scratch));
    if (args->dry_run) {
        return rp_adopt_show(&a.adopt, stdout);
    }
    RP_TRY(read_keys(arena, &a));
    RP_TRY(inspect_system(arena, &a));
    RP_TRY(install_with_signals(arena, &a));
    RP_TRY(args->enrol.token ? RP_OK
                             : rp_cli_await_board(args, a.keys_folder, &a.keys, a.listen, a.name));
fail:
    explicit_bzero(&a.keys, sizeof a.keys);
    return err;
}
