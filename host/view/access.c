#include "view/access.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- addresses ------------------------------------------------------------------------------- */

/* Splits "HOST:PORT" or "[HOST]:PORT"; a missing port is 0. false: no valid form. */
static bool split_host(const char *text, char host[RP_VIEW_HOST_BYTES], uint32_t *port) {
    const bool quoted = text[0] == '[';
    const char *begin = text + quoted;
    const char *end = quoted ? strchr(begin, ']') : strchr(begin, ':');
    end = end || quoted ? end : begin + strlen(begin);
    if (!end || end == begin || end - begin >= RP_VIEW_HOST_BYTES) {
        return false;
    }
    memcpy(host, begin, (size_t)(end - begin));
    host[end - begin] = '\0';
    end += quoted;
    *port = 0;
    if (*end == '\0') {
        return true;
    }
    const char *digits = end + 1;
    const size_t length = strlen(digits);
    if (*end != ':' || length < 1 || length > 5 || strspn(digits, "0123456789") != length) {
        return false;
    }
    *port = (uint32_t)strtoul(digits, NULL, 10);
    return *port <= 65535;
}

/* false: it is a name, not an address. */
static bool parse_address(const char *host, uint32_t port, struct sockaddr_storage *out,
                          socklen_t *bytes) {
    struct sockaddr_in *four = (struct sockaddr_in *)out;
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)out;
    memset(out, 0, sizeof *out);
    if (inet_pton(AF_INET, host, &four->sin_addr) == 1) {
        four->sin_family = AF_INET;
        four->sin_port = htons((uint16_t)port);
        *bytes = sizeof *four;
        return true;
    }
    six->sin6_family = AF_INET6;
    six->sin6_port = htons((uint16_t)port);
    *bytes = sizeof *six;
    return inet_pton(AF_INET6, host, &six->sin6_addr) == 1;
}

/* 127.0.0.0/8, also as a mapped address, or ::1. */
static bool is_loopback(const struct sockaddr *address) {
    const struct sockaddr_in *four = (const struct sockaddr_in *)address;
    const struct in6_addr *six = &((const struct sockaddr_in6 *)address)->sin6_addr;
    if (address->sa_family == AF_INET) {
        return ntohl(four->sin_addr.s_addr) >> 24 == 127;
    }
    return IN6_IS_ADDR_LOOPBACK(six) || (IN6_IS_ADDR_V4MAPPED(six) && six->s6_addr[12] == 127);
}

rp_err rp_view_listen_parse(const char *text, rp_view_listen *out) {
    char host[RP_VIEW_HOST_BYTES];
    uint32_t port;
    if (!split_host(text, host, &port) || !strrchr(text, ':') || text[strlen(text) - 1] == ']' ||
        !parse_address(strcmp(host, "localhost") == 0 ? "127.0.0.1" : host, port, &out->address,
                       &out->bytes)) {
        return rp_fail(RP_ERR_USAGE,
                       "--listen %s: expected ADDRESS:PORT, such as 127.0.0.1:7180 or [::1]:7180",
                       text);
    }
    out->is_loopback = is_loopback((const struct sockaddr *)&out->address);
    return RP_OK;
}

/* ---- the Host header ------------------------------------------------------------------------- */

static uint32_t port_of(const struct sockaddr *address) {
    return address->sa_family == AF_INET ? ntohs(((const struct sockaddr_in *)address)->sin_port)
                                         : ntohs(((const struct sockaddr_in6 *)address)->sin6_port);
}

/* An IPv4 peer of a socket for both versions has a mapped address. */
static bool is_same_address(const struct sockaddr_storage *given, const struct sockaddr *own) {
    const struct sockaddr_in *four = (const struct sockaddr_in *)given;
    const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)given;
    const struct sockaddr_in6 *own_six = (const struct sockaddr_in6 *)own;
    if (own->sa_family == AF_INET) {
        return given->ss_family == AF_INET &&
               four->sin_addr.s_addr == ((const struct sockaddr_in *)own)->sin_addr.s_addr;
    }
    if (given->ss_family == AF_INET) {
        return IN6_IS_ADDR_V4MAPPED(&own_six->sin6_addr) &&
               memcmp(&own_six->sin6_addr.s6_addr[12], &four->sin_addr, 4) == 0;
    }
    return memcmp(&own_six->sin6_addr, &six->sin6_addr, sizeof six->sin6_addr) == 0;
}

bool rp_view_host_is_own(const char *host, const struct sockaddr *own, const char *machine) {
    struct sockaddr_storage given;
    char name[RP_VIEW_HOST_BYTES];
    socklen_t bytes;
    uint32_t port;
    if (!host || !split_host(host, name, &port) || (port > 0 ? port : 80) != port_of(own)) {
        return false;
    }
    if (parse_address(name, port, &given, &bytes)) {
        return is_same_address(&given, own);
    }
    return is_loopback(own) ? strcasecmp(name, "localhost") == 0
                            : machine[0] && strcasecmp(name, machine) == 0;
}

/* ---- the token ------------------------------------------------------------------------------- */

static rp_err check_token(const char *path, const char *token) {
    const size_t length = strlen(token);
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
                                  "-_.~/=";
    if (length < RP_VIEW_TOKEN_MIN || length > RP_VIEW_TOKEN_MAX ||
        strspn(token, letters) != length) {
        return rp_fail(RP_ERR_USAGE,
                       "--token-file %s: expected a first line of %d to %d letters, digits and "
                       "characters of -_.~/=, as `openssl rand -hex 16` prints it",
                       path, RP_VIEW_TOKEN_MIN, RP_VIEW_TOKEN_MAX);
    }
    return RP_OK;
}

rp_err rp_view_token_read(const char *path, char token[static RP_VIEW_TOKEN_MAX + 1]) {
    char text[RP_VIEW_TOKEN_MAX + 3];
    struct stat facts;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    const bool opened = fd >= 0 && fstat(fd, &facts) == 0;
    const int code = errno;
    const ssize_t got =
        opened && S_ISREG(facts.st_mode) ? read(fd, text, sizeof text - 1) : (ssize_t)-1;
    if (fd >= 0) {
        (void)close(fd);
    }
    if (got < 0) {
        return rp_fail(RP_ERR_USAGE, "--token-file %s: %s", path,
                       opened ? "expected a readable file" : strerror(code));
    }
    if (facts.st_mode & 077) {
        return rp_fail(RP_ERR_USAGE,
                       "--token-file %s: others may read it; expected mode 600 (chmod 600)", path);
    }
    text[got] = '\0';
    text[strcspn(text, "\r\n")] = '\0';
    const rp_err err = check_token(path, text);
    if (err == RP_OK) {
        memcpy(token, text, strlen(text) + 1);
    }
    explicit_bzero(text, sizeof text);
    return err;
}

bool rp_view_token_is(const char *token, const char *given) {
    const size_t length = strlen(token);
    const size_t other = given ? strlen(given) : 0;
    unsigned char differs = other != length;
    for (size_t i = 0; i < length; i++) {
        const char c = other > 0 ? given[i % other] : '\0';
        differs = (unsigned char)(differs | (unsigned char)(token[i] ^ c));
    }
    return differs == 0 && length > 0;
}
