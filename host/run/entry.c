#include "run/entry.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { HOST_MAX = 99 /* with tcp:// and a port: the longest endpoint that fits CONNECT */ };

const rp_roster_key rp_roster_keys[] = {
    [RP_ROSTER_GROUP] = {.name = "group", .offset = offsetof(rp_roster_entry, group)},
    {.name = "board",
     .offset = offsetof(rp_roster_entry, profile),
     .is_of_group = true,
     .is_of_agent = true},
    {.name = NULL},
};

const char *rp_roster_text(const rp_roster_entry *board, const rp_roster_key *key) {
    const char *text;
    memcpy(&text, (const char *)board + key->offset, sizeof text);
    return text;
}

void rp_roster_set_text(rp_roster_entry *board, const rp_roster_key *key, const char *text) {
    memcpy((char *)board + key->offset, &text, sizeof text);
}

const rp_roster_key *rp_roster_find_key(const char *name) {
    const rp_roster_key *key = rp_roster_keys;
    while (key->name && strcmp(key->name, name) != 0) {
        key++;
    }
    return key->name ? key : NULL;
}

bool rp_roster_is_word(const char *text) {
    const char *at = text;
    while (isalnum((unsigned char)*at) || (*at && strchr("._-", *at))) {
        at++;
    }
    return at > text && !*at && at - text <= RP_ROSTER_NAME_MAX;
}

bool rp_roster_is_address(const char *text) {
    const char *host = strncmp(text, "tcp://", 6) == 0 ? text + 6 : NULL;
    const char *colon = host ? strrchr(host, ':') : NULL;
    const size_t host_bytes = colon ? (size_t)(colon - host) : 0;
    const size_t digits = colon ? strlen(colon + 1) : 0;
    const unsigned long port = digits > 0 && digits <= 5 ? strtoul(colon + 1, NULL, 10) : 0;
    const bool is_number = digits > 0 && strspn(colon + 1, "0123456789") == digits;
    return host_bytes > 0 && host_bytes <= HOST_MAX && strcspn(host, " \t\r\n/*:") >= host_bytes &&
           is_number && port >= 1 && port <= 65533;
}
