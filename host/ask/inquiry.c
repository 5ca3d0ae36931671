#include "ask/inquiry.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"

enum { ENDPOINT_BYTES = 128 };

static const int64_t WAIT_NS = 2 * RP_NS_PER_S;  /* for an answer */
static const int64_t AGAIN_NS = 8 * RP_NS_PER_S; /* between two questions to a board */

typedef struct {
    char name[RP_ROSTER_NAME_MAX + 1];
    rp_cause cause, shown;
    bool runs, known;
    int64_t asked_ns;
} subject;

struct rp_inquiry {
    pthread_mutex_t lock; /* of everything below */
    rp_clock clock;
    uint32_t holders; /* the owner and threads: the last one to go frees it */
    bool over;
    subject subject[RP_INQUIRIES_MAX];
    uint32_t count;
};

/* What a thread needs, which may live longer than the roster. */
typedef struct {
    rp_inquiry *inquiry;
    subject *of;
    rp_keypair keys;
    char name[RP_ROSTER_NAME_MAX + 1], endpoint[ENDPOINT_BYTES], key[RP_KEY_TEXT];
} question;

static void leave(rp_inquiry *inquiry) {
    (void)pthread_mutex_lock(&inquiry->lock);
    const bool last = --inquiry->holders == 0;
    (void)pthread_mutex_unlock(&inquiry->lock);
    if (last) {
        (void)pthread_mutex_destroy(&inquiry->lock);
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
    question *q = context;
    rp_inquiry *inquiry = q->inquiry;
    const rp_roster_entry board = {.name = q->name, .endpoint = q->endpoint, .public_text = q->key};
    const rp_ask_options options = {.board = &board,
                                    .keys = &q->keys,
                                    .clock = &inquiry->clock,
                                    .stopped = is_over,
                                    .context = inquiry};
    rp_cause cause;
    rp_log_hush_thread(); /* the owner reports the result */
    rp_ask_find_cause(&options, WAIT_NS, &cause);
    (void)pthread_mutex_lock(&inquiry->lock);
    q->of->cause = cause;
    q->of->runs = false;
    q->of->known = true;
    (void)pthread_mutex_unlock(&inquiry->lock);
    explicit_bzero(&q->keys, sizeof q->keys);
    rp_block_free(q);
    leave(inquiry);
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
        leave(*inquiry);
    }
    *inquiry = NULL;
}

/* Call it with the lock held. The thread is detached, because a name server may delay it for longer
 * than the run waits. */
static bool start_thread(question *q) {
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
    const int problem = pthread_create(&thread, &detached, run_question, q);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)pthread_attr_destroy(&detached);
    return problem == 0;
}

static void begin(rp_inquiry *inquiry, subject *of, const rp_roster_entry *entry,
                  const rp_keypair *keys, int64_t now_ns) {
    void *memory;
    of->asked_ns = now_ns;
    if (rp_block_new(sizeof(question), &memory) != RP_OK) {
        return;
    }
    question *q = memory;
    *q = (question){.inquiry = inquiry, .of = of, .keys = *keys};
    (void)snprintf(q->name, sizeof q->name, "%s", entry->name);
    (void)snprintf(q->endpoint, sizeof q->endpoint, "%s", entry->endpoint);
    (void)snprintf(q->key, sizeof q->key, "%s", entry->public_text);
    of->runs = start_thread(q);
    inquiry->holders += of->runs;
    if (!of->runs) {
        explicit_bzero(&q->keys, sizeof q->keys);
        rp_block_free(q);
    }
}

static subject *find_subject(rp_inquiry *inquiry, const rp_roster_entry *entry) {
    for (uint32_t i = 0; i < inquiry->count; i++) {
        if (strcmp(inquiry->subject[i].name, entry->name) == 0) {
            return &inquiry->subject[i];
        }
    }
    if (inquiry->count == RP_INQUIRIES_MAX) {
        return NULL;
    }
    subject *of = &inquiry->subject[inquiry->count++];
    (void)snprintf(of->name, sizeof of->name, "%s", entry->name);
    return of;
}

const rp_cause *rp_inquiry_look(rp_inquiry *inquiry, const rp_roster_entry *entry,
                                const rp_keypair *keys) {
    const int64_t now_ns = rp_clock_now_ns(&inquiry->clock);
    (void)pthread_mutex_lock(&inquiry->lock);
    subject *of = find_subject(inquiry, entry);
    if (of && entry->dials) {
        rp_cause_of_silence(entry, NULL, RP_ASKED_NOT_DIALLED, &of->cause);
        of->known = true;
    } else if (of && !of->runs && (of->asked_ns == 0 || now_ns - of->asked_ns >= AGAIN_NS)) {
        begin(inquiry, of, entry, keys, now_ns);
    }
    const bool known = of && of->known;
    if (known) {
        of->shown = of->cause;
    }
    (void)pthread_mutex_unlock(&inquiry->lock);
    return known ? &of->shown : NULL;
}
