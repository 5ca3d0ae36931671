#include "data/scan.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"

enum { THREADS_MAX = 64 };

typedef struct {
    uint32_t samples;
    rp_err (*look)(void *context, uint32_t index);
    void *context;
    pthread_mutex_t lock; /* protects the members below */
    uint32_t next;
    rp_err err; /* of the scan itself */
    rp_scan_result *result;
} scan;

/* Keeps the bad samples with the lowest places, in order, whichever thread finished first. */
static void add_bad(rp_scan_result *result, uint64_t place, rp_err err) {
    const uint32_t named =
        result->count < RP_SCAN_NAMED_MAX ? result->count : (uint32_t)RP_SCAN_NAMED_MAX;
    uint32_t at = named;
    result->count++;
    while (at > 0 && result->bad[at - 1].place > place) {
        at--;
    }
    if (at == RP_SCAN_NAMED_MAX) {
        return;
    }
    const uint32_t kept = named < RP_SCAN_NAMED_MAX ? named : RP_SCAN_NAMED_MAX - 1;
    memmove(&result->bad[at + 1], &result->bad[at], (kept - at) * sizeof *result->bad);
    result->bad[at].place = place;
    result->bad[at].err = err;
    (void)snprintf(result->bad[at].text, RP_SCAN_TEXT_BYTES, "%s", rp_err_message());
}

static void *look_at_samples(void *argument) {
    scan *s = argument;
    rp_log_hush_thread(); /* the caller reports bad samples */
    (void)pthread_mutex_lock(&s->lock);
    while (s->next < s->samples && s->err == RP_OK) {
        const uint32_t index = s->next++;
        (void)pthread_mutex_unlock(&s->lock);
        const rp_err err = s->look(s->context, index);
        (void)pthread_mutex_lock(&s->lock);
        if (err == RP_ERR_MEMORY) {
            s->err = err;
        } else if (err != RP_OK) {
            add_bad(s->result, s->result->samples + index, err);
        }
    }
    (void)pthread_mutex_unlock(&s->lock);
    return NULL;
}

/* The threads block all signals, which the main thread handles. */
rp_err rp_scan(uint32_t samples, uint32_t threads, rp_err (*look)(void *context, uint32_t index),
               void *context, rp_scan_result *result) {
    scan s = {.samples = samples, .look = look, .context = context, .result = result};
    pthread_t thread[THREADS_MAX];
    const uint32_t wanted = threads < 1 ? 1 : threads < THREADS_MAX ? threads : THREADS_MAX;
    uint32_t running = 0;
    int problem = 0;
    if (samples == 0) {
        return RP_OK;
    }
    sigset_t all;
    sigset_t before;
    (void)pthread_mutex_init(&s.lock, NULL);
    sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    while (running < wanted && problem == 0) {
        problem = pthread_create(&thread[running], NULL, look_at_samples, &s);
        running += problem == 0;
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    for (uint32_t i = 0; i < running; i++) {
        (void)pthread_join(thread[i], NULL);
    }
    (void)pthread_mutex_destroy(&s.lock);
    result->samples += samples;
    if (running == 0) {
        return rp_fail(RP_ERR_IO, "a data thread cannot start: %s", strerror(problem));
    }
    return s.err == RP_OK ? RP_OK : rp_fail(s.err, "no memory to read the data set");
}

void rp_scan_log(const rp_scan_result *result) {
    for (uint32_t i = 0; i < result->count && i < RP_SCAN_NAMED_MAX; i++) {
        rp_log_error("%s", result->bad[i].text);
    }
    if (result->count > RP_SCAN_NAMED_MAX) {
        rp_log_error("and %u more", result->count - RP_SCAN_NAMED_MAX);
    }
}

rp_err rp_scan_end(const rp_scan_result *result) {
    if (result->count <= 1) {
        return result->count == 0 ? RP_OK : rp_fail(result->bad[0].err, "%s", result->bad[0].text);
    }
    rp_scan_log(result);
    return rp_fail(RP_ERR_FORMAT, "%u of the %llu samples cannot be used", result->count,
                   (unsigned long long)result->samples);
}
