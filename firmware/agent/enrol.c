#include "agent/enrol.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/hosts.h"
#include "base/log.h"
#include "transport/reach.h"
#include "transport/token.h"
#include "transport/token_text.h"

static const int64_t NAP_NS = 200 * RP_NS_PER_MS;
static const int64_t REPORT_NS = 5 * RP_NS_PER_S;  /* interval of reports about a silent host */
static const int64_t OFTEN_NS = 600 * RP_NS_PER_S; /* after this long the log gets one a minute */
static const int64_t SELDOM_NS = 60 * RP_NS_PER_S;
enum { TRY_MS = 1000, REASON_BYTES = 256 };

typedef struct {
    const rp_agent_enrolment *enrolment;
    rp_token token;
    const char *endpoint;
    rp_keypair own;
    rp_links *links;
    rp_link *link;
    uint64_t session; /* of the host that was asked; 0: none has been heard */
    int64_t began_ns;
    int64_t reported_ns;       /* time of the last report */
    int64_t logged_ns;         /* time of the last log line */
    char reason[REASON_BYTES]; /* why the last attempt failed */
    bool done;
} work;

/* ---- preparing ------------------------------------------------------------------------------- */

static rp_err read_token(rp_arena *arena, const char *option, work *w) {
    const char *text;
    char *word;
    char *endpoint;
    rp_err err;
    RP_TRY(rp_token_text(arena, "--enrol", option, &text));
    const char *at = strchr(text, '@');
    const char *address = at ? at + 1 : "";
    address += strncmp(address, "tcp://", 6) == 0 ? 6 : 0;
    if (!at || !rp_hosts_is_address(address)) { /* a token is a secret: it is not shown */
        return rp_fail(RP_ERR_USAGE, "--enrol: expected TOKEN@ADDRESS:PORT (port 1 to 65533), or "
                                     "@FILE with a file that contains it");
    }
    if (rp_hosts_is_placeholder(address)) {
        return rp_fail(RP_ERR_USAGE,
                       "--enrol: '%s' is the manual's example; replace it by the address at which "
                       "this board reaches the host",
                       address);
    }
    RP_TRY(rp_arena_text(arena, text, (size_t)(at - text), &word));
    const char *wrong = rp_token_parse(word, &w->token);
    explicit_bzero(word, (size_t)(at - text));
    if (wrong) {
        return rp_fail(RP_ERR_USAGE, "--enrol: the token %s", wrong);
    }
    RP_TRY(rp_arena_printf(arena, &endpoint, "tcp://%s", address));
    w->endpoint = endpoint;
fail:
    return err;
}

static rp_err need_keys(rp_arena *arena, const char *folder, rp_keypair *own) {
    char *path;
    rp_err err;
    RP_TRY(rp_arena_printf(arena, &path, "%s/public.key", folder));
    if (access(path, F_OK) != 0 && (errno == ENOENT || errno == ENOTDIR)) {
        RP_TRY(rp_keys_new(folder));
    }
    RP_TRY(rp_keys_read(folder, own));
fail:
    return err;
}

static const rp_trusted *find_key(const rp_trusted *list, uint32_t count, const char *key) {
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(list[i].key, key) == 0) {
            return &list[i];
        }
    }
    return NULL;
}

static bool has_name(const rp_trusted *list, uint32_t count, const char *name) {
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(list[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

/* ---- talking --------------------------------------------------------------------------------- */

static rp_err send_enrol(work *w) {
    rp_Frame frame = {.which_body = RP_KIND_ENROL, .body.enrol = {.port = w->enrolment->port}};
    rp_Enrol *enrol = &frame.body.enrol;
    (void)snprintf(enrol->public_key, sizeof enrol->public_key, "%s", w->own.public_text);
    (void)snprintf(enrol->software, sizeof enrol->software, "%s", RP_VERSION);
    (void)snprintf(enrol->board, sizeof enrol->board, "%s", w->enrolment->board);
    return rp_link_send(w->link, &frame, NULL, 0, true, NULL, NULL);
}

/* A restarted host does not know what its predecessor had received. */
static rp_err resend_enrol(work *w) {
    rp_link_stats stats;
    rp_err err = RP_OK;
    rp_link_stats_of(w->link, &stats);
    if (w->session != 0 && stats.peer_session != w->session) {
        err = send_enrol(w);
    }
    if (err == RP_OK) {
        w->session = stats.peer_session;
    }
    return err == RP_ERR_AGAIN ? RP_OK : err;
}

static rp_err open_link(rp_arena *arena, work *w) {
    rp_keypair pair;
    const rp_links_options links = {.clock = w->enrolment->clock, .keys = &pair};
    const rp_link_options options = {.name = "enrol",
                                     .connect = w->endpoint,
                                     .peer_public = w->token.host,
                                     .window = 1,
                                     .send_window = 1,
                                     .part_bytes_max = RP_LINK_CONTROL_PART_MAX};
    rp_err err;
    rp_token_keys(&w->token, &pair);
    RP_TRY(rp_links_open(arena, &links, &w->links));
    RP_TRY(rp_link_open(w->links, &options, &w->link));
    RP_TRY(send_enrol(w));
fail:
    explicit_bzero(&pair, sizeof pair);
    return err;
}

/* Another host may have that name on the list; then the fingerprint distinguishes this one. */
static rp_err trust_host(rp_arena *arena, const work *w, const rp_Enrolled *said) {
    const rp_trusted *list;
    uint32_t count;
    char fingerprint[RP_KEY_FINGERPRINT];
    char name[sizeof said->host + sizeof fingerprint];
    rp_err err;
    rp_key_fingerprint(w->token.host, fingerprint);
    RP_TRY(rp_trusted_read(arena, w->enrolment->keys, &list, &count));
    const bool is_taken = has_name(list, count, said->host);
    (void)snprintf(name, sizeof name, "%s%s%.4s", said->host, is_taken ? "-" : "",
                   is_taken ? fingerprint : "");
    RP_TRY(rp_trusted_add(w->enrolment->keys, name, w->token.host));
    (void)printf("enrolled as %s by %s, fingerprint %s\n", said->name, name, fingerprint);
    (void)fflush(stdout);
fail:
    return err;
}

static rp_err take_message(rp_arena *arena, work *w, const rp_Frame *frame) {
    if (rp_frame_kind(frame) == RP_KIND_ENROLLED) {
        const rp_err err = trust_host(arena, w, &frame->body.enrolled);
        w->done = err == RP_OK;
        return err;
    }
    if (rp_frame_kind(frame) == RP_KIND_FAULT) {
        return rp_fail(RP_ERR_REFUSED, "--enrol: the host says: %s", frame->body.fault.text);
    }
    return RP_OK;
}

static void find_reason(const work *w, char out[REASON_BYTES]) {
    const rp_link_health health = rp_link_health_of(w->link);
    if (health.auth_failed) {
        (void)snprintf(out, REASON_BYTES, "the host does not accept the token (yet)");
        return;
    }
    if (health.last_heard_ns != 0) {
        (void)snprintf(out, REASON_BYTES, "the host has not answered yet");
        return;
    }
    const rp_reach reach = rp_reach_try(w->endpoint, TRY_MS, out, REASON_BYTES);
    if (reach == RP_REACH_LISTENS) {
        (void)snprintf(
            out, REASON_BYTES,
            "the program that listens there does not answer as `ringpipe boards enrol` does");
    } else if (reach == RP_REACH_CLOSED) {
        const size_t used = strlen(out);
        (void)snprintf(out + used, REASON_BYTES - used,
                       ": is `ringpipe boards enrol` running there?");
    }
}

/* Logs every change of the reason. */
static void log_reason(work *w, int64_t now, const char *reason) {
    const int64_t pause_ns = now - w->began_ns < OFTEN_NS ? REPORT_NS : SELDOM_NS;
    if (strcmp(reason, w->reason) == 0 && now - w->logged_ns < pause_ns) {
        return;
    }
    rp_log_info("enrol: trying %s: %s", w->endpoint, reason);
    (void)snprintf(w->reason, sizeof w->reason, "%s", reason);
    w->logged_ns = now;
}

/* Reports to the service manager, which would take silence for a start that hangs. */
static void report_waiting(const work *w, const char *reason) {
    const rp_agent_enrolment *enrolment = w->enrolment;
    char text[REASON_BYTES + 128];
    if (enrolment->waiting) {
        (void)snprintf(text, sizeof text, "waiting for %s to enrol this board%s%s", w->endpoint,
                       reason ? ": " : "", reason ? reason : "");
        enrolment->waiting(enrolment->context, text);
    }
}

static void report_trying(work *w) {
    const rp_clock *clock = w->enrolment->clock;
    const int64_t now = rp_clock_now_ns(clock);
    char reason[REASON_BYTES];
    if (w->done || now - w->reported_ns < REPORT_NS) {
        return;
    }
    find_reason(w, reason);
    log_reason(w, now, reason);
    w->reported_ns = rp_clock_now_ns(clock);
    report_waiting(w, reason);
}

static rp_err step_link(rp_arena *arena, work *w) {
    rp_message *message;
    rp_err err;
    RP_TRY(rp_link_step(w->link));
    while (!w->done && (err = rp_link_recv(w->link, &message)) == RP_OK) {
        err = take_message(arena, w, &message->frame);
        rp_link_release(w->link, &message);
        RP_TRY(err);
    }
    RP_TRY(err == RP_ERR_AGAIN ? RP_OK : err);
    RP_TRY(w->done ? RP_OK : resend_enrol(w));
    /* The link itself retries. */
    if (rp_link_health_of(w->link).auth_failed && !w->enrolment->patient) {
        return rp_fail(RP_ERR_REFUSED,
                       "--enrol: %s does not accept the token: it has expired, or another host has "
                       "made it; `ringpipe boards enrol` makes a new one",
                       w->endpoint);
    }
    report_trying(w);
    RP_TRY(rp_link_wait(&w->link, 1, NULL, 0, NAP_NS));
fail:
    return err;
}

static rp_err ask_host(rp_arena *arena, work *w) {
    rp_err err;
    RP_TRY(open_link(arena, w));
    w->began_ns = rp_clock_now_ns(w->enrolment->clock);
    w->reported_ns = w->logged_ns = w->began_ns;
    report_waiting(w, NULL);
    while (!w->done) {
        if (w->enrolment->stopped(w->enrolment->context)) {
            return rp_fail(RP_ERR_INTERRUPTED, "--enrol: stopped before the host answered");
        }
        RP_TRY(step_link(arena, w));
    }
    /* Acks its answer; the close below waits until the ack has been sent. */
    rp_link_before_wait(w->link);
fail:
    return err;
}

rp_err rp_agent_enrol(rp_arena *arena, const rp_agent_enrolment *enrolment) {
    work w = {.enrolment = enrolment};
    const rp_trusted *list;
    uint32_t count;
    char fingerprint[RP_KEY_FINGERPRINT];
    rp_err err;
    RP_TRY(read_token(arena, enrolment->token, &w));
    RP_TRY(need_keys(arena, enrolment->keys, &w.own));
    rp_key_fingerprint(w.own.public_text, fingerprint);
    (void)printf("this board's fingerprint is %s\n", fingerprint);
    (void)fflush(stdout);
    RP_TRY(rp_trusted_read(arena, enrolment->keys, &list, &count));
    if (find_key(list, count, w.token.host)) {
        rp_log_info("enrol: the host is already on the list of trusted hosts");
    } else {
        err = ask_host(arena, &w);
    }
fail:
    rp_link_close(&w.link);
    if (w.links) {
        rp_links_close(&w.links);
    }
    explicit_bzero(&w, sizeof w);
    return err;
}
