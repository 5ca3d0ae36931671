#include "greet/cause.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "greet/explain.h"

/* A host counts as gone if the board has not heard it for this long. */
enum { HOST_LIVES_MS = 3000 };

static void say_keys(const rp_roster_entry *board, rp_cause *out) {
    char fingerprint[RP_KEY_FINGERPRINT];
    rp_key_fingerprint(board->public_text, fingerprint);
    out->err = RP_ERR_REFUSED;
    out->hopeless = true;
    (void)snprintf(out->text, sizeof out->text,
                   "the handshake was refused: the board does not trust this host's key, or its "
                   "own key is not the roster's, which has the fingerprint %s",
                   fingerprint);
}

static void say_not_dialled(const char *listen, rp_cause *out) {
    (void)snprintf(out->text, sizeof out->text,
                   "has not dialled %s: does `ringpipe-agent --host` run there with an address of "
                   "this host's? A run that listens there has the boards that dial",
                   listen ? listen : "this host");
}

static bool say_address(const rp_roster_entry *board, rp_cause *out) {
    char why[RP_EXPLAIN_BYTES];
    const rp_explained found = rp_explain_address(board->endpoint, why, sizeof why);
    out->hopeless = found == RP_EXPLAINED_NO_NAME;
    (void)snprintf(out->text, sizeof out->text, "nothing answers at %s: %s", board->endpoint, why);
    return found != RP_EXPLAINED_CONNECTS;
}

bool rp_cause_of_address(const rp_roster_entry *board, rp_cause *out) {
    *out = (rp_cause){.err = RP_ERR_FAULT};
    return say_address(board, out);
}

void rp_cause_of_silence(const rp_roster_entry *board, const char *listen, rp_greet_state came,
                         rp_cause *out) {
    *out = (rp_cause){.err = RP_ERR_FAULT};
    switch (came) {
    case RP_GREET_REFUSED:
        say_keys(board, out);
        break;
    case RP_GREET_OLD:
        (void)snprintf(out->text, sizeof out->text,
                       "is there, but its software is too old for questions: install a newer "
                       "one there");
        break;
    case RP_GREET_NOT_DIALLED:
        say_not_dialled(listen, out);
        break;
    case RP_GREET_MUTE:
        (void)snprintf(out->text, sizeof out->text,
                       "accepts the connection at %s with the right key, but its agent sends "
                       "nothing: it hangs, or the board is overloaded",
                       board->endpoint);
        break;
    case RP_GREET_THERE:
    case RP_GREET_BUSY:
    case RP_GREET_SILENT:
        (void)say_address(board, out);
        break;
    }
}

const char *rp_cause_of_probe(rp_probe_state state) {
    switch (state) {
    case RP_PROBE_OPEN:
        return "something listens there but does not answer";
    case RP_PROBE_REFUSED:
        return "nothing listens there";
    case RP_PROBE_NO_NAME:
        return "its name has no address";
    default:
        return "its machine does not answer";
    }
}

/* ---- a board of a run ------------------------------------------------------------------------ */

rp_silent_why rp_cause_of_link(const rp_link *link, bool was_met) {
    const rp_link_health health = rp_link_health_of(link);
    return health.auth_failed             ? RP_SILENT_REFUSES
           : health.broken_off && was_met ? RP_SILENT_BROKEN_OFF
           : health.unanswered            ? RP_SILENT_UNANSWERED
                                          : RP_SILENT_UNKNOWN;
}

rp_err rp_cause_fail_silent(rp_silent_why why, const char *name, const char *endpoint,
                            const char *public_text) {
    char fingerprint[RP_KEY_FINGERPRINT];
    RP_ASSERT(why != RP_SILENT_UNKNOWN);
    rp_key_fingerprint(public_text, fingerprint);
    switch (why) {
    case RP_SILENT_REFUSES:
        return rp_fail(
            RP_ERR_REFUSED,
            "board %s at %s refused the handshake: it does not trust our key, or its own "
            "is not the one with fingerprint %s",
            name, endpoint, fingerprint);
    case RP_SILENT_BROKEN_OFF:
        return rp_fail(RP_ERR_REFUSED,
                       "board %s at %s: every handshake is broken off: another machine, whose key "
                       "does not have the fingerprint %s, has its address, or the path damages "
                       "the handshakes",
                       name, endpoint, fingerprint);
    case RP_SILENT_UNANSWERED:
    case RP_SILENT_UNKNOWN:
        break;
    }
    return rp_fail(RP_ERR_FAULT,
                   "board %s at %s: its machine accepts the connection, but its agent does not "
                   "answer: the process is stopped or suspended, or has too much to do",
                   name, endpoint);
}

/* ---- a board that is held -------------------------------------------------------------------- */

static bool is_heard(const rp_Ordered *holder) {
    return holder->address[0] && holder->silent_ms < HOST_LIVES_MS;
}

bool rp_cause_is_held(const rp_Ordered *holder) {
    return holder->run != 0 || is_heard(holder);
}

void rp_cause_name_host(const rp_Ordered *holder, char *out, size_t bytes) {
    const bool named = holder->origin[0] != '\0';
    (void)snprintf(out, bytes, "%s%s%s%s", named ? holder->origin : "a host",
                   holder->address[0] ? " (" : "", holder->address, holder->address[0] ? ")" : "");
}

void rp_cause_of_holder(const rp_Ordered *holder, rp_cause *out) {
    const bool lives = is_heard(holder);
    char host[sizeof holder->origin + sizeof holder->address + 8];
    rp_cause_name_host(holder, host, sizeof host);
    *out = (rp_cause){.err = RP_ERR_FAULT, .run = holder->run};
    if (holder->run != 0 && lives) {
        out->hopeless = true;
        (void)snprintf(out->text, sizeof out->text,
                       "is busy: it is held by %s with run %016" PRIx64
                       "; wait for its end, or `ringpipe stop` it there",
                       host, holder->run);
    } else if (holder->run != 0) {
        (void)snprintf(out->text, sizeof out->text,
                       "is busy: it keeps run %016" PRIx64 " of %s, which it has not heard for "
                       "%" PRIu64 " s",
                       holder->run, host, holder->silent_ms / 1000);
    } else if (lives) {
        (void)snprintf(out->text, sizeof out->text,
                       "is busy: it serves %s, which has no run there: a push or kernels that are "
                       "built ahead",
                       host);
    } else {
        out->err = RP_OK;
        (void)snprintf(out->text, sizeof out->text, "answers, and is free");
    }
}
