/* image: makes card images for boards, and files for vendors' systems. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/board.h"
#include "base/cache_home.h"
#include "base/clock.h"
#include "base/folders.h"
#include "base/printable.h"
#include "cli/cli.h"
#include "cli/output_file.h"
#include "enrol/door.h"
#include "enrol/enrol.h"
#include "enrol/issue.h"
#include "image/make.h"
#include "image/overlay.h"
#include "run/roster.h"
#include "transport/token_text.h"

enum { NODES_MAX = RP_ENROL_BOARDS_MAX };

typedef struct {
    const rp_cli_args *args;
    const char *keys_folder;
    rp_keypair keys;
    rp_board_about about;
    rp_image_system system;
    const char *door;       /* ADDRESS:PORT at which boards enrol */
    const char *update_key; /* a file, or NULL */
    const char *name[NODES_MAX];
    uint32_t count;
} job;

/* ---- arguments ------------------------------------------------------------------------------- */

static rp_err read_names(rp_arena *arena, job *j) {
    const char *at = j->args->enrol.node;
    char *name;
    rp_err err = RP_OK;
    while (at) {
        const size_t length = strcspn(at, ",");
        if (j->count == NODES_MAX) {
            return rp_fail(RP_ERR_USAGE, "--node: expected at most %d names", NODES_MAX);
        }
        RP_TRY(rp_arena_text(arena, at, length, &name));
        for (uint32_t i = 0; i < j->count; i++) {
            if (strcmp(j->name[i], name) == 0) {
                return rp_fail(RP_ERR_USAGE, "--node: '%s' is listed twice", name);
            }
        }
        j->name[j->count++] = name;
        at = at[length] ? at + length + 1 : NULL;
    }
fail:
    return err;
}

static rp_err read_board(rp_arena *arena, job *j) {
    const char *name = j->args->board;
    rp_board board;
    rp_err err;
    if (strcmp(name, "auto") == 0) {
        return rp_fail(RP_ERR_USAGE,
                       "--board NAME is missing; `ringpipe list boards` lists the names");
    }
    RP_TRY(rp_board_find(arena, name, 0, &board)); /* its error lists known boards */
    RP_TRY(rp_board_read_about(arena, name, &j->about));
    const bool has_arch =
        strcmp(j->about.arch, "amd64") == 0 || strcmp(j->about.arch, "arm64") == 0;
    if (!has_arch || (j->args->image.overlay && strcmp(j->about.method, "none") == 0)) {
        return rp_fail(RP_ERR_USAGE,
                       "board '%s' has no system on which packages can be installed: %s", name,
                       j->about.how[0] ? j->about.how : "its profile has no `arch`");
    }
    if (!j->args->image.overlay && !j->about.kernel[0]) {
        return rp_fail(RP_ERR_USAGE,
                       "board '%s' starts with its vendor's system (%s); make files for it with "
                       "--overlay",
                       name, j->about.how);
    }
fail:
    return err;
}

static rp_err read_door(rp_arena *arena, job *j) {
    const char *host = j->args->enrol.host;
    if (!host || !host[0]) {
        return rp_fail(RP_ERR_USAGE,
                       "--host ADDRESS[:PORT] is missing: the address at which boards reach this "
                       "host");
    }
    return rp_enrol_door(arena, "--host", host, RP_ENROL_ADDRESS, &j->door);
}

/* Reads this host's keys, and makes them if they are missing. */
static rp_err need_keys(rp_arena *arena, job *j) {
    char *path;
    rp_err err = RP_OK;
    j->keys_folder = j->args->keys;
    RP_TRY(j->keys_folder ? RP_OK : rp_keys_home(arena, &j->keys_folder));
    RP_TRY(rp_arena_printf(arena, &path, "%s/public.key", j->keys_folder));
    if (access(path, F_OK) != 0) {
        RP_TRY(rp_keys_new(j->keys_folder));
        rp_print(stderr, "made keys of this host: %s\n", j->keys_folder);
    }
    RP_TRY(rp_keys_read(j->keys_folder, &j->keys));
    RP_TRY(rp_arena_printf(arena, &path, "%s/update.key", j->keys_folder));
    j->update_key = access(path, R_OK) == 0 ? path : NULL;
fail:
    return err;
}

static rp_err find_cache(rp_arena *arena, const rp_cli_args *args, const char **out) {
    char *path;
    rp_err err;
    if (args->image.cache) {
        *out = args->image.cache;
        return RP_OK;
    }
    RP_TRY(rp_arena_printf(arena, &path, "%s/ringpipe/images", rp_cache_home()));
    *out = path;
fail:
    return err;
}

static rp_err read_job(rp_arena *arena, job *j) {
    const rp_cli_args *args = j->args;
    rp_err err;
    if (args->system && (args->enrol.node || args->enrol.host || args->image.overlay ||
                         args->image.ssh_key || args->image.wifi || args->image.enrol ||
                         args->enrol.dial || args->image.listen || args->image.release)) {
        return rp_fail(RP_ERR_USAGE, "--system is not for a single board, so it excludes options "
                                     "like --node and --host: expected image --system --board "
                                     "BOARD -o FOLDER");
    }
    if (args->system ? !args->out : !args->enrol.node || !args->out) {
        return rp_fail(RP_ERR_USAGE, "expected: image --board BOARD --node NAME --host ADDRESS -o "
                                     "FILE.img (a folder for several names, or with --overlay)");
    }
    RP_TRY(read_names(arena, j));
    if (args->image.enrol && j->count > 1) {
        return rp_fail(RP_ERR_USAGE, "--enrol: a token is for one board, but --node has %u names",
                       j->count);
    }
    RP_TRY(args->enrol.dial ? rp_enrol_check_dial("--dial", args->enrol.dial) : RP_OK);
    if (args->image.listen && !rp_roster_is_address(args->image.listen)) {
        return rp_fail(RP_ERR_USAGE, "--listen: expected " RP_ROSTER_ADDRESS ", found '%s'",
                       args->image.listen);
    }
    RP_TRY(read_board(arena, j));
    RP_TRY(args->system ? RP_OK : read_door(arena, j));
    j->system = (rp_image_system){.arch = j->about.arch,
                                  .kernel = j->about.kernel,
                                  .console = j->about.image_console,
                                  .drivers = j->about.packages,
                                  .release = args->image.release,
                                  .packages = args->image.packages ? args->image.packages
                                                                   : "build-package"};
    RP_TRY(find_cache(arena, args, &j->system.cache));
fail:
    return err;
}

/* ---- one board ------------------------------------------------------------------------------- */

static void describe_node(const job *j, const char *name, const char *token, rp_image_node *out) {
    const rp_cli_args *args = j->args;
    *out = (rp_image_node){.name = name,
                           .board = args->board,
                           .token = token,
                           .listen = args->image.listen ? args->image.listen : "tcp://0.0.0.0:7000",
                           .dial = args->enrol.dial,
                           .ssh_key = args->image.ssh_key,
                           .wifi = args->image.wifi,
                           .update_key = j->update_key};
}

/* Checks everything before a token is made and minutes are spent. */
static rp_err check_all(const job *j) {
    char stand_in[512];
    rp_image_node node;
    rp_err err = RP_OK;
    (void)snprintf(stand_in, sizeof stand_in, "token@%s", j->door);
    for (uint32_t i = 0; i < j->count && err == RP_OK; i++) {
        describe_node(j, j->name[i], stand_in, &node);
        err = rp_image_check_node(&node);
    }
    return err;
}

/* The token of --enrol, which is on a list already, or a new one, which is not. */
static rp_err find_token(rp_arena *arena, const job *j, rp_enrol_token *out) {
    const char *word;
    rp_err err;
    if (!j->args->image.enrol) {
        rp_enrol_draw(j->keys.public_text, out);
        return RP_OK;
    }
    RP_TRY(rp_token_text(arena, "--enrol", j->args->image.enrol, &word));
    const char *wrong = rp_enrol_parse(word, out);
    rp_token_hide(j->args->image.enrol);
    err = wrong ? rp_fail(RP_ERR_USAGE, "--enrol: the token %s", wrong) : RP_OK;
fail:
    return err;
}

/* Makes the token valid. This is done last, so that a failed image leaves no token. */
static rp_err open_token(const job *j, const char *name, const rp_enrol_token *token) {
    const int64_t hours = j->args->enrol.hours ? j->args->enrol.hours : RP_ENROL_HOURS;
    const int64_t now_s = rp_wall_s();
    return j->args->image.enrol
               ? RP_OK
               : rp_enrol_open(j->keys_folder, token, name, now_s + hours * 3600, now_s);
}

static rp_err make_one(rp_arena *arena, const job *j, const char *name) {
    const rp_cli_args *args = j->args;
    const bool several = j->count > 1;
    rp_enrol_token token = {.word = ""};
    char *text;
    rp_image_node node;
    char *out;
    rp_err err;
    RP_TRY(rp_arena_printf(arena, &out, "%s%s%s%s", args->out, several ? "/" : "",
                           several ? name : "", several && !args->image.overlay ? ".img" : ""));
    RP_TRY(args->image.overlay ? RP_OK : rp_cli_check_output(args, out));
    RP_TRY(find_token(arena, j, &token));
    RP_TRY(rp_arena_printf(arena, &text, "%s@%s", token.word, j->door));
    describe_node(j, name, text, &node);
    RP_TRY(args->image.overlay
               ? rp_image_overlay(&node, j->system.arch, j->system.packages, j->about.packages, out)
               : rp_image_make(&j->system, &node, out));
    RP_TRY(open_token(j, name, &token));
    (void)printf("%s: for %s (%s)\n", out, name, args->board);
fail:
    explicit_bzero(&token, sizeof token);
    return err;
}

static rp_err make_system(const job *j) {
    const rp_cli_args *args = j->args;
    rp_err err;
    if (access(args->out, F_OK) == 0) {
        return rp_fail(RP_ERR_USAGE, "%s exists already; expected a new folder", args->out);
    }
    RP_TRY(rp_image_check_system(&j->system, args->out, 1));
    RP_TRY(rp_image_make_system(&j->system, args->out));
    (void)printf("%s: a system for boards with the profile %s\n", args->out, args->board);
    if (!args->quiet) {
        rp_print(stderr, "sign it with `ringpipe bundle %s --board %s --release N`\n", args->out,
                 args->board);
    }
fail:
    return err;
}

rp_err rp_verb_image(rp_arena *arena, const rp_cli_args *args) {
    job j = {.args = args};
    char *first;
    rp_err err;
    RP_TRY(read_job(arena, &j));
    if (args->system) {
        return make_system(&j);
    }
    RP_TRY(check_all(&j));
    RP_TRY(rp_arena_printf(arena, &first, "%s%s", args->out, j.count > 1 ? "/x" : ""));
    if (j.count > 1) {
        RP_TRY(rp_folders_make(args->out, 0755));
    }
    RP_TRY(args->image.overlay ? RP_OK : rp_image_check_system(&j.system, first, j.count));
    RP_TRY(need_keys(arena, &j));
    for (uint32_t i = 0; i < j.count; i++) {
        RP_TRY(make_one(arena, &j, j.name[i]));
    }
    if (!args->quiet) {
        rp_print(stderr,
                 "next: %s; then add %s with `ringpipe boards enrol --open --roster FILE`\n",
                 args->image.overlay ? "follow README.txt in the folder"
                                     : "write it to a card with `ringpipe flash`",
                 j.count == 1 ? "the board" : "the boards");
    }
fail:
    explicit_bzero(&j.keys, sizeof j.keys);
    return err;
}
