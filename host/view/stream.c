#include "view/stream.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "runs/tail.h"

enum {
    FIRST_BYTES = 32768,
    FILL_BYTES = 16384, /* lines are added up to here */
    BLOCK_BYTES = 65536,
    BLOCKS_MAX = 64,   /* of the log that one call reads */
    HEAD_BYTES = 128,  /* of an event, without its data */
    STEPS_KEPT = 2000, /* of older steps, about */
    NEWEST_KEPT = 500  /* and all of these */
};
static const int64_t QUIET_NS = 15 * RP_NS_PER_S;

rp_err rp_view_stream_open(rp_view_feed *feed, uint64_t last_id, int64_t now_ns,
                           rp_view_stream **out) {
    rp_view_stream *stream;
    rp_err err;
    RP_TRY(rp_block_new(sizeof *stream, (void **)&stream));
    *stream = (rp_view_stream){
        .feed = feed, .skip = last_id, .sent_ns = now_ns, .version = feed->version - 1};
    err = rp_block_new(FIRST_BYTES, (void **)&stream->buffer);
    if (err != RP_OK) {
        rp_block_free(stream);
        return err;
    }
    stream->room = FIRST_BYTES;
    feed->readers++;
    *out = stream;
fail:
    return err;
}

void rp_view_stream_close(rp_view_stream *stream) {
    if (stream) {
        stream->feed->readers--;
        rp_block_free(stream->buffer);
        rp_block_free(stream);
    }
}

static bool is_quiet(const rp_view_stream *stream, int64_t now_ns) {
    return now_ns - stream->sent_ns >= QUIET_NS;
}

bool rp_view_stream_has_news(const rp_view_stream *stream, int64_t now_ns) {
    const rp_view_log *log = &stream->feed->run.log;
    return stream->taken < stream->used || !stream->greeted ||
           stream->generation != log->generation || stream->version != stream->feed->version ||
           stream->offset < log->offset || is_quiet(stream, now_ns);
}

/* false: memory is short. */
static bool make_room(rp_view_stream *stream, size_t bytes) {
    size_t room = stream->room;
    char *buffer;
    while (room < stream->used + bytes) {
        room *= 2;
    }
    if (room == stream->room) {
        return true;
    }
    if (rp_block_new(room, (void **)&buffer) != RP_OK) {
        return false;
    }
    memcpy(buffer, stream->buffer, stream->used);
    rp_block_free(stream->buffer);
    stream->buffer = buffer;
    stream->room = room;
    return true;
}

static void add_event(rp_view_stream *stream, const char *head, const char *data, size_t bytes) {
    if (!make_room(stream, strlen(head) + bytes + HEAD_BYTES)) {
        return;
    }
    stream->used += (size_t)snprintf(stream->buffer + stream->used, HEAD_BYTES, "%sdata: ", head);
    memcpy(stream->buffer + stream->used, data, bytes);
    stream->used += bytes;
    memcpy(stream->buffer + stream->used, "\n\n", 2);
    stream->used += 2;
}

/* The log is new to the reader, or was rewritten. */
static void add_hello(rp_view_stream *stream) {
    const rp_view_log *log = &stream->feed->run.log;
    char text[HEAD_BYTES];
    const uint64_t lines = log->totals.lines;
    const bool resumes = !stream->greeted && stream->skip <= lines;
    const int bytes =
        snprintf(text, sizeof text, "{\"generation\":\"%" PRIx64 "-%u\",\"lines\":%" PRIu64 "}",
                 log->inode, log->generation, lines);
    stream->skip = resumes ? stream->skip : 0;
    stream->offset = stream->line = 0;
    stream->generation = log->generation;
    stream->greeted = true;
    stream->lines = lines;
    stream->stride = (lines - stream->skip) / STEPS_KEPT + 1;
    add_event(stream, "event: hello\n", text, (size_t)bytes);
}

/* ---- lines ----------------------------------------------------------------------------------- */

/* One line of text, as an event needs it, and an object. */
static bool is_valid(const char *line, size_t length) {
    if (length < 2 || length > RP_VIEW_LINE_BYTES || line[0] != '{' || line[length - 1] != '}') {
        return false;
    }
    for (size_t i = 0; i < length; i++) {
        if ((unsigned char)line[i] < ' ') {
            return false;
        }
    }
    return true;
}

static bool is_sent(const rp_view_stream *stream, const char *line, size_t length) {
    const uint64_t number = stream->line;
    if (number <= stream->skip || !is_valid(line, length)) {
        return false;
    }
    return stream->stride == 1 || number % stream->stride == 0 ||
           number + NEWEST_KEPT > stream->lines || rp_view_log_is_event(line, length);
}

/* Adds whole lines of a block until enough is there. Returns the bytes that were read. */
static size_t add_block(rp_view_stream *stream, const char *block, size_t bytes) {
    char head[HEAD_BYTES];
    size_t at = 0;
    while (at < bytes && stream->used < FILL_BYTES) {
        const char *line = block + at;
        const char *end = memchr(line, '\n', bytes - at);
        if (!end) {
            break;
        }
        const size_t length = (size_t)(end - line);
        stream->line++;
        if (is_sent(stream, line, length)) {
            (void)snprintf(head, sizeof head, "id: %" PRIu64 "\n", stream->line);
            add_event(stream, head, line, length);
        }
        at += length + 1;
    }
    return at;
}

static void add_lines(rp_view_stream *stream) {
    static char block[BLOCK_BYTES];
    const rp_view_log *log = &stream->feed->run.log;
    char path[4096];
    struct stat facts;
    if (stream->offset >= log->offset ||
        snprintf(path, sizeof path, "%s/log.jsonl", stream->feed->run.folder) >= (int)sizeof path) {
        return;
    }
    const int fd = rp_tail_open(path);
    const bool same = fd >= 0 && fstat(fd, &facts) == 0 && facts.st_ino == log->inode;
    for (uint32_t i = 0; same && i < BLOCKS_MAX && stream->used < FILL_BYTES; i++) {
        const uint64_t left = log->offset - stream->offset;
        const size_t most = left < sizeof block ? (size_t)left : sizeof block;
        const ssize_t got = most > 0 ? pread(fd, block, most, (off_t)stream->offset) : 0;
        if (got <= 0) {
            break;
        }
        const size_t used = add_block(stream, block, (size_t)got);
        stream->offset += used > 0 ? used : (size_t)got; /* a line that is too long */
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    if (stream->used == 0 && stream->offset < log->offset && same) {
        memcpy(stream->buffer, ":\n\n", 3); /* much was skipped, and there is more */
        stream->used = 3;
    }
}

static void fill_buffer(rp_view_stream *stream, int64_t now_ns) {
    rp_view_feed *feed = stream->feed;
    stream->used = stream->taken = 0;
    if (!stream->greeted || stream->generation != feed->run.log.generation) {
        add_hello(stream);
    }
    if (stream->version != feed->version && feed->state) {
        add_event(stream, "event: state\n", feed->state, feed->state_bytes);
    }
    stream->version = feed->version;
    add_lines(stream);
    if (stream->used == 0 && is_quiet(stream, now_ns)) {
        memcpy(stream->buffer, ":\n\n", 3);
        stream->used = 3;
    }
}

size_t rp_view_stream_take(rp_view_stream *stream, int64_t now_ns, char *to, size_t most) {
    if (stream->taken == stream->used) {
        fill_buffer(stream, now_ns);
    }
    const size_t left = stream->used - stream->taken;
    const size_t bytes = left < most ? left : most;
    memcpy(to, stream->buffer + stream->taken, bytes);
    stream->taken += bytes;
    stream->sent_ns = bytes > 0 ? now_ns : stream->sent_ns;
    return bytes;
}
