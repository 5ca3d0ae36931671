#include "enrol/door.h"

#include <stdio.h>
#include <string.h>

#include "run/roster.h"

enum { ENDPOINT_BYTES = 256 };

/* Is it the placeholder of the manual, with or without a port? */
static bool is_placeholder(const char *host) {
    const size_t bytes = strcspn(host, ":");
    return (bytes == 4 && strncmp(host, "HOST", bytes) == 0) ||
           (bytes == 7 && strncmp(host, "ADDRESS", bytes) == 0);
}

static rp_err fail_placeholder(const char *what, const char *host) {
    return rp_fail(RP_ERR_USAGE,
                   "%s: '%s' is the manual's example: expected this host's own name or address",
                   what, host);
}

rp_err rp_enrol_door(rp_arena *arena, const char *what, const char *host, const char *listen,
                     const char **out) {
    const bool has_port = strchr(host, ':') != NULL;
    char *door;
    rp_err err;
    if (is_placeholder(host)) {
        return fail_placeholder(what, host);
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

rp_err rp_enrol_check_dial(const char *option, const char *text) {
    const char *at = strchr(text, '@');
    const char *address = at ? at + 1 : text;
    char endpoint[ENDPOINT_BYTES];
    address += strncmp(address, "tcp://", 6) == 0 ? 6 : 0;
    if (is_placeholder(address)) {
        return fail_placeholder(option, address);
    }
    const int length = snprintf(endpoint, sizeof endpoint, "tcp://%s", address);
    const bool is_whole = length < (int)sizeof endpoint && at != text && !strchr(address, '@');
    if (!is_whole || !rp_roster_is_address(endpoint)) {
        return rp_fail(RP_ERR_USAGE,
                       "%s: expected [NAME@]ADDRESS:PORT, ADDRESS a name or an IPv4 address, PORT "
                       "from 1 to 65533, found '%.200s'",
                       option, text);
    }
    return RP_OK;
}
