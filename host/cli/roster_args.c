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

/* Takes the board `name` from `boards`, and sets its name there to NULL. */
static rp_err take_named(const rp_cli_args *args, const char *name, rp_roster_entry *boards,
                         uint32_t count, rp_roster_entry *out) {
    for (uint32_t k = 0; k < count; k++) {
        if (boards[k].name && strcmp(boards[k].name, name) == 0) {
            *out = boards[k];
            boards[k].name = NULL;
            return RP_OK;
        }
    }
    return rp_fail(RP_ERR_USAGE, "%s: board '%s' is not in the roster, or is named twice",
                   args->roster, name);
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
        for (uint32_t i = 0; i < named; i++) {
            RP_TRY(take_named(args, args->words.item[first + i], boards, *count, &(*out)[i]));
        }
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
