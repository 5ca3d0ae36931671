#include "run/entry.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { HOST_MAX = 99 /* with tcp:// and a port the longest endpoint that CONNECT carries */ };

bool rp_roster_is_word(const char *text) {
    const char *at = text;
    while (isalnum((unsigned char)*at) || (*at && strchr("._-", *at))) {
        at++;
    }
    return at > text && !*at && at - text <= RP_ROSTER_NAME_MAX;
}

/* Neighbours are told the host's part. */
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
