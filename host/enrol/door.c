#include "enrol/door.h"

#include <string.h>

#include "run/roster.h"

/* The word that manuals show, with or without a port. */
static bool is_placeholder(const char *host) {
    const size_t bytes = strcspn(host, ":");
    return (bytes == 4 && strncmp(host, "HOST", bytes) == 0) ||
           (bytes == 7 && strncmp(host, "ADDRESS", bytes) == 0);
}

rp_err rp_enrol_door(rp_arena *arena, const char *what, const char *host, const char *listen,
                     const char **out) {
    const bool has_port = strchr(host, ':') != NULL;
    char *door;
    rp_err err;
    if (is_placeholder(host)) {
        return rp_fail(RP_ERR_USAGE,
                       "%s: '%s' is the manual's example: expected this host's own name or address",
                       what, host);
    }
    RP_TRY(rp_arena_printf(arena, &door, "tcp://%s%s", host, has_port ? "" : strrchr(listen, ':')));
    if (!rp_roster_is_address(door)) {
        return rp_fail(
            RP_ERR_USAGE,
            "%s: expected ADDRESS[:PORT], a name or an IPv4 address, PORT from 1 to 65533, "
            "found '%s'",
            what, host);
    }
    *out = door + strlen("tcp://");
fail:
    return err;
}
