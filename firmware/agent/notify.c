#include "agent/notify.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"

/* Parses a decimal number and nothing else. */
static bool read_number(const char *text, uint64_t *out) {
    char *end;
    errno = 0;
    *out = strtoull(text, &end, 10);
    return text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0;
}

static rp_err read_watchdog(rp_notify *notify) {
    const char *usec = getenv("WATCHDOG_USEC");
    const char *pid = getenv("WATCHDOG_PID");
    uint64_t number;
    if (!usec) {
        return RP_OK;
    }
    if (pid && (!read_number(pid, &number) || number != (uint64_t)getpid())) {
        return RP_OK; /* another process is watched */
    }
    if (!read_number(usec, &number) || number == 0 || number > INT64_MAX / 1000) {
        return rp_fail(RP_ERR_USAGE, "WATCHDOG_USEC: expected microseconds, found '%s'", usec);
    }
    notify->every_ns = (int64_t)number * 1000 / 2;
    return RP_OK;
}

rp_err rp_notify_open(rp_notify *notify) {
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    *notify = (rp_notify){0};
    if (!path || !path[0]) {
        return RP_OK;
    }
    const size_t bytes = strlen(path);
    /* '@': an abstract name, outside the file system. */
    if ((path[0] != '/' && path[0] != '@') || bytes >= sizeof to.sun_path) {
        return rp_fail(RP_ERR_USAGE, "NOTIFY_SOCKET: expected a path or @NAME, found '%s'", path);
    }
    memcpy(to.sun_path, path, bytes);
    to.sun_path[0] = path[0] == '@' ? '\0' : path[0];
    const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || connect(fd, (const struct sockaddr *)&to,
                          (socklen_t)(offsetof(struct sockaddr_un, sun_path) + bytes)) != 0) {
        const int code = errno;
        if (fd >= 0) {
            (void)close(fd);
        }
        return rp_fail(RP_ERR_IO, "NOTIFY_SOCKET %s: %s", path, strerror(code));
    }
    notify->fd = fd;
    return read_watchdog(notify);
}

void rp_notify_close(rp_notify *notify) {
    if (notify->fd > 0) {
        (void)close(notify->fd);
    }
    *notify = (rp_notify){0};
}

/* A lost message is repeated by the next one: a watchdog message, or the end of the process. */
static void send_status(const rp_notify *notify, const char *text) {
    if (notify->fd > 0) {
        (void)!send(notify->fd, text, strlen(text), MSG_NOSIGNAL);
    }
}

void rp_notify_ready(rp_notify *notify, const char *status) {
    char text[512];
    (void)snprintf(text, sizeof text, "READY=1\nSTATUS=%s\n", status);
    send_status(notify, text);
}

void rp_notify_starting(rp_notify *notify, const char *status, uint32_t wait_s) {
    char text[512];
    (void)snprintf(text, sizeof text, "EXTEND_TIMEOUT_USEC=%u000000\nSTATUS=%s\n", wait_s, status);
    send_status(notify, text);
}

void rp_notify_alive(rp_notify *notify, int64_t now_ns) {
    if (notify->every_ns > 0 && now_ns - notify->told_ns >= notify->every_ns) {
        notify->told_ns = now_ns;
        send_status(notify, "WATCHDOG=1\n");
    }
}

void rp_notify_stopping(rp_notify *notify) {
    send_status(notify, "STOPPING=1\n");
}
