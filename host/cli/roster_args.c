#include "cli/roster_args.h"

#include <ctype.h>
#include <string.h>

#include "run/where.h"

enum { NAME_MAX_BYTES = 63 };

rp_err rp_cli_read_boards(rp_arena *arena, const rp_cli_args *args, rp_roster_entry **out,
                          uint32_t *count) {
    rp_where where;
    rp_err err;
    RP_TRY(rp_where_parse(arena, args->where.item, args->where.count, &where));
    RP_TRY(rp_roster_read(arena, args->roster, out, count));
    RP_TRY(rp_where_choose(&where, args->roster, *out, count));
fail:
    return err;
}

static rp_err find_named(const rp_cli_args *args, const char *name, const rp_roster_entry *boards,
                         uint32_t count, rp_roster_entry *out) {
    for (uint32_t k = 0; k < count; k++) {
        if (strcmp(boards[k].name, name) == 0) {
            *out = boards[k];
            return RP_OK;
        }
    }
    return rp_fail(RP_ERR_USAGE, "%s: board '%s' is not in the roster", args->roster, name);
}

/* Takes the boards that the words from `first` on name, each of them once. */
static rp_err take_named(const rp_cli_args *args, uint32_t first, const rp_roster_entry *boards,
                         uint32_t count, rp_roster_entry *out) {
    rp_err err = RP_OK;
    for (uint32_t i = first; i < args->words.count; i++) {
        const char *name = args->words.item[i];
        for (uint32_t k = first; k < i; k++) {
            if (strcmp(args->words.item[k], name) == 0) {
                return rp_fail(RP_ERR_USAGE, "board '%s' is named twice", name);
            }
        }
        RP_TRY(find_named(args, name, boards, count, &out[i - first]));
    }
fail:
    return err;
}

rp_err rp_cli_choose_boards(rp_arena *arena, const rp_cli_args *args, uint32_t first, bool all,
                            rp_roster_entry **out, uint32_t *count) {
    const uint32_t named = args->words.count - first;
    rp_roster_entry *boards;
    rp_err err;
    if ((named > 0 && args->where.count > 0) || (!all && named == 0 && args->where.count == 0)) {
        return rp_fail(RP_ERR_USAGE,
                       "which boards? expected either BOARD... or --where KEY=VALUE, not both");
    }
    RP_TRY(rp_cli_read_boards(arena, args, &boards, count));
    *out = boards;
    if (named > 0) {
        RP_TRY(RP_ARENA_NEW(arena, named, out));
        RP_TRY(take_named(args, first, boards, *count, *out));
        *count = named;
    }
fail:
    return err;
}

rp_err rp_cli_check_name(const char *name) {
    const char *at = name;
    while (isalnum((unsigned char)*at) || (*at && strchr("._-", *at))) {
        at++;
    }
    return *name && !*at && at - name <= NAME_MAX_BYTES && strcmp(name, "host") != 0
               ? RP_OK
               : rp_fail(RP_ERR_USAGE,
                         "invalid name '%s': expected 1 to %d of A-Z a-z 0-9 . _ -, and not `host`",
                         name, NAME_MAX_BYTES);
}

rp_err rp_cli_check_listen(const rp_cli_args *args, const rp_roster_entry *boards, uint32_t count) {
    if (args->listen && !rp_roster_is_address(args->listen)) {
        return rp_fail(RP_ERR_USAGE, "--listen: expected " RP_ROSTER_ADDRESS ", found '%s'",
                       args->listen);
    }
    for (uint32_t k = 0; k < count && !args->listen; k++) {
        if (boards[k].dials) {
            return rp_fail(RP_ERR_USAGE,
                           "%s: board %s dials this host: expected the address to listen at with "
                           "--listen, as in tcp://0.0.0.0:7100",
                           args->roster, boards[k].name);
        }
    }
    return RP_OK;
}
