#include "lanes/child.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { WORDS_MAX = 160, PATH_ROOM = 32 };

void rp_lane_init(rp_lane_child *lane, uint32_t index, const char *folder) {
    *lane = (rp_lane_child){.index = index, .fd = -1, .loss = (double)NAN};
    const int room = RP_LANE_PATH_BYTES - PATH_ROOM;
    (void)snprintf(lane->folder, sizeof lane->folder, "%.*s/lane-%u", room, folder, index);
    (void)snprintf(lane->log, sizeof lane->log, "%.*s/lane-%u.log", room, folder, index);
}

/* ---- starting -------------------------------------------------------------------------------- */

static void close_fd(int *fd) {
    if (*fd >= 0) {
        (void)close(*fd);
        *fd = -1;
    }
}

/* `in` and `out`: descriptors for the child; closed here in any case. */
static rp_err spawn(rp_lane_child *lane, const char *const *word, int in, int out) {
    int log = open(lane->log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0666);
    rp_err err = log >= 0 && in >= 0 && out >= 0
                     ? rp_child_start(&lane->child, NULL, word, (const int[3]){in, out, log}, -1)
                     : RP_ERR_IO;
    if (err != RP_OK) {
        err = rp_fail(RP_ERR_IO, "%s: lane %u cannot be started: %s", lane->log, lane->index,
                      strerror(errno));
    }
    if (out != in) {
        close_fd(&out);
    }
    close_fd(&in);
    close_fd(&log);
    return err;
}

static rp_err open_line(rp_lane_child *lane, int *child) {
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
        return rp_fail(RP_ERR_IO, "socketpair: %s", strerror(errno));
    }
    (void)fcntl(pair[0], F_SETFL, O_NONBLOCK);
    lane->fd = pair[0];
    *child = pair[1];
    return RP_OK;
}

static void add_words(const rp_lane_child *lane, const rp_lane_order *order, bool begun, char *own,
                      size_t bytes, const char **word) {
    uint32_t n = 0;
    word[n++] = "ringpipe";
    word[n++] = begun ? "resume" : "train";
    word[n++] = begun ? lane->folder : order->run_yaml;
    if (!begun) {
        word[n++] = "--out";
        word[n++] = lane->folder;
    }
    for (uint32_t i = 0; begun && i < order->set_count; i++) {
        word[n++] = "--set";
        word[n++] = order->set[i];
    }
    (void)snprintf(own, bytes, "lanes.lane=%u", lane->index);
    word[n++] = "--set";
    word[n++] = own;
    if (order->keys) {
        word[n++] = "--keys";
        word[n++] = order->keys;
    }
    word[n++] = "--quiet";
    word[n++] = "--lane";
    word[n] = NULL;
}

rp_err rp_lane_start(rp_lane_child *lane, const rp_lane_order *order) {
    char path[RP_LANE_PATH_BYTES];
    char own[32];
    const char *word[WORDS_MAX];
    int child = -1;
    rp_err err;
    (void)snprintf(path, sizeof path, "%.*s/run.yaml", RP_LANE_PATH_BYTES - PATH_ROOM,
                   lane->folder);
    RP_ASSERT(2 * order->set_count + PATH_ROOM < WORDS_MAX);
    add_words(lane, order, access(path, F_OK) == 0, own, sizeof own, word);
    RP_TRY(open_line(lane, &child));
    lane->reached = false;
    lane->used = 0;
    lane->start_ns = 0;
    err = spawn(lane, word, child, child);
    if (err != RP_OK) {
        close_fd(&lane->fd);
    }
fail:
    return err;
}

rp_err rp_lane_run(rp_lane_child *lane, const char *const *words, const char *out) {
    const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    const int file = open(out, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
    return spawn(lane, words, null, file);
}

/* ---- talking --------------------------------------------------------------------------------- */

static rp_lane_word take_line(rp_lane_child *lane, size_t length) {
    json_t *object = json_loadb(lane->line, length, 0, NULL);
    const json_t *step = json_object_get(object, "round");
    const json_t *samples = json_object_get(object, "samples");
    const json_t *loss = json_object_get(object, "loss");
    const json_t *away = json_object_get(object, "away");
    const json_t *damaged = json_object_get(object, "damaged");
    rp_lane_word word = RP_LANE_SAYS_NOTHING;
    if (json_is_integer(step) && json_integer_value(step) > 0 && json_is_integer(samples)) {
        lane->step = (uint64_t)json_integer_value(step);
        lane->samples = (uint64_t)json_integer_value(samples);
        lane->loss = json_is_number(loss) ? json_number_value(loss) : (double)NAN;
        word = RP_LANE_SAYS_ROUND;
    } else if (json_is_boolean(away)) {
        word = json_is_true(away) ? RP_LANE_SAYS_AWAY : RP_LANE_SAYS_BACK;
    } else if (json_is_true(damaged)) {
        word = RP_LANE_SAYS_DATA;
    }
    json_decref(object);
    return word;
}

rp_lane_word rp_lane_listen(rp_lane_child *lane) {
    rp_lane_word word = RP_LANE_SAYS_NOTHING;
    while (word == RP_LANE_SAYS_NOTHING && lane->fd >= 0) {
        char *end = memchr(lane->line, '\n', lane->used);
        if (end) {
            const size_t length = (size_t)(end - lane->line);
            word = take_line(lane, length);
            lane->used -= length + 1;
            memmove(lane->line, end + 1, lane->used);
            continue;
        }
        lane->used =
            lane->used == sizeof lane->line ? 0 : lane->used; /* too long for one of our lines */
        const ssize_t got = read(lane->fd, lane->line + lane->used, sizeof lane->line - lane->used);
        if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
            return word;
        }
        if (got <= 0) {
            close_fd(&lane->fd);
        } else {
            lane->used += (size_t)got;
        }
    }
    return word;
}

/* A lane that has just ended does not receive this; it is told when it reaches the round again. */
void rp_lane_release(rp_lane_child *lane, uint64_t step) {
    lane->reached = false;
    char text[48];
    const int length = snprintf(text, sizeof text, "{\"go\":%" PRIu64 "}\n", step);
    if (lane->fd >= 0) {
        (void)!send(lane->fd, text, (size_t)length, MSG_NOSIGNAL);
    }
}

/* ---- ending ---------------------------------------------------------------------------------- */

bool rp_lane_reap(rp_lane_child *lane) {
    if (!rp_child_reap(&lane->child, &lane->exit_code)) {
        return false;
    }
    lane->reached = false;
    close_fd(&lane->fd);
    return true;
}

void rp_lane_kill(rp_lane_child *lane) {
    rp_child_kill(&lane->child);
    close_fd(&lane->fd);
}
