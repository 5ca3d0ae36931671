/* What a person sees while the ring trains: on a terminal a bar and a picture of the ring, drawn at
 * most ten times a second; elsewhere a line every two seconds and at the end of an epoch.
 *
 *   epoch 1/5  ━━━━━━━━━━──────────────  42%  step 985/2345  loss 0.4312  4901 samples/s  0:31 left
 *   ring  [0 ████▌ 92%]→[1 ███▉  79%]→[2 ███   61%]→[3 ██▏   44%]
 *
 * What does not fit goes, the time left last: first the bar, then samples/s, the epoch, the loss.
 */
#ifndef RP_RECORD_SINK_PROGRESS_H
#define RP_RECORD_SINK_PROGRESS_H

#include "record/sink.h"

typedef enum {
    RP_PROGRESS_AUTO, /* LIVE on a terminal (and TERM is not "dumb"), else PLAIN */
    RP_PROGRESS_LIVE,
    RP_PROGRESS_PLAIN
} rp_progress_mode;

/* Opens the sink on run->progress; *sink stays NULL where that is NULL. Several may be open; each
 * clears its own lines before a log line is printed (rp_log_hook). NO_COLOR and the locale (UTF-8
 * or not) are honoured; the width is asked for at each drawing.
 *
 * Steps and parts may come as often as they like. The time left comes from the steps of the last
 * seconds, but for one or two that took several times as long: an outage says nothing of those to
 * come. A phase stands where the bar will be until the next step; a part is a bar with the time
 * left, or where its total is 0 a sign of life and the time since it began. Where nothing can be
 * drawn a part has a line every ten seconds. Evaluations and events are lines that stay. */
rp_err rp_progress_open(rp_arena *arena, const rp_sink_run *run, rp_progress_mode mode,
                        void **sink) RP_MUST_CHECK;

#endif
