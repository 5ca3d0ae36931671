#include "ask/inquiry.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"

enum { ENDPOINT_BYTES = 128 };

static const int64_t WAIT_NS = 2 * RP_NS_PER_S;  /* timeout of a question */
static const int64_t AGAIN_NS = 8 * RP_NS_PER_S; /* between two questions to a board */

typedef struct {
    rp_inquiry *inquiry;
    /* Copies, because a thread may outlive the roster. */
    char name[RP_ROSTER_NAME_MAX + 1], endpoint[ENDPOINT_BYTES], key[RP_KEY_TEXT];
    rp_cause cause, shown;
    bool runs, known;
    int64_t asked_ns;
} subject;

struct rp_inquiry {
    pthread_mutex_t lock; /* protects what changes after a thread has started */
    rp_clock clock;
    rp_keypair keys;
    uint32_t holders; /* number of users, the owner and threads: the last one frees it */
    bool over;
    subject subject[RP_INQUIRIES_MAX];
    uint32_t count;
};

static void release_inquiry(rp_inquiry *inquiry) {
    (void)pthread_mutex_lock(&inquiry->lock);
    const bool last = --inquiry->holders == 0;
    (void)pthread_mutex_unlock(&inquiry->lock);
    if (last) {
        (void)pthread_mutex_destroy(&inquiry->lock);
        explicit_bzero(&inquiry->keys, sizeof inquiry->keys);
        rp_block_free(inquiry);
    }
}

static bool is_over(void *context) {
    rp_inquiry *inquiry = context;
    (void)pthread_mutex_lock(&inquiry->lock);
    const bool over = inquiry->over;
    (void)pthread_mutex_unlock(&inquiry->lock);
    return over;
}

static void *run_question(void *context) {
    subject *of = context;
    rp_inquiry *inquiry = of->inquiry;
    const rp_roster_entry board = {
        .name = of->name, .endpoint = of->endpoint, .public_text = of->key};
    const rp_ask_options options = {.board = &board,
                                    .keys = &inquiry->keys,
                                    .clock = &inquiry->clock,
                                    .stopped = is_over,
                                    .context = inquiry};
    rp_cause cause;
    rp_log_hush_thread(); /* the owner reports the result */
    rp_ask_find_cause(&options, WAIT_NS, &cause);
    (void)pthread_mutex_lock(&inquiry->lock);
    of->cause = cause;
    of->runs = false;
    of->known = true;
    (void)pthread_mutex_unlock(&inquiry->lock);
    release_inquiry(inquiry);
    return NULL;
}

rp_err rp_inquiry_open(rp_inquiry **out) {
    void *memory;
    const rp_err err = rp_block_new(sizeof(rp_inquiry), &memory);
    if (err == RP_OK) {
        *out = memory;
        memset(*out, 0, sizeof **out);
        (*out)->clock = rp_clock_real();
        (*out)->holders = 1;
        (void)pthread_mutex_init(&(*out)->lock, NULL);
    }
    return err;
}

void rp_inquiry_close(rp_inquiry **inquiry) {
    if (*inquiry) {
        (void)pthread_mutex_lock(&(*inquiry)->lock);
        (*inquiry)->over = true;
        (void)pthread_mutex_unlock(&(*inquiry)->lock);
        release_inquiry(*inquiry);
    }
    *inquiry = NULL;
}

/* Call it with the lock held. The thread is detached, because a name server may delay it longer
 * than the run waits. */
static bool start_thread(subject *of) {
    pthread_attr_t detached;
    sigset_t all;
    sigset_t before;
    pthread_t thread;
    if (pthread_attr_init(&detached) != 0) {
        return false;
    }
    (void)pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    const int problem = pthread_create(&thread, &detached, run_question, of);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)pthread_attr_destroy(&detached);
    return problem == 0;
}

static subject *find_subject(rp_inquiry *inquiry, const rp_roster_entry *entry,
                             const rp_keypair *keys) {
    for (uint32_t i = 0; i < inquiry->count; i++) {
        if (strcmp(inquiry->subject[i].name, entry->name) == 0) {
            return &inquiry->subject[i];
        }
    }
    if (inquiry->count == RP_INQUIRIES_MAX) {
        return NULL;
    }
    if (inquiry->count == 0) {
        inquiry->keys = *keys;
    }
    subject *of = &inquiry->subject[inquiry->count++];
    of->inquiry = inquiry;
    (void)snprintf(of->name, sizeof of->name, "%s", entry->name);
    (void)snprintf(of->endpoint, sizeof of->endpoint, "%s", entry->endpoint);
    (void)snprintf(of->key, sizeof of->key, "%s", entry->public_text);
    return of;
}

const rp_cause *rp_inquiry_look(rp_inquiry *inquiry, const rp_roster_entry *entry,
                                const rp_keypair *keys) {
    const int64_t now_ns = rp_clock_now_ns(&inquiry->clock);
    (void)pthread_mutex_lock(&inquiry->lock);
    subject *of = find_subject(inquiry, entry, keys);
    if (of && entry->dials) {
        rp_cause_of_silence(entry, NULL, RP_GREET_NOT_DIALLED, &of->cause);
        of->known = true;
    } else if (of && !of->runs && (of->asked_ns == 0 || now_ns - of->asked_ns >= AGAIN_NS)) {
        of->asked_ns = now_ns;
        of->runs = start_thread(of);
        inquiry->holders += of->runs;
    }
    const bool known = of && of->known;
    if (known) {
        of->shown = of->cause;
    }
    (void)pthread_mutex_unlock(&inquiry->lock);
    return known ? &of->shown : NULL;
}
