#include "cli/roster_args.h"

#include "run/where.h"

rp_err rp_cli_read_boards(rp_arena *arena, const rp_cli_args *args, rp_roster_entry **out,
                          uint32_t *count) {
    rp_where where;
    rp_err err;
    if (!args->roster) {
        return rp_fail(RP_ERR_USAGE, "expected: --roster FILE, which says who the boards are");
    }
    RP_TRY(rp_where_parse(arena, args->where.item, args->where.count, &where));
    RP_TRY(rp_roster_read(arena, args->roster, out, count));
    RP_TRY(rp_where_choose(&where, args->roster, *out, count));
fail:
    return err;
}

rp_err rp_cli_check_listen(const rp_cli_args *args, const rp_roster_entry *boards, uint32_t count) {
    if (args->listen && !rp_roster_is_address(args->listen)) {
        return rp_fail(RP_ERR_USAGE, "--listen: expected " RP_ROSTER_ADDRESS ", found '%s'",
                       args->listen);
    }
    for (uint32_t k = 0; k < count && !args->listen; k++) {
        if (boards[k].dials) {
            return rp_fail(RP_ERR_USAGE,
                           "%s: board %s dials this host: --listen says where, as in "
                           "tcp://0.0.0.0:7100",
                           args->roster, boards[k].name);
        }
    }
    return RP_OK;
}
