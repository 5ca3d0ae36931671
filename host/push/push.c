#include "push/push.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "ask/find_cause.h"
#include "base/input.h"
#include "greet/greet.h"
#include "update/bundle.h"
#include "update/system.h"

/* Limit of processes of the agent during the transfer of a bundle. */
enum { PROCESSES_MAX = 5 };

/* Timeouts */
static const int64_t MEET_NS = 3 * RP_NS_PER_S;  /* first greeting, before a search for the cause */
static const int64_t CAUSE_NS = 2 * RP_NS_PER_S; /* answer of the board about its holder */
static const int64_t HELLO_NS = 8 * RP_NS_PER_S; /* greeting of a board that is reachable */
static const int64_t ANSWER_NS = 30 * RP_NS_PER_S;   /* an answer */
static const int64_t INSTALL_NS = 180 * RP_NS_PER_S; /* verifying and writing a bundle */
static const int64_t RETURN_NS = 120 * RP_NS_PER_S;  /* restart of a board */
static const int64_t ASK_NS = 2 * RP_NS_PER_S;       /* interval of questions */

typedef struct {
    const rp_push_options *options;
    rp_arena arena;
    rp_greet *greet;
    FILE *file;
    uint64_t bytes, id;
    uint32_t restarts;    /* restarts of the agent that have been handled */
    rp_push_action asked; /* the last question */
    bool asks;            /* a question was sent on this link */
    bool answered;        /* the last question was answered */
    bool restarted;       /* the agent restarted during the transfer of a bundle */
    rp_Pushed said;
} work;

/* ---- rounds ---------------------------------------------------------------------------------- */

static rp_err send_question(work *w, rp_push_action action) {
    rp_Frame frame = {.which_body = RP_KIND_PUSH,
                      .body.push = {.action = (uint32_t)action, .bytes = w->bytes, .id = w->id}};
    w->asked = action;
    w->asks = true;
    w->answered = w->restarted = false;
    return rp_greet_ask(w->greet, 0, &frame);
}

/* Processes messages. A restarted agent has lost earlier messages, so the question is sent again; a
 * bundle is continued by hand_over_bundle(). */
static rp_err run_round(work *w) {
    rp_err err;
    RP_TRY(rp_greet_round(w->greet));
    const uint32_t restarts = rp_greet_look(w->greet, 0).restarts;
    const rp_Frame *answer = rp_greet_take_answer(w->greet, 0);
    if (answer) {
        w->said = answer->body.pushed;
        w->answered = true;
    }
    const bool is_lost = restarts != w->restarts && w->asks && !w->answered;
    w->restarts = restarts;
    w->restarted = w->restarted || (is_lost && w->asked == RP_PUSH_BUNDLE);
    RP_TRY(is_lost && !w->restarted ? send_question(w, w->asked) : RP_OK);
fail:
    return err;
}

static int64_t now_ns(const work *w) {
    return rp_clock_now_ns(w->options->clock);
}

/* ---- greeting -------------------------------------------------------------------------------- */

static rp_err open_links(work *w) {
    const rp_push_options *options = w->options;
    const rp_greet_options greet = {.board = options->board,
                                    .count = 1,
                                    .listen = options->listen,
                                    .keys = options->keys,
                                    .clock = options->clock,
                                    .link = "push",
                                    .who = "push",
                                    .stopped = options->stopped,
                                    .context = options->context,
                                    .features = RP_WIRE_FEATURE_PUSH,
                                    .answer = RP_KIND_PUSHED};
    return rp_greet_open(&w->arena, &greet, &w->greet);
}

/* Waits for a greeting over a new link; *there false: timeout. */
static rp_err await_greeting(work *w, int64_t wait_ns, bool *there) {
    const char *name = w->options->board->name;
    rp_err err;
    w->asks = false;
    RP_TRY(w->greet ? rp_greet_again(w->greet, 0) : open_links(w));
    RP_TRY(rp_greet_wait(w->greet, wait_ns, there));
    w->restarts = rp_greet_look(w->greet, 0).restarts; /* no question has been sent yet */
    switch (rp_greet_look(w->greet, 0).state) {
    case RP_GREET_REFUSED:
        return rp_fail(
            RP_ERR_REFUSED,
            "%s: the handshake was refused: the board does not trust this host's key, or "
            "its own key differs from the roster's",
            name);
    case RP_GREET_BUSY:
        return rp_fail(RP_ERR_FAULT, "%s: has a run; wait for its end", name);
    case RP_GREET_OLD:
        return rp_fail(RP_ERR_FAULT,
                       "%s: its software is too old for `push`; install a newer one by hand", name);
    default:
        break;
    }
fail:
    return err;
}

static rp_err need_board(work *w, int64_t wait_ns) {
    const rp_push_options *options = w->options;
    const rp_ask_options ask = {.board = options->board,
                                .listen = options->listen,
                                .keys = options->keys,
                                .clock = options->clock,
                                .stopped = options->stopped,
                                .context = options->context};
    rp_cause cause;
    bool there;
    rp_err err;
    RP_TRY(await_greeting(w, wait_ns, &there));
    if (there) {
        return RP_OK;
    }
    rp_ask_find_cause(&ask, CAUSE_NS, &cause);
    if (cause.err == RP_OK) { /* the board is slow, or has just become free */
        RP_TRY(await_greeting(w, HELLO_NS, &there));
    }
    err = there ? RP_OK
                : rp_fail(cause.err == RP_OK ? RP_ERR_FAULT : cause.err, "%s: %s",
                          options->board->name, cause.text);
fail:
    return err;
}

/* ---- questions ------------------------------------------------------------------------------- */

/* Waits for an answer; returns OK after a timeout also. */
static rp_err listen_for(work *w, int64_t wait_ns) {
    const int64_t until_ns = now_ns(w) + wait_ns;
    rp_err err = RP_OK;
    while (!w->answered && !w->restarted && now_ns(w) < until_ns) {
        RP_TRY(run_round(w));
    }
fail:
    return err;
}

/* Waits for an answer. AGAIN: the agent has restarted, and knows nothing of the bundle. */
static rp_err await_answer(work *w, int64_t wait_ns) {
    const char *name = w->options->board->name;
    rp_err err;
    RP_TRY(listen_for(w, wait_ns));
    if (w->restarted) {
        return RP_ERR_AGAIN;
    }
    if (!w->answered) {
        return rp_fail(RP_ERR_FAULT, "%s: has stopped answering", name);
    }
    if (w->said.outcome == RP_PUSHED_REFUSED) {
        return rp_fail(RP_ERR_REFUSED, "%s refuses: %s", name, w->said.text);
    }
fail:
    return err;
}

/* ---- a bundle -------------------------------------------------------------------------------- */

static rp_err open_bundle(work *w) {
    uint8_t piece[RP_PUSH_PIECE_MAX];
    const char *why;
    w->file = rp_input_fopen(w->options->bundle, &why);
    if (!w->file) {
        return rp_fail(RP_ERR_IO, "%s: %s", w->options->bundle, why);
    }
    XXH3_state_t *state = XXH3_createState();
    if (!state) {
        return rp_fail(RP_ERR_MEMORY, "%s: no memory for its hash", w->options->bundle);
    }
    (void)XXH3_64bits_reset(state);
    for (size_t got; (got = fread(piece, 1, sizeof piece, w->file)) > 0; w->bytes += got) {
        (void)XXH3_64bits_update(state, piece, got);
    }
    w->id = XXH3_64bits_digest(state);
    (void)XXH3_freeState(state);
    return ferror(w->file)
               ? rp_fail(RP_ERR_IO, "%s: cannot be read: %s", w->options->bundle, strerror(errno))
               : RP_OK;
}

/* Sends a piece of the bundle. AGAIN: the link is full. */
static rp_err send_piece(work *w, uint64_t at, size_t *sent) {
    uint8_t bytes[RP_PUSH_PIECE_MAX];
    rp_Frame frame = {.which_body = RP_KIND_PUSH_PIECE, .body.push_piece = {.first = at}};
    const size_t want = w->bytes - at < sizeof bytes ? (size_t)(w->bytes - at) : sizeof bytes;
    if (fseek(w->file, (long)at, SEEK_SET) != 0 || fread(bytes, 1, want, w->file) != want) {
        return rp_fail(RP_ERR_IO, "%s: cannot be read, or has changed during the transfer",
                       w->options->bundle);
    }
    const rp_part part = {.data = bytes, .bytes = want, .dtype = RP_DTYPE_BYTES};
    const rp_err err = rp_link_send(rp_greet_link(w->greet, 0), &frame, &part, 1, true, NULL, NULL);
    *sent = err == RP_OK ? want : 0;
    return err;
}

static void tell_progress(const work *w, rp_push_phase phase, uint64_t bytes, bool begins) {
    const rp_push_progress progress = {.board = w->options->board->name,
                                       .phase = phase,
                                       .bytes = bytes,
                                       .of = w->bytes,
                                       .release = w->said.trial_release,
                                       .begins = begins};
    w->options->progress(w->options->context, &progress);
}

/* Bytes that the rate limit allows since the start. */
static uint64_t allowed_bytes(const work *w, int64_t since_ns) {
    const double seconds = (double)(now_ns(w) - since_ns) / (double)RP_NS_PER_S;
    return w->options->bytes_per_s > 0 ? (uint64_t)(w->options->bytes_per_s * seconds)
                                       : UINT64_MAX / 2;
}

static rp_err send_bundle(work *w) {
    const rp_push_options *options = w->options;
    const uint64_t from = w->said.bytes <= w->bytes ? w->said.bytes : 0;
    const int64_t since_ns = now_ns(w);
    int64_t moved_ns = since_ns;
    rp_link_stats stats;
    rp_err err = RP_OK;
    w->answered = false;
    tell_progress(w, RP_PUSH_SENDS, from, true);
    for (uint64_t at = from; at < w->bytes && !w->answered && !w->restarted;) {
        size_t sent = 0;
        rp_link_stats_of(rp_greet_link(w->greet, 0), &stats);
        /* A few pieces in flight are enough, and keep the replay buffer small. */
        if (stats.unacked < 4 && at - from <= allowed_bytes(w, since_ns)) {
            err = send_piece(w, at, &sent);
            RP_TRY(err == RP_ERR_AGAIN ? RP_OK : err);
        }
        moved_ns = sent > 0 ? now_ns(w) : moved_ns;
        at += sent;
        if (sent > 0) {
            tell_progress(w, RP_PUSH_SENDS, at, false);
        }
        if (stats.unacked > 0 && now_ns(w) - moved_ns > ANSWER_NS) {
            return rp_fail(RP_ERR_FAULT, "%s: has stopped accepting data", options->board->name);
        }
        RP_TRY(run_round(w));
    }
    if (!w->answered && !w->restarted) {
        tell_progress(w, RP_PUSH_CHECKS, w->bytes, true);
    }
    RP_TRY(await_answer(w, INSTALL_NS));
fail:
    return err;
}

/* Waits until the board, after a restart with the new software, reports the end of the trial. */
static rp_err watch_trial(work *w, uint64_t release) {
    const char *name = w->options->board->name;
    const int64_t until_ns = now_ns(w) + w->options->wait_ns;
    rp_err err;
    RP_TRY(need_board(w, RETURN_NS));
    for (int64_t asked_ns = INT64_MIN; now_ns(w) < until_ns;) {
        if (asked_ns == INT64_MIN || now_ns(w) - asked_ns >= ASK_NS) {
            RP_TRY(send_question(w, RP_PUSH_STATE));
            RP_TRY(await_answer(w, ANSWER_NS));
            asked_ns = now_ns(w);
        }
        if (w->said.release == release) {
            return RP_OK;
        }
        if (w->said.failed == release && w->said.trial_release != release) {
            return rp_fail(RP_ERR_FAULT,
                           "%s: release %" PRIu64 " failed its trial; the board has returned to %s",
                           name, release,
                           w->said.release ? "the previous release" : "the system's own software");
        }
        RP_TRY(run_round(w));
    }
    err = rp_fail(RP_ERR_FAULT,
                  "%s: release %" PRIu64 " is still on trial after %" PRId64
                  " s; check it later with `ringpipe slots`",
                  name, release, w->options->wait_ns / RP_NS_PER_S);
fail:
    return err;
}

/* ---- a whole system -------------------------------------------------------------------------- */

static const rp_SystemSlot *system_slot(const work *w, uint32_t slot) {
    static const rp_SystemSlot none;
    return slot >= 1 && slot <= w->said.system_count ? &w->said.system[slot - 1] : &none;
}

/* Judges a board's report about its systems; `former`: the slot that ran before. *over: the trial
 * has ended, with the result as error code. */
static rp_err judge_system(const work *w, uint32_t former, bool *over) {
    const char *name = w->options->board->name;
    const rp_SystemSlot *own = system_slot(w, w->said.system_slot);
    const rp_SystemSlot *other = system_slot(w, 3 - former);
    *over = true;
    if (w->said.system_slot != former && own->state == RP_SYSTEM_GOOD) {
        return RP_OK;
    }
    if (w->said.system_slot == former && !w->said.system_writes) {
        if (w->said.system_text[0]) {
            return rp_fail(RP_ERR_FAULT, "%s: the system was not installed: %s", name,
                           w->said.system_text);
        }
        if (other->state == RP_SYSTEM_FAILED) {
            return rp_fail(RP_ERR_FAULT,
                           "%s: the system of release %" PRIu64
                           " failed its trial; the board has returned to the previous system",
                           name, other->release);
        }
    }
    *over = false;
    return RP_OK;
}

/* Waits while the board writes the system, reboots (several times if the system fails), and reports
 * the end of the trial. It does not answer meanwhile, so each question opens a new link. */
static rp_err watch_system(work *w, uint32_t former) {
    const char *name = w->options->board->name;
    const int64_t until_ns = now_ns(w) + w->options->wait_ns;
    bool over = false;
    rp_err err = RP_OK;
    while (!over && now_ns(w) < until_ns) {
        bool there;
        RP_TRY(await_greeting(w, HELLO_NS, &there));
        if (there) {
            RP_TRY(send_question(w, RP_PUSH_STATE));
            RP_TRY(listen_for(w, HELLO_NS));
            RP_TRY(w->answered ? judge_system(w, former, &over) : RP_OK);
        }
        for (const int64_t asked_ns = now_ns(w); !over && now_ns(w) - asked_ns < ASK_NS;) {
            RP_TRY(run_round(w));
        }
    }
    if (!over) {
        err = rp_fail(RP_ERR_FAULT,
                      "%s: has not reported the result of the new system within %" PRId64
                      " s; check it later with `ringpipe slots`",
                      name, w->options->wait_ns / RP_NS_PER_S);
    }
fail:
    return err;
}

/* Transfers the bundle; after a restart of the agent it continues. */
static rp_err hand_over_bundle(work *w) {
    rp_err err = RP_ERR_AGAIN;
    for (uint32_t i = 0; i < PROCESSES_MAX && err == RP_ERR_AGAIN; i++) {
        RP_TRY(send_question(w, RP_PUSH_BUNDLE));
        err = await_answer(w, INSTALL_NS);
        err = err == RP_OK && w->said.outcome == RP_PUSHED_GOES_ON ? send_bundle(w) : err;
    }
    err = err == RP_ERR_AGAIN ? rp_fail(RP_ERR_FAULT,
                                        "%s: its agent restarts repeatedly; see "
                                        "`ringpipe boards log`",
                                        w->options->board->name)
                              : err;
fail:
    return err;
}

static rp_err push_bundle(work *w) {
    rp_err err;
    RP_TRY(hand_over_bundle(w));
    const bool is_system = w->said.outcome == RP_PUSHED_WRITES;
    tell_progress(w, is_system ? RP_PUSH_INSTALLS : RP_PUSH_TRIES, w->bytes, true);
    if (is_system) {
        RP_TRY(w->options->wait_ns > 0 ? watch_system(w, w->said.system_slot) : RP_OK);
    } else if (w->options->wait_ns > 0) {
        RP_TRY(watch_trial(w, w->said.trial_release));
    }
fail:
    return err;
}

rp_err rp_push_to(const rp_push_options *options, rp_Pushed *said) {
    work w = {.options = options};
    rp_err err;
    *said = (rp_Pushed){0};
    rp_arena_init(&w.arena, "push", 0);
    const bool is_bundle = options->action == RP_PUSH_BUNDLE;
    RP_TRY(is_bundle ? open_bundle(&w) : RP_OK);
    RP_TRY(need_board(&w, options->board->dials ? HELLO_NS : MEET_NS));
    if (is_bundle) {
        RP_TRY(push_bundle(&w));
    } else {
        RP_TRY(send_question(&w, options->action));
        RP_TRY(await_answer(&w, ANSWER_NS));
    }
fail:
    *said = w.said;
    rp_greet_close(&w.greet);
    if (w.file) {
        (void)fclose(w.file);
    }
    rp_arena_finish(&w.arena);
    return err;
}
