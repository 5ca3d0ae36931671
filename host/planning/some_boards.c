#include "planning/some_boards.h"

rp_err rp_some_boards(rp_arena *arena, const rp_runfile *run, const rp_profile *profile,
                      const uint32_t *place, uint32_t count, rp_runfile *to_run,
                      rp_profile *to_profile, const char ***names) {
    rp_roster_entry *roster;
    rp_err err;
    *to_run = *run;
    *to_profile = *profile;
    RP_TRY(RP_ARENA_NEW(arena, count, &roster));
    RP_TRY(RP_ARENA_NEW(arena, count, names));
    RP_TRY(RP_ARENA_NEW(arena, profile->board_count, &to_profile->place));
    for (uint32_t k = 0; k < count; k++) {
        char *own;
        RP_TRY(rp_arena_printf(arena, &own, "%u", place[k])); /* as ring.throttle names it */
        roster[k] = run->roster ? run->roster[place[k]] : (rp_roster_entry){.name = own};
        (*names)[k] = roster[k].name;
        to_profile->place[k] = profile->place[place[k]];
    }
    to_run->roster = roster;
    to_run->boards = count;
fail:
    return err;
}
