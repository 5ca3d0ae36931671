/* Slow steps: finds which board waits for which, from the boards' WAITING messages, and which hops
 * are silent. Once a step takes several times as long as usual, this is logged and shown. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "train/train_own.h"

enum {
    TIMES = 8,
    CHAIN_MAX = 4 /* boards that are named */,
    LOOK_MAX = 64 /* boards that are considered */,
    WAITS_BYTES = 640
};

static const int64_t LEAST_NS = 5 * RP_NS_PER_S;
static const int64_t FIRST_NS = 30 * RP_NS_PER_S; /* while the usual duration is unknown */

/* ---- silent hops ----------------------------------------------------------------------------- */

static bool is_in(const rp_Waiting *list, uint32_t peer) {
    for (uint32_t i = 0; i < list->silent_count; i++) {
        if (list->silent[i].peer == peer) {
            return true;
        }
    }
    return false;
}

static rp_err say_silent(rp_train *train, uint32_t board, const rp_SilentHop *hop) {
    return rp_record_event(rp_train_record(train),
                           &(rp_run_event){.kind = RP_EVENT_HOP_SILENT,
                                           .step = train->position->step,
                                           .board = train->ring->board[board].name,
                                           .peer = train->ring->board[hop->peer].name,
                                           .seconds = (double)hop->silent_ns * 1e-9});
}

static rp_err say_heard(rp_train *train, uint32_t board, uint32_t peer) {
    return rp_record_event(rp_train_record(train),
                           &(rp_run_event){.kind = RP_EVENT_HOP_HEARD,
                                           .step = train->position->step,
                                           .board = train->ring->board[board].name,
                                           .peer = train->ring->board[peer].name});
}

static rp_err check_waiting(const rp_train *train, uint32_t board, const rp_Waiting *said) {
    bool sound = said->what < RP_WAITING_KINDS && said->peer < train->ring->count &&
                 said->for_ns >= 0 && said->longest_ns >= 0;
    for (uint32_t i = 0; i < said->silent_count; i++) {
        sound =
            sound && said->silent[i].peer < train->ring->count && said->silent[i].silent_ns >= 0;
    }
    return sound ? RP_OK
                 : rp_fail(RP_ERR_PEER, "board %s sent an invalid WAITING message",
                           train->ring->board[board].name);
}

rp_err rp_train_on_waiting(rp_train *train, uint32_t board, const rp_message *message) {
    rp_board_state *state = &train->ring->board[board];
    const rp_Waiting *said = &message->frame.body.waiting;
    const rp_Waiting before = state->train.waiting;
    rp_err err;
    RP_TRY(check_waiting(train, board, said));
    if (!rp_train_record(train)) {
        return RP_OK; /* not in a segment */
    }
    state->train.waiting = *said;
    state->train.waiting_ns = train->ring->now_ns;
    for (uint32_t i = 0; i < said->silent_count; i++) {
        RP_TRY(is_in(&before, said->silent[i].peer) ? RP_OK
                                                    : say_silent(train, board, &said->silent[i]));
    }
    for (uint32_t i = 0; i < before.silent_count; i++) {
        RP_TRY(is_in(said, before.silent[i].peer) ? RP_OK
                                                  : say_heard(train, board, before.silent[i].peer));
    }
fail:
    return err;
}

/* This end watches the path to a board's feed. */
static rp_err check_feed(rp_train *train, rp_board_state *state) {
    if (state->feed_is_silent == state->train.feed_silence_said) {
        return RP_OK;
    }
    state->train.feed_silence_said = state->feed_is_silent;
    return rp_record_event(
        rp_train_record(train),
        &(rp_run_event){.kind = state->feed_is_silent ? RP_EVENT_FEED_SILENT : RP_EVENT_FEED_HEARD,
                        .step = train->position->step,
                        .board = state->name});
}

/* ---- who waits for whom ---------------------------------------------------------------------- */

static bool waits_for_board(const rp_Waiting *said) {
    return said->what == RP_WAITING_INPUT || said->what == RP_WAITING_ROOM ||
           said->what == RP_WAITING_ACKS;
}

/* Lists boards from `first`, each of which waits for the next. The last one waits for something
 * else, or for a board in the list. */
static uint32_t follow_chain(const rp_train *train, uint32_t first, uint32_t chain[LOOK_MAX]) {
    uint32_t count = 0;
    uint32_t at = first;
    for (;;) {
        for (uint32_t i = 0; i < count; i++) {
            if (chain[i] == at) {
                return count;
            }
        }
        chain[count++] = at;
        if (count == LOOK_MAX || !waits_for_board(&train->ring->board[at].train.waiting)) {
            return count;
        }
        at = train->ring->board[at].train.waiting.peer;
    }
}

static uint32_t find_longest(const rp_train *train, uint32_t chain[LOOK_MAX]) {
    uint32_t best = 0;
    uint32_t most = 0;
    for (uint32_t k = 0; k < train->ring->count && k < LOOK_MAX; k++) {
        const uint32_t count = follow_chain(train, k, chain);
        best = count > most ? k : best;
        most = count > most ? count : most;
    }
    return follow_chain(train, best, chain);
}

static void add(char waits[WAITS_BYTES], const char *separator, const rp_run_event *clause) {
    const size_t used = strlen(waits);
    (void)snprintf(waits + used, WAITS_BYTES - used, "%s", used > 0 ? separator : "");
    const size_t begin = strlen(waits);
    rp_words_write(clause, waits + begin, WAITS_BYTES - begin);
}

static rp_run_event describe_wait(const rp_train *train, uint32_t board) {
    static const rp_event_kind kinds[RP_WAITING_KINDS] = {
        [RP_WAITING_INPUT] = RP_EVENT_WAITS_INPUT,
        [RP_WAITING_ROOM] = RP_EVENT_WAITS_ROOM,
        [RP_WAITING_ACKS] = RP_EVENT_WAITS_ACKS,
        [RP_WAITING_DEVICE] = RP_EVENT_WAITS_DEVICE,
        [RP_WAITING_FEED] = RP_EVENT_WAITS_FEED,
        [RP_WAITING_DECISION] = RP_EVENT_WAITS_DECISION,
        [RP_WAITING_REPORTS] = RP_EVENT_WAITS_REPORTS,
    };
    const rp_board_state *state = &train->ring->board[board];
    const rp_Waiting *said = &state->train.waiting;
    rp_run_event event = {.kind = kinds[said->what], .board = state->name};
    if (event.kind == RP_EVENT_NONE) {
        event.kind = RP_EVENT_WAITS_UNKNOWN;
        event.seconds = (double)rp_ring_silence_ns(train->ring, board) * 1e-9;
    }
    if (waits_for_board(said)) {
        event.peer = train->ring->board[said->peer].name;
    }
    if (said->what == RP_WAITING_INPUT || said->what == RP_WAITING_DEVICE) {
        event.board_step = said->step + 1;
        event.first_sample = said->first;
        event.last_sample = said->first + (said->count > 0 ? said->count - 1 : 0);
    }
    return event;
}

/* Returns the board that the others wait for. */
static uint32_t describe_ring(const rp_train *train, char waits[WAITS_BYTES]) {
    uint32_t chain[LOOK_MAX];
    const uint32_t count = find_longest(train, chain);
    const uint32_t from = count > CHAIN_MAX ? count - CHAIN_MAX : 0; /* the cause is the last one */
    for (uint32_t i = from; i < count; i++) {
        const rp_run_event clause = describe_wait(train, chain[i]);
        add(waits, ", ", &clause);
    }
    for (uint32_t k = 0; k < train->ring->count; k++) {
        const rp_Waiting *said = &train->ring->board[k].train.waiting;
        for (uint32_t i = 0; i < said->silent_count; i++) {
            add(waits, "; ",
                &(rp_run_event){.kind = RP_EVENT_WAITS_UNANSWERED,
                                .board = train->ring->board[k].name,
                                .peer = train->ring->board[said->silent[i].peer].name});
        }
    }
    return chain[count - 1];
}

/* ---- progress -------------------------------------------------------------------------------- */

static rp_progress_watch *watch_of(rp_train *train) {
    RP_ASSERT(train->watched < sizeof train->progress / sizeof *train->progress);
    return &train->progress[train->watched];
}

/* Does not count the time in which this host itself was stopped. */
static int64_t since_step_ns(const rp_train *train, const rp_progress_watch *watch) {
    const int64_t awake_ns = train->ring->awake_ns;
    return train->ring->now_ns - (watch->step_ns > awake_ns ? watch->step_ns : awake_ns);
}

static int64_t patience_ns(const rp_progress_watch *watch) {
    const int64_t usual_ns = TIMES * watch->usual_ns;
    return watch->usual_ns == 0 ? FIRST_NS : usual_ns > LEAST_NS ? usual_ns : LEAST_NS;
}

void rp_waiting_begin(rp_train *train) {
    rp_progress_watch *watch = watch_of(train);
    watch->step_ns = train->ring->now_ns;
    watch->say_ns = 0;
    for (uint32_t k = 0; k < train->ring->count; k++) {
        train->ring->board[k].train.waiting = (rp_Waiting){0};
        train->ring->board[k].train.feed_silence_said = false;
    }
    rp_ring_forget_feed_silence(train->ring);
}

rp_err rp_waiting_note_step(rp_train *train) {
    rp_progress_watch *watch = watch_of(train);
    const int64_t took_ns = since_step_ns(train, watch);
    const bool was_said = watch->say_ns > 0;
    watch->step_ns = train->ring->now_ns;
    watch->say_ns = 0;
    if (!was_said && took_ns < patience_ns(watch)) {
        watch->usual_ns = watch->usual_ns ? (7 * watch->usual_ns + took_ns) / 8 : took_ns;
    }
    const rp_run_event event = {.kind = RP_EVENT_STEP_CAME,
                                .step = train->position->step,
                                .seconds = (double)took_ns * 1e-9};
    return was_said ? rp_record_event(rp_train_record(train), &event) : RP_OK;
}

static rp_err say_waiting(rp_train *train, int64_t for_ns) {
    const rp_progress_watch *watch = watch_of(train);
    const int64_t usual_ns = watch->usual_ns;
    char waits[WAITS_BYTES] = "";
    const uint32_t cause = describe_ring(train, waits);
    return rp_record_event(
        rp_train_record(train),
        &(rp_run_event){.kind = RP_EVENT_STEP_LATE,
                        .step = train->position->step,
                        .seconds = (double)for_ns * 1e-9,
                        .usual_s = usual_ns > 0 ? (double)usual_ns * 1e-9 : (double)NAN,
                        .board = train->ring->board[cause].name,
                        .waits = waits});
}

int64_t rp_train_usual_step_ns(const rp_train *train) {
    return train->progress[0].usual_ns;
}

rp_err rp_train_check_progress(rp_train *train) {
    rp_progress_watch *watch = watch_of(train);
    rp_err err = RP_OK;
    if (!rp_train_record(train)) {
        return RP_OK;
    }
    for (uint32_t k = 0; k < train->ring->count; k++) {
        RP_TRY(check_feed(train, &train->ring->board[k]));
    }
    const int64_t for_ns = since_step_ns(train, watch);
    if (for_ns < patience_ns(watch)) {
        return RP_OK;
    }
    if (watch->say_ns == 0 || for_ns >= watch->say_ns) {
        watch->say_ns = 2 * for_ns;
        RP_TRY(say_waiting(train, for_ns));
    }
    rp_record_part(rp_train_record(train), &(rp_sink_part){.text = "waiting", .unit = ""});
fail:
    return err;
}
