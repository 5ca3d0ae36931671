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

#include <stdio.h>

#include "base/arena.h"
#include "base/clock.h"

typedef struct rp_progress rp_progress;

/* AUTO: LIVE on a terminal (and TERM is not "dumb"), else PLAIN. NONE prints nothing at all. */
typedef enum {
    RP_PROGRESS_AUTO,
    RP_PROGRESS_LIVE,
    RP_PROGRESS_PLAIN,
    RP_PROGRESS_NONE
} rp_progress_mode;

typedef struct {
    FILE *file; /* borrowed until close */
    rp_progress_mode mode;
    const rp_clock *clock; /* borrowed; NULL: the real one */
    uint64_t step_first;   /* done by an earlier run */
    uint64_t step_total;
    uint32_t epochs, stages;
    bool without_losses; /* of a simulation, which has none */
} rp_progress_options;

typedef struct {
    uint64_t step;  /* done so far */
    uint32_t epoch; /* from 0 */
    double loss;
    double samples_per_s;
    const double *busy; /* share 0..1 of each stage, or NULL when not known */
} rp_progress_state;

/* Several may be open; each clears its own lines before a log line is printed (rp_log_hook).
 * NO_COLOR and the locale (UTF-8 or not) are honoured; the width is asked for at each drawing. */
rp_err rp_progress_open(rp_arena *arena, const rp_progress_options *options,
                        rp_progress **out) RP_MUST_CHECK;

/* Call it as often as you like. The time left comes from the steps of the last seconds, but for one
 * or two that took several times as long: an outage says nothing of those to come. */
void rp_progress_update(rp_progress *progress, const rp_progress_state *state);

/* What happens before the first step or between steps: on a terminal it stands where the bar will
 * be until the next update. */
void rp_progress_phase(rp_progress *progress, const char *text);

/* How far that is: a bar with the time left, or where `total` is 0 a sign of life and the time
 * since it began. Where nothing can be drawn, a line every ten seconds. Call it as often as you
 * like. */
void rp_progress_part(rp_progress *progress, const char *text, uint64_t done, uint64_t total,
                      const char *unit);

/* A line that stays: the result of an evaluation, an event. */
void rp_progress_line(rp_progress *progress, const char *text);

/* Takes the picture away (plain: prints the last state if it was not printed). */
void rp_progress_close(rp_progress **progress); /* accepts NULL inside */

#endif
