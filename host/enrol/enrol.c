/* Opens one link for each token, all at one address. */
#include "enrol/enrol.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "enrol/roster_edit.h"
#include "greet/greet.h"

static const int64_t NAP_NS = 100 * RP_NS_PER_MS;
static const int64_t LEAVE_NS = 3 * RP_NS_PER_S; /* timeout for the ack of the last answer */

typedef struct {
    rp_pending pending;
    rp_link *link;
    char used_by[RP_KEY_TEXT];
    bool enrolled;
} seat;

typedef struct {
    const rp_enrol_options *options;
    rp_links *links;
    seat *seat;
    uint32_t count;
} work;

/* ---- a board connects ------------------------------------------------------------------------ */

static rp_err refuse_board(seat *s, const char *why) {
    rp_Frame frame = {.which_body = RP_KIND_FAULT,
                      .body.fault = {.err = RP_ERR_REFUSED, .fault_class = RP_FAULT_SECURITY}};
    (void)snprintf(frame.body.fault.text, sizeof frame.body.fault.text, "%s", why);
    rp_log_warn("enrol: %s: %s", s->pending.name, why);
    const rp_err err = rp_link_send(s->link, &frame, NULL, 0, true, NULL, NULL);
    return err == RP_ERR_AGAIN ? RP_OK
                               : err; /* queue full of unread answers: the board asks again */
}

/* Writes "tcp://10.0.0.7:7000" from the board's source address and its reported port. false: the
 * address is unknown. */
static bool make_endpoint(const seat *s, uint32_t port, char *out, size_t bytes) {
    const char *from = rp_link_peers_of(s->link).served;
    const char *colon = strrchr(from, ':');
    if (!colon) {
        return false;
    }
    (void)snprintf(out, bytes, "tcp://%.*s:%u", (int)(colon - from), from, port);
    return rp_roster_is_address(out);
}

/* Checks the roster first, so that a refused board does not use up its token. Then writes the
 * board's key to the list of tokens before the roster, so that no different key can use the token.
 */
static rp_err take_board(const work *w, seat *s, const rp_Enrol *enrol, const char *key,
                         const char *endpoint) {
    const rp_enrol_options *options = w->options;
    rp_pending used = s->pending;
    const rp_roster_entry entry = {.name = s->pending.name,
                                   .endpoint = endpoint,
                                   .dials = enrol->port == 0,
                                   .public_text = key,
                                   .profile = strcmp(enrol->board, "auto") ? enrol->board : NULL,
                                   .group = options->group};
    rp_err err;
    used.used_by = key;
    RP_TRY(rp_roster_check_put(options->roster, &entry));
    RP_TRY(rp_pending_replace(options->keys_folder, used.name, &used, options->now_s()));
    memcpy(s->used_by, key, sizeof s->used_by);
    RP_TRY(rp_roster_put(options->roster, &entry));
fail:
    return err;
}

static rp_err send_answer(const work *w, seat *s) {
    rp_Frame frame = {.which_body = RP_KIND_ENROLLED};
    rp_Enrolled *said = &frame.body.enrolled;
    (void)snprintf(said->host, sizeof said->host, "%s", w->options->host);
    (void)snprintf(said->name, sizeof said->name, "%s", s->pending.name);
    const rp_err err = rp_link_send(s->link, &frame, NULL, 0, true, NULL, NULL);
    return err == RP_ERR_AGAIN ? RP_OK : err;
}

/* *why: reason to refuse the board; NULL: accepted. `key` (Z85) and `endpoint` are the values for
 * the roster. */
static rp_err check_board(const work *w, const seat *s, const rp_Enrol *enrol,
                          char key[RP_KEY_TEXT], char *endpoint, size_t bytes, const char **why) {
    uint8_t decoded[RP_KEY_BYTES];
    bool listed;
    const rp_err err = rp_pending_is_listed(w->options->keys_folder, &s->pending, &listed);
    *why = NULL;
    if (!listed) {
        *why = "the token was withdrawn; make a new one with `ringpipe boards enrol`";
    } else if (rp_key_parse(enrol->public_key, key) || rp_key_decode(key, decoded) != RP_OK) {
        *why = "the board sent an invalid public key";
    } else if (strcmp(key, w->options->keys->public_text) == 0) {
        *why = "the board has this host's own key; give it its own folder of keys (--keys)";
    } else if (s->used_by[0] && strcmp(key, s->used_by) != 0) {
        *why = "a different board has used this token; make a new one with `ringpipe boards enrol`";
    } else if (enrol->port > 0 && !make_endpoint(s, enrol->port, endpoint, bytes)) {
        *why = "the board's address is unknown, or its port is not from 1 to 65533";
    }
    return err;
}

static rp_err on_enrol(const work *w, seat *s, const rp_Enrol *enrol) {
    char endpoint[RP_PORT_ENDPOINT_BYTES] = "";
    char key[RP_KEY_TEXT];
    const char *why;
    rp_err err;
    const bool again = s->used_by[0] != '\0';
    RP_TRY(check_board(w, s, enrol, key, endpoint, sizeof endpoint, &why));
    if (why) {
        return refuse_board(s, why);
    }
    err = take_board(w, s, enrol, key, endpoint);
    if (err == RP_ERR_USAGE) { /* refused by the roster: wait for further boards */
        return refuse_board(s, rp_err_message());
    }
    RP_TRY(err);
    RP_TRY(send_answer(w, s));
    s->enrolled = true;
    w->options->told(w->options->context, &(rp_enrol_event){.name = s->pending.name,
                                                            .key = s->used_by,
                                                            .endpoint = endpoint,
                                                            .software = enrol->software,
                                                            .again = again});
fail:
    return err;
}

static rp_err step_seat(const work *w, seat *s) {
    rp_message *message;
    rp_err err;
    RP_TRY(rp_link_step(s->link));
    while ((err = rp_link_recv(s->link, &message)) == RP_OK) {
        const rp_Frame *frame = &message->frame;
        const bool asks = rp_frame_kind(frame) == RP_KIND_ENROL;
        err = asks ? on_enrol(w, s, &frame->body.enrol) : RP_OK;
        rp_link_release(s->link, &message);
        RP_TRY(err);
    }
    RP_TRY(err == RP_ERR_AGAIN ? RP_OK : err);
fail:
    return err;
}

/* ---- waiting --------------------------------------------------------------------------------- */

static bool are_all_enrolled(const work *w) {
    uint32_t i = 0;
    while (i < w->count && w->seat[i].enrolled) {
        i++;
    }
    return i == w->count;
}

static bool are_all_acked(const work *w) {
    for (uint32_t i = 0; i < w->count; i++) {
        rp_link_stats stats;
        if (!w->seat[i].link) {
            continue;
        }
        rp_link_stats_of(w->seat[i].link, &stats);
        if (stats.unacked > 0) {
            return false;
        }
    }
    return true;
}

/* Closes the links of tokens that have ended. */
static void end_tokens(work *w) {
    const int64_t now_s = w->options->now_s();
    for (uint32_t i = 0; i < w->count; i++) {
        seat *s = &w->seat[i];
        if (s->link && now_s >= s->pending.ends_s) {
            rp_log_warn("enrol: the token of %s has ended%s", s->pending.name,
                        s->enrolled ? "" : " without being used");
            rp_link_close(&s->link);
        }
    }
}

static rp_err run_round(work *w) {
    rp_link *link[RP_ENROL_BOARDS_MAX];
    uint32_t count = 0;
    rp_err err;
    end_tokens(w);
    for (uint32_t i = 0; i < w->count; i++) {
        if (w->seat[i].link) {
            RP_TRY(step_seat(w, &w->seat[i]));
            link[count++] = w->seat[i].link;
        }
    }
    if (count == 0) {
        return rp_fail(RP_ERR_TIMEOUT,
                       "enrol: all tokens have ended; make new ones with `ringpipe boards enrol`");
    }
    RP_TRY(rp_link_wait(link, count, NULL, 0, NAP_NS));
fail:
    return err;
}

static rp_err fail_missing(const work *w) {
    char who[512] = "";
    for (uint32_t i = 0; i < w->count; i++) {
        const size_t used = strlen(who);
        if (!w->seat[i].enrolled) {
            (void)snprintf(who + used, sizeof who - used, " %s", w->seat[i].pending.name);
        }
    }
    return rp_fail(
        RP_ERR_TIMEOUT,
        "enrol: these boards have not enrolled within %.0f s:%s; their tokens stay open: "
        "continue to wait with the same command and --open",
        (double)w->options->wait_ns / (double)RP_NS_PER_S, who);
}

static rp_err wait_for_all(work *w) {
    const rp_enrol_options *options = w->options;
    const int64_t until_ns = rp_clock_now_ns(options->clock) + options->wait_ns;
    rp_err err = RP_OK;
    while (!are_all_enrolled(w)) {
        if (options->stopped(options->context)) {
            return rp_fail(RP_ERR_INTERRUPTED, "enrol: stopped");
        }
        if (rp_clock_now_ns(options->clock) >= until_ns) {
            return fail_missing(w);
        }
        RP_TRY(run_round(w));
    }
    const int64_t leave_ns = rp_clock_now_ns(options->clock) + LEAVE_NS;
    while (!are_all_acked(w) && rp_clock_now_ns(options->clock) < leave_ns) {
        RP_TRY(run_round(w));
    }
fail:
    return err;
}

/* ---- seats ----------------------------------------------------------------------------------- */

static rp_err find_pending(const char *name, const rp_pending *list, uint32_t count, int64_t now_s,
                           rp_pending *out) {
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(list[i].name, name) == 0 && list[i].ends_s > now_s) {
            *out = list[i];
            return RP_OK;
        }
    }
    return rp_fail(RP_ERR_USAGE,
                   "enrol: '%s' has no open token; make one with `ringpipe boards enrol %s`", name,
                   name);
}

static rp_err open_seat(const work *w, seat *s) {
    if (s->pending.used_by) {
        memcpy(s->used_by, s->pending.used_by, sizeof s->used_by);
    }
    return rp_greet_open_link(w->links, "enrol", true, w->options->listen, s->pending.key,
                              &s->link);
}

rp_err rp_enrol_wait(const rp_enrol_options *options, const char *const *name, uint32_t count) {
    const rp_links_options links = {.clock = options->clock, .keys = options->keys};
    work w = {.options = options, .count = count};
    rp_pending *list;
    uint32_t listed;
    rp_arena arena;
    rp_err err;
    RP_ASSERT(count > 0 && count <= RP_ENROL_BOARDS_MAX);
    rp_arena_init(&arena, "enrol", 0);
    RP_TRY(rp_pending_read(&arena, options->keys_folder, &list, &listed));
    RP_TRY(RP_ARENA_NEW(&arena, count, &w.seat));
    RP_TRY(rp_links_open(&arena, &links, &w.links));
    for (uint32_t i = 0; i < count; i++) {
        RP_TRY(find_pending(name[i], list, listed, options->now_s(), &w.seat[i].pending));
        RP_TRY(open_seat(&w, &w.seat[i]));
    }
    err = wait_for_all(&w);
fail:
    if (w.links) {
        rp_links_close(&w.links);
    }
    rp_arena_finish(&arena);
    return err;
}
