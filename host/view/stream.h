/* A reader of a run's events: server-sent events, made when the reader can take more.
 * Source: WHATWG HTML, "Server-sent events".
 *
 * Each reader has its own place in log.jsonl, so a slow one costs no memory. Events:
 *   hello   {"generation":"..","lines":N}; with another generation the log was rewritten, and the
 *           lines before are void
 *   state   state of the run; a slow reader misses states
 *   (none)  a line of the log; its id is the number of the line, from 1 */
#ifndef RP_VIEW_STREAM_H
#define RP_VIEW_STREAM_H

#include "view/feeds.h"

typedef struct {
    rp_view_feed *feed;
    uint64_t offset, line; /* of the log: what was read */
    uint64_t skip;         /* lines up to this one are known to the reader */
    uint64_t stride;       /* of older steps only those that it divides are sent */
    uint64_t lines;        /* of the log, when `stride` was chosen */
    uint32_t generation;
    bool greeted;
    uint32_t version; /* of the state that was sent */
    int64_t sent_ns;
    char *buffer; /* what is to be sent next */
    size_t used, taken, room;
} rp_view_stream;

/* `last_id`: the last line that the reader has; 0: none. errors MEMORY */
rp_err rp_view_stream_open(rp_view_feed *feed, uint64_t last_id, int64_t now_ns,
                           rp_view_stream **out) RP_MUST_CHECK;
void rp_view_stream_close(rp_view_stream *stream);
/* Is there anything to send? */
bool rp_view_stream_has_news(const rp_view_stream *stream, int64_t now_ns);
/* Writes at most `most` bytes. Returns their number; 0: nothing is new, or memory is short. */
size_t rp_view_stream_take(rp_view_stream *stream, int64_t now_ns, char *to, size_t most);

#endif
