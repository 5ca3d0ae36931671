/* Progress of training for the user. On a terminal: a bar and a picture of the ring, drawn at most
 * ten times a second. Otherwise: a line every two seconds and at the end of an epoch.
 *
 *   epoch 1/5  ━━━━━━━━━━──────────────  42%  step 985/2345  loss 0.4312  4901 samples/s  0:31 left
 *   ring  [0 ████▌ 92%]→[1 ███▉  79%]→[2 ███   61%]→[3 ██▏   44%]
 *
 * On a narrow terminal parts are omitted in this order: bar, samples/s, epoch, loss, time left. */
#ifndef RP_RECORD_SINK_PROGRESS_H
#define RP_RECORD_SINK_PROGRESS_H

#include "record/sink.h"

typedef enum {
    RP_PROGRESS_AUTO, /* LIVE on a terminal (and TERM is not "dumb"), else PLAIN */
    RP_PROGRESS_LIVE,
    RP_PROGRESS_PLAIN
} rp_progress_mode;

/* Opens the sink on run->progress; if that is NULL *sink stays NULL. Several may be open; each
 * clears its own lines before a log line is printed (rp_log_hook). NO_COLOR and the locale (UTF-8
 * or not) are respected; the width is queried at each drawing.
 *
 * Steps and parts may be reported at any rate. The time left is estimated from the steps of the
 * last seconds, without one or two that took several times as long, because outages do not predict
 * later steps. A phase is shown in the place of the bar until the next step. A part is a bar with
 * the time left or, if its total is 0, a spinner with the time since it began. Without a terminal a
 * part has a line every ten seconds. Evaluations and events are lines that stay on the screen. */
rp_err rp_progress_open(rp_arena *arena, const rp_sink_run *run, rp_progress_mode mode,
                        void **sink) RP_MUST_CHECK;

#endif
