/* Boards that answer TRIALs by a script. */
#ifndef RP_TESTS_MEASURE_FAKES_H
#define RP_TESTS_MEASURE_FAKES_H

#include "measured.h"

typedef struct {
    bool is_mute;       /* it does not answer */
    double rate;        /* bytes a second that its wire carries; 0: no message comes through */
    double latency_s;   /* of one way */
    double both_slower; /* by which factor, when both directions are in use */
    char refuses[40];   /* why it does not listen; "": it does */
} fake_board;

static struct {
    fake_board board[FAR_MAX];
    char trail[512]; /* TRIALs in order: board and what it has to do */
} fakes;

static inline void note_trial(uint32_t k, const char *what) {
    const size_t used = strlen(fakes.trail);
    (void)snprintf(fakes.trail + used, sizeof fakes.trail - used, "%s%u %s", used ? ", " : "", k,
                   what);
}

static inline void take_trial(uint32_t k, const rp_Frame *order) {
    const rp_Trial *trial = &order->body.trial;
    const fake_board *own = &fakes.board[k];
    rp_TrialDone done = {.outcome = RP_TRIAL_MEASURED};
    if (rp_frame_kind(order) != RP_KIND_TRIAL) {
        return;
    }
    note_trial(k, trial->endpoint[0]        ? "dials"
                  : trial->public_key[0]    ? "listens"
                  : trial->row              ? "both"
                  : trial->bytes_count == 0 ? "ends"
                                            : "measures");
    if (own->is_mute || (!trial->public_key[0] && trial->bytes_count == 0)) {
        return;
    }
    if (!trial->endpoint[0] && trial->public_key[0]) {
        done.outcome = own->refuses[0] ? RP_TRIAL_FAILED : RP_TRIAL_LISTENS;
        done.port = 7;
        (void)snprintf(done.text, sizeof done.text, "%s", own->refuses);
    }
    for (uint32_t i = 0; i < trial->bytes_count && own->rate > 0; i++) {
        const double alone_s = trial->bytes[i] / own->rate;
        done.seconds[done.seconds_count++] =
            trial->row ? own->both_slower * alone_s : alone_s + 2 * own->latency_s;
        done.spread[done.spread_count++] = 0.01;
    }
    rp_measure_take_trial(measure, k, &done);
}

static inline void open_fakes(void) {
    memset(&fakes, 0, sizeof fakes);
    for (uint32_t k = 0; k < ring.count; k++) {
        fakes.board[k] = (fake_board){.rate = 1e6, .latency_s = 1e-3, .both_slower = 1};
    }
    far_takes = take_trial;
    connect_ring();
}

#endif
