/* boards enrol and boards forget. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "base/clock.h"
#include "base/json_print.h"
#include "base/printable.h"
#include "cli/boards_ask.h"
#include "cli/roster_args.h"
#include "cli/signals.h"
#include "enrol/addresses.h"
#include "enrol/door.h"
#include "enrol/enrol.h"
#include "enrol/issue.h"
#include "enrol/roster_edit.h"
#include "run/runfile.h"
#include "transport/listen.h"

enum { WAIT_S = 600 };

/* ---- enrol ----------------------------------------------------------------------------------- */

typedef struct {
    const rp_cli_args *args;
    const char *keys_folder, *listen, *roster;
    rp_keypair keys;
    const char *address[RP_ENROL_ADDRESSES_MAX]; /* ADDRESS:PORT at which boards reach this host */
    uint32_t addresses;
    const char **name; /* [count] boards to wait for */
    uint32_t count;
} enrolling;

/* This host's name for the boards' lists of keys. */
static void host_name(char *out, size_t bytes) {
    if (gethostname(out, bytes) != 0) {
        out[0] = '\0';
    }
    out[bytes - 1] = '\0';
    for (char *at = out; *at; at++) {
        *at = isalnum((unsigned char)*at) || strchr("._-", *at) ? *at : '-';
    }
    if (!out[0]) {
        (void)snprintf(out, bytes, "desk");
    }
}

static void tell_enrolled(void *context, const rp_enrol_event *event) {
    const enrolling *e = context;
    char fingerprint[RP_KEY_FINGERPRINT];
    rp_key_fingerprint(event->key, fingerprint);
    if (rp_cli_is_json(e->args)) {
        json_t *one =
            json_pack("{s:s, s:s, s:s, s:s, s:b}", "name", event->name, "fingerprint", fingerprint,
                      "address", event->endpoint[0] ? event->endpoint : "dials", "software",
                      event->software, "again", event->again);
        (void)!rp_json_print(one, JSON_COMPACT, stdout);
    } else {
        (void)printf("%s is enrolled: fingerprint %s, %s%s\n", event->name, fingerprint,
                     event->endpoint[0] ? event->endpoint : "dials",
                     event->again ? " (enrolled again)" : "");
    }
    (void)fflush(stdout);
}

static rp_err check_names(rp_arena *arena, const enrolling *e) {
    rp_roster_entry *boards = NULL;
    uint32_t count = 0;
    rp_err err = RP_OK;
    if (access(e->roster, F_OK) == 0) {
        RP_TRY(rp_roster_read_begun(arena, e->roster, &boards, &count));
    }
    for (uint32_t i = 0; i < e->args->words.count; i++) {
        const char *name = e->args->words.item[i];
        RP_TRY(rp_cli_check_name(name));
        for (uint32_t k = 0; k < count && !e->args->yes && !e->args->enrol.open; k++) {
            if (strcmp(boards[k].name, name) == 0) {
                return rp_fail(RP_ERR_USAGE, "%s has a board '%s' already; replace it with --yes",
                               e->roster, name);
            }
        }
    }
fail:
    return err;
}

/* Addresses of this host for boards: --host, or every address of --listen. */
static rp_err find_addresses(rp_arena *arena, enrolling *e) {
    const char *host = e->args->enrol.host;
    if (!host) {
        return rp_enrol_addresses(arena, e->listen, e->address, &e->addresses);
    }
    e->addresses = 1;
    return rp_enrol_door(arena, "--host", host, e->listen, &e->address[0]);
}

static void print_json_command(const enrolling *e, const char *name, const rp_enrol_token *token) {
    char id[RP_KEY_FINGERPRINT];
    json_t *addresses = json_array();
    rp_key_fingerprint(token->key, id);
    for (uint32_t i = 0; i < e->addresses; i++) {
        (void)json_array_append_new(addresses, json_string(e->address[i]));
    }
    json_t *one = json_pack("{s:s, s:s, s:s, s:s, s:o}", "name", name, "token", token->word, "id",
                            id, "listen", e->listen, "addresses", addresses);
    (void)!rp_json_print(one, JSON_COMPACT, stdout);
}

/* Prints the command to run on the board. */
static void print_command(const enrolling *e, const char *name, const rp_enrol_token *token) {
    if (rp_cli_is_json(e->args)) {
        print_json_command(e, name, token);
        return;
    }
    (void)printf("on %s:\n  ringpipe-agent --listen tcp://0.0.0.0:7000 --enrol %s@%s\n", name,
                 token->word, e->address[0]);
    for (uint32_t i = 1; i < e->addresses; i++) {
        (void)printf("%s%s%s",
                     i == 1 ? "  or, if the board reaches this host only at a different address,"
                              " with "
                            : ", ",
                     e->address[i], i + 1 == e->addresses ? " at the end\n" : "");
    }
    (void)fflush(stdout);
}

static rp_err make_token(const enrolling *e, const char *name) {
    const int64_t hours = e->args->enrol.hours ? e->args->enrol.hours : RP_ENROL_HOURS;
    const int64_t now_s = rp_wall_s();
    rp_enrol_token token;
    rp_enrol_draw(e->keys.public_text, &token);
    const rp_err err = rp_enrol_open(e->keys_folder, &token, name, now_s + hours * 3600, now_s);
    if (err == RP_OK) {
        print_command(e, name, &token);
    }
    explicit_bzero(&token, sizeof token);
    return err;
}

/* --open without names: waits for all boards with an open token. */
static rp_err find_names(rp_arena *arena, enrolling *e) {
    rp_pending *list;
    uint32_t count;
    rp_err err;
    e->name = e->args->words.item;
    e->count = e->args->words.count;
    if (!e->args->enrol.open || e->count > 0) {
        return RP_OK;
    }
    RP_TRY(rp_pending_read(arena, e->keys_folder, &list, &count));
    RP_TRY(RP_ARENA_NEW(arena, (size_t)count + 1, &e->name));
    for (uint32_t i = 0; i < count && e->count < RP_ENROL_BOARDS_MAX; i++) {
        if (list[i].ends_s > rp_wall_s() && !list[i].used_by) {
            e->name[e->count++] = list[i].name;
        }
    }
    if (e->count == 0) {
        return rp_fail(RP_ERR_USAGE, "no token is open; make one with `ringpipe boards enrol "
                                     "NAME...` or `ringpipe image`");
    }
fail:
    return err;
}

static rp_err wait_for_boards(const enrolling *e, const rp_clock *clock) {
    const rp_cli_args *args = e->args;
    char host[64];
    host_name(host, sizeof host);
    const rp_enrol_options options = {
        .keys_folder = e->keys_folder,
        .roster = e->roster,
        .group = args->enrol.group,
        .listen = e->listen,
        .host = host,
        .keys = &e->keys,
        .clock = clock,
        .now_s = rp_wall_s,
        .wait_ns = (int64_t)(args->wait_s ? rp_cli_wait_s(args, WAIT_S) : WAIT_S) * RP_NS_PER_S,
        .stopped = rp_cli_is_stopped,
        .told = tell_enrolled,
        .context = (void *)e,
    };
    if (!args->quiet) {
        rp_print(stderr, "waiting at %s for %u board%s; Ctrl-C stops, tokens stay valid\n",
                 e->listen, e->count, e->count == 1 ? "" : "s");
    }
    return rp_enrol_wait(&options, e->name, e->count);
}

rp_err rp_cli_await_board(const rp_cli_args *args, const char *keys_folder, const rp_keypair *keys,
                          const char *listen, const char *name) {
    const rp_clock clock = rp_clock_real();
    enrolling e = {.args = args,
                   .keys_folder = keys_folder,
                   .listen = listen,
                   .roster = args->roster,
                   .keys = *keys,
                   .name = &name,
                   .count = 1};
    rp_err err;
    RP_TRY(rp_cli_watch_signals());
    RP_TRY(wait_for_boards(&e, &clock));
fail:
    explicit_bzero(&e.keys, sizeof e.keys);
    return err;
}

rp_err rp_verb_boards_enrol(rp_arena *arena, const rp_cli_args *args) {
    enrolling e = {.args = args,
                   .keys_folder = args->keys,
                   .listen = args->listen ? args->listen : RP_ENROL_ADDRESS,
                   .roster = args->roster};
    rp_clock clock = rp_clock_real();
    rp_err err = RP_OK;
    if (args->enrol.list || args->enrol.withdraw) {
        RP_TRY(e.keys_folder ? RP_OK : rp_keys_home(arena, &e.keys_folder));
        return rp_cli_boards_tokens(arena, args, e.keys_folder);
    }
    if ((args->words.count == 0 && !args->enrol.open) || args->words.count > RP_ENROL_BOARDS_MAX ||
        !args->roster) {
        return rp_fail(RP_ERR_USAGE,
                       "expected: boards enrol --roster FILE NAME... (at most %d names), or boards "
                       "enrol --roster FILE --open",
                       RP_ENROL_BOARDS_MAX);
    }
    if (!rp_roster_is_address(e.listen)) {
        return rp_fail(RP_ERR_USAGE, "--listen: expected " RP_ROSTER_ADDRESS ", found '%s'",
                       e.listen);
    }
    RP_TRY(e.keys_folder ? RP_OK : rp_keys_home(arena, &e.keys_folder));
    RP_TRY(rp_keys_read(e.keys_folder, &e.keys));
    RP_TRY(args->enrol.group ? rp_roster_check_group(e.roster, args->enrol.group) : RP_OK);
    if (args->enrol.run && (access(args->enrol.run, R_OK) != 0 || args->enrol.token)) {
        return rp_fail(RP_ERR_USAGE, "--run %s: %s", args->enrol.run,
                       args->enrol.token
                           ? "warms boards after they have enrolled, but --token does not wait"
                           : "cannot be read");
    }
    char bound[RP_LISTEN_HOST_MAX + 32];
    RP_TRY(args->enrol.token ? RP_OK : rp_listen_resolve(e.listen, bound, sizeof bound));
    RP_TRY(check_names(arena, &e));
    RP_TRY(find_names(arena, &e));
    RP_TRY(find_addresses(arena, &e));
    RP_TRY(rp_cli_watch_signals());
    for (uint32_t i = 0; i < args->words.count && !args->enrol.open; i++) {
        RP_TRY(make_token(&e, args->words.item[i]));
    }
    RP_TRY(args->enrol.token ? RP_OK : wait_for_boards(&e, &clock));
    /* After its enrolment a board builds the kernels of its self-test before it listens. */
    RP_TRY(args->enrol.run ? rp_cli_warm(arena, args, args->enrol.run, rp_cli_wait_s(args, WAIT_S))
                           : RP_OK);
fail:
    explicit_bzero(&e.keys, sizeof e.keys);
    return err;
}

/* ---- forget ---------------------------------------------------------------------------------- */

/* Boards by name, or by --where, which needs a confirmation because it may match many. */
static rp_err find_forgotten(rp_arena *arena, const rp_cli_args *args, const char ***name,
                             uint32_t *count) {
    rp_roster_entry *boards;
    rp_err err;
    *name = args->words.item;
    *count = args->words.count;
    if (args->where.count == 0) {
        return RP_OK;
    }
    RP_TRY(rp_cli_read_boards(arena, args, &boards, count));
    RP_TRY(RP_ARENA_NEW(arena, *count, name));
    for (uint32_t i = 0; i < *count; i++) {
        (*name)[i] = boards[i].name;
    }
    if (!args->yes) {
        return rp_fail(
            RP_ERR_USAGE, "%u board%s would be removed from %s (%s%s); confirm with --yes", *count,
            *count == 1 ? "" : "s", args->roster, (*name)[0], *count == 1 ? "" : ", ...");
    }
fail:
    return err;
}

rp_err rp_verb_boards_forget(rp_arena *arena, const rp_cli_args *args) {
    const char **name;
    uint32_t count;
    rp_err err;
    if ((args->words.count > 0) == (args->where.count > 0)) {
        return rp_fail(RP_ERR_USAGE,
                       "which boards? expected either NAME... or --where KEY=VALUE, not both");
    }
    RP_TRY(find_forgotten(arena, args, &name, &count));
    RP_TRY(rp_roster_remove(args->roster, name, count));
    for (uint32_t i = 0; i < count && !args->quiet; i++) {
        rp_print(stderr, "%s is removed from %s\n", name[i], args->roster);
    }
fail:
    return err;
}
