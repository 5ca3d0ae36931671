#include "reach/probe.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/arena.h"

enum { HOST_BYTES = 128, OWN_FILES = 128, FILES_MAX = 65536 };

static const int64_t LOOK_NS = 20 * RP_NS_PER_MS;

uint32_t rp_probe_room(uint32_t wanted, uint32_t each) {
    const rlim_t need = (rlim_t)wanted * each + OWN_FILES;
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
        return 1;
    }
    if (limit.rlim_cur < need && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = need < limit.rlim_max ? need : limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit); /* what holds is read next */
        (void)getrlimit(RLIMIT_NOFILE, &limit);
    }
    const rlim_t files = limit.rlim_cur < FILES_MAX ? limit.rlim_cur : FILES_MAX;
    const rlim_t room = files > OWN_FILES + each ? (files - OWN_FILES) / each : 1;
    return room < wanted ? (uint32_t)room : wanted;
}

/* ---- names ----------------------------------------------------------------------------------- */

typedef struct {
    char host[HOST_BYTES];
    rp_probe *probe;
    struct gaicb question;
} name;

static const struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};

/* Numbers are known at once; false: it is a name. */
static bool take_number(rp_probe *probe, char host[HOST_BYTES]) {
    const char *from = probe->endpoint + strlen("tcp://");
    const char *colon = strrchr(from, ':');
    (void)snprintf(host, HOST_BYTES, "%.*s", (int)(colon - from), from);
    probe->address = (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = htons((uint16_t)strtoul(colon + 1, NULL, 10))};
    return inet_pton(AF_INET, host, &probe->address.sin_addr) == 1;
}

/* Until none is asked any more; false: in time some are. */
static bool await_names(const rp_clock *clock, name *names, uint32_t count, int64_t until_ns) {
    const struct timespec look = {.tv_nsec = LOOK_NS};
    for (;;) {
        uint32_t i = 0;
        while (i < count && gai_error(&names[i].question) != EAI_INPROGRESS) {
            i++;
        }
        if (i == count) {
            return true;
        }
        if (rp_clock_now_ns(clock) >= until_ns) {
            break;
        }
        const struct gaicb *one = &names[i].question;
        (void)gai_suspend(&one, 1, &look);
    }
    bool all = true;
    for (uint32_t i = 0; i < count; i++) {
        all = gai_cancel(&names[i].question) != EAI_NOTCANCELED && all;
    }
    return all;
}

static void take_name(name *of) {
    const struct addrinfo *found = of->question.ar_result;
    if (gai_error(&of->question) != 0 || !found ||
        found->ai_addrlen != sizeof(struct sockaddr_in)) {
        of->probe->state = RP_PROBE_NO_NAME;
        return;
    }
    struct sockaddr_in address;
    memcpy(&address, found->ai_addr, sizeof address);
    of->probe->address.sin_addr = address.sin_addr;
}

/* All at once, in threads of the C library: one that nobody knows holds up no other. */
static rp_err ask_names(const rp_clock *clock, name *names, uint32_t count, int64_t until_ns,
                        bool *all) {
    void *memory;
    const rp_err err = rp_block_new(count * sizeof(struct gaicb *), &memory);
    if (err != RP_OK) {
        return err;
    }
    struct gaicb **list = memory;
    for (uint32_t i = 0; i < count; i++) {
        names[i].question = (struct gaicb){.ar_name = names[i].host, .ar_request = &hints};
        list[i] = &names[i].question;
    }
    *all = getaddrinfo_a(GAI_NOWAIT, list, (int)count, NULL) != 0 ||
           await_names(clock, names, count, until_ns);
    for (uint32_t i = 0; i < count; i++) {
        take_name(&names[i]);
        if (*all && names[i].question.ar_result) {
            freeaddrinfo(names[i].question.ar_result);
        }
    }
    rp_block_free(list);
    return RP_OK;
}

static rp_err find_addresses(const rp_clock *clock, rp_probe *probe, uint32_t count,
                             int64_t until_ns, uint32_t *waits) {
    void *memory;
    uint32_t asked = 0;
    bool all = true;
    rp_err err;
    RP_TRY(rp_block_new(count * sizeof(name), &memory));
    name *names = memory;
    memset(names, 0, count * sizeof *names);
    for (uint32_t i = 0; i < count; i++) {
        names[asked].probe = &probe[i];
        asked += !take_number(&probe[i], names[asked].host);
    }
    err = asked > 0 ? ask_names(clock, names, asked, until_ns, &all) : RP_OK;
    *waits += !all;
    if (all) { /* else threads still write there, for as long as a resolver takes */
        rp_block_free(names);
    }
fail:
    return err;
}

/* ---- connections ----------------------------------------------------------------------------- */

static void end(rp_probe *probe, rp_probe_state state) {
    if (probe->fd >= 0) {
        (void)close(probe->fd);
    }
    probe->fd = -1;
    probe->state = state;
}

static rp_probe_state state_of(int error) {
    return error == 0 ? RP_PROBE_OPEN : error == ECONNREFUSED ? RP_PROBE_REFUSED : RP_PROBE_SILENT;
}

static void begin(rp_probe *probe) {
    probe->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (probe->fd < 0) {
        end(probe, RP_PROBE_SILENT);
        return;
    }
    const int done =
        connect(probe->fd, (const struct sockaddr *)&probe->address, sizeof probe->address);
    if (done == 0 || errno != EINPROGRESS) {
        end(probe, state_of(done == 0 ? 0 : errno));
    }
}

static void look(rp_probe *probe, short events) {
    int error = 0;
    socklen_t size = sizeof error;
    if (!events) {
        return;
    }
    if (getsockopt(probe->fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0) {
        error = errno;
    }
    end(probe, state_of(error));
}

/* The next so many that are to be tried. */
static rp_err connect_some(const rp_clock *clock, rp_probe **some, uint32_t count, int64_t wait_ns,
                           uint32_t *waits) {
    const int64_t until_ns = rp_clock_now_ns(clock) + wait_ns;
    void *memory;
    rp_err err;
    RP_TRY(rp_block_new(count * sizeof(struct pollfd), &memory));
    struct pollfd *polled = memory;
    for (uint32_t i = 0; i < count; i++) {
        begin(some[i]);
    }
    for (uint32_t left = count; left > 0;) {
        left = 0;
        for (uint32_t i = 0; i < count; i++) {
            polled[i] = (struct pollfd){.fd = some[i]->fd, .events = POLLOUT};
            left += some[i]->fd >= 0;
        }
        const int64_t rest_ns = until_ns - rp_clock_now_ns(clock);
        if (left == 0 || rest_ns <= 0) {
            break;
        }
        const int64_t rest_ms = (rest_ns + RP_NS_PER_MS - 1) / RP_NS_PER_MS;
        const int ready = poll(polled, count, (int)rest_ms);
        for (uint32_t i = 0; ready > 0 && i < count; i++) {
            look(some[i], polled[i].revents);
        }
    }
    bool late = false;
    for (uint32_t i = 0; i < count; i++) {
        late = late || some[i]->fd >= 0;
        if (some[i]->fd >= 0) {
            end(some[i], RP_PROBE_SILENT);
        }
    }
    *waits += late;
    rp_block_free(polled);
fail:
    return err;
}

rp_err rp_probe_all(const rp_clock *clock, rp_probe *probe, uint32_t count, int64_t wait_ns,
                    uint32_t *waits) {
    const int64_t half_ns = wait_ns / 2;
    void *memory;
    rp_err err;
    RP_TRY(rp_block_new((count + 1) * sizeof(rp_probe *), &memory));
    rp_probe **some = memory;
    err = find_addresses(clock, probe, count, rp_clock_now_ns(clock) + half_ns, waits);
    const uint32_t room = rp_probe_room(count + 1, 1);
    for (uint32_t at = 0; err == RP_OK && at < count;) {
        uint32_t have = 0;
        for (; at < count && have < room; at++) {
            probe[at].fd = -1;
            some[have] = &probe[at];
            have += probe[at].state == RP_PROBE_UNTRIED;
        }
        err = have > 0 ? connect_some(clock, some, have, half_ns, waits) : RP_OK;
    }
    rp_block_free(some);
fail:
    return err;
}
