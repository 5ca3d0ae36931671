#include "greet/probe.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/arena.h"
#include "transport/reach.h"

enum { OWN_FILES = 128, FILES_MAX = 65536 };

static const int64_t LOOK_NS = 20 * RP_NS_PER_MS;

/* An address to try. */
typedef struct {
    rp_probe *probe;
    char host[RP_REACH_HOST_BYTES];
    struct gaicb question; /* lookup of a name; without a host: the address is numeric */
    struct sockaddr_in address;
    int fd;
} attempt;

uint32_t rp_probe_room(uint32_t wanted, uint32_t each) {
    const rlim_t need = (rlim_t)wanted * each + OWN_FILES;
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
        return 1;
    }
    if (limit.rlim_cur < need && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = need < limit.rlim_max ? need : limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit); /* the limit in effect is read next */
        (void)getrlimit(RLIMIT_NOFILE, &limit);
    }
    const rlim_t files = limit.rlim_cur < FILES_MAX ? limit.rlim_cur : FILES_MAX;
    const rlim_t room = files > OWN_FILES + each ? (files - OWN_FILES) / each : 1;
    return room < wanted ? (uint32_t)room : wanted;
}

/* ---- names ----------------------------------------------------------------------------------- */

static const struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};

/* A numeric address is known at once; false: it is a name. */
static bool take_number(attempt *a) {
    char port[RP_REACH_PORT_BYTES] = "";
    (void)rp_reach_split(a->probe->endpoint, a->host, port);
    a->address = (struct sockaddr_in){.sin_family = AF_INET,
                                      .sin_port = htons((uint16_t)strtoul(port, NULL, 10))};
    return inet_pton(AF_INET, a->host, &a->address.sin_addr) == 1;
}

/* Waits until no lookup is pending; false: some are still pending at the end of the wait. */
static bool await_names(const rp_clock *clock, struct gaicb **asked, uint32_t count,
                        int64_t until_ns) {
    const struct timespec look = {.tv_nsec = LOOK_NS};
    for (;;) {
        uint32_t i = 0;
        while (i < count && gai_error(asked[i]) != EAI_INPROGRESS) {
            i++;
        }
        if (i == count) {
            return true;
        }
        if (rp_clock_now_ns(clock) >= until_ns) {
            break;
        }
        (void)gai_suspend((const struct gaicb *const *)&asked[i], 1, &look);
    }
    bool all = true;
    for (uint32_t i = 0; i < count; i++) {
        all = gai_cancel(asked[i]) != EAI_NOTCANCELED && all;
    }
    return all;
}

static void take_name(attempt *a, bool all) {
    struct addrinfo *found = a->question.ar_result;
    if (gai_error(&a->question) != 0 || !found || found->ai_addrlen != sizeof(struct sockaddr_in)) {
        a->probe->state = RP_PROBE_NO_NAME;
    } else {
        struct sockaddr_in address;
        memcpy(&address, found->ai_addr, sizeof address);
        a->address.sin_addr = address.sin_addr;
    }
    if (all && found) {
        freeaddrinfo(found);
    }
}

/* Looks up all names at once, in threads of the C library, so that an unknown name delays no other.
 * False: some threads still write to `attempts`, for as long as their resolver takes. */
static bool find_addresses(const rp_clock *clock, attempt *attempts, struct gaicb **asked,
                           uint32_t count, int64_t until_ns) {
    uint32_t names = 0;
    for (uint32_t i = 0; i < count; i++) {
        attempt *a = &attempts[i];
        if (!take_number(a)) {
            a->question = (struct gaicb){.ar_name = a->host, .ar_request = &hints};
            asked[names++] = &a->question;
        }
    }
    const bool all = names == 0 || getaddrinfo_a(GAI_NOWAIT, asked, (int)names, NULL) != 0 ||
                     await_names(clock, asked, names, until_ns);
    for (uint32_t i = 0; i < count; i++) {
        if (attempts[i].question.ar_name) {
            take_name(&attempts[i], all);
        }
    }
    return all;
}

/* ---- connections ----------------------------------------------------------------------------- */

static void end_attempt(attempt *a, int error) {
    if (a->fd >= 0) {
        (void)close(a->fd);
    }
    a->fd = -1;
    a->probe->state = error == 0              ? RP_PROBE_OPEN
                      : error == ECONNREFUSED ? RP_PROBE_REFUSED
                                              : RP_PROBE_SILENT;
}

static void begin_attempt(attempt *a) {
    a->fd = -1;
    if (a->probe->state != RP_PROBE_UNTRIED) {
        return;
    }
    a->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (a->fd < 0) {
        end_attempt(a, errno);
    } else if (connect(a->fd, (const struct sockaddr *)&a->address, sizeof a->address) == 0) {
        end_attempt(a, 0);
    } else if (errno != EINPROGRESS) {
        end_attempt(a, errno);
    }
}

static void check_attempt(attempt *a) {
    int error = 0;
    socklen_t size = sizeof error;
    end_attempt(a, getsockopt(a->fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0 ? errno : error);
}

/* As many as fit the limit of open files. */
static void connect_some(const rp_clock *clock, attempt *some, struct pollfd *polled,
                         uint32_t count, int64_t wait_ns, uint32_t *waits) {
    const int64_t until_ns = rp_clock_now_ns(clock) + wait_ns;
    uint32_t left;
    for (uint32_t i = 0; i < count; i++) {
        begin_attempt(&some[i]);
    }
    for (;;) {
        left = 0;
        for (uint32_t i = 0; i < count; i++) {
            polled[i] = (struct pollfd){.fd = some[i].fd, .events = POLLOUT};
            left += some[i].fd >= 0;
        }
        const int64_t rest_ns = until_ns - rp_clock_now_ns(clock);
        if (left == 0 || rest_ns <= 0) {
            break;
        }
        const int ready = poll(polled, count, (int)((rest_ns + RP_NS_PER_MS - 1) / RP_NS_PER_MS));
        for (uint32_t i = 0; ready > 0 && i < count; i++) {
            if (polled[i].revents) {
                check_attempt(&some[i]);
            }
        }
    }
    *waits += left > 0;
    for (uint32_t i = 0; i < count; i++) {
        if (some[i].fd >= 0) {
            end_attempt(&some[i], ETIMEDOUT);
        }
    }
}

/* ---- all of them ----------------------------------------------------------------------------- */

static void write_number(const attempt *a) {
    char host[INET_ADDRSTRLEN];
    (void)inet_ntop(AF_INET, &a->address.sin_addr, host, sizeof host);
    (void)snprintf(a->probe->numeric, sizeof a->probe->numeric, "tcp://%s:%u", host,
                   (unsigned)ntohs(a->address.sin_port));
}

rp_err rp_probe_all(const rp_clock *clock, rp_probe *probe, uint32_t count, int64_t wait_ns,
                    uint32_t *waits) {
    const size_t each = sizeof(attempt) + sizeof(struct gaicb *) + sizeof(struct pollfd);
    const int64_t half_ns = wait_ns / 2;
    void *memory;
    uint32_t tried = 0;
    rp_err err;
    RP_TRY(rp_block_new((count + (size_t)1) * each, &memory));
    attempt *attempts = memory;
    struct gaicb **asked = (void *)(attempts + count);
    struct pollfd *polled = (void *)(asked + count);
    memset(memory, 0, count * each);
    for (uint32_t i = 0; i < count; i++) {
        attempts[tried].probe = &probe[i];
        tried += probe[i].endpoint != NULL;
    }
    const bool all =
        find_addresses(clock, attempts, asked, tried, rp_clock_now_ns(clock) + half_ns);
    *waits += !all;
    const uint32_t room = rp_probe_room(tried + 1, 1);
    for (uint32_t at = 0; at < tried; at += room) {
        const uint32_t some = tried - at < room ? tried - at : room;
        connect_some(clock, attempts + at, polled, some, half_ns, waits);
    }
    for (uint32_t i = 0; i < tried; i++) {
        write_number(&attempts[i]);
    }
    if (all) {
        rp_block_free(memory);
    }
fail:
    return err;
}
