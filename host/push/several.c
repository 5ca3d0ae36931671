#include "push/several.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>

typedef struct {
    const rp_push_several *asked;
    pthread_mutex_t lock; /* protects the members below, and serialises the caller's functions */
    pthread_mutex_t listener; /* held while a board that dials is served */
    uint32_t next;            /* next board to start */
    bool over;                /* no further board is started */
    rp_err worst;             /* the first error */
} pool;

/* ---- the caller's functions ------------------------------------------------------------------ */

static bool ask_stopped(void *context) {
    pool *p = context;
    (void)pthread_mutex_lock(&p->lock);
    const bool stopped = p->asked->each.stopped(p->asked->each.context);
    (void)pthread_mutex_unlock(&p->lock);
    return stopped;
}

static void tell_progress(void *context, const rp_push_progress *progress) {
    pool *p = context;
    (void)pthread_mutex_lock(&p->lock);
    p->asked->each.progress(p->asked->each.context, progress);
    (void)pthread_mutex_unlock(&p->lock);
}

/* ---- workers --------------------------------------------------------------------------------- */

static const rp_roster_entry *take_board(pool *p) {
    (void)pthread_mutex_lock(&p->lock);
    const bool more = !p->over && p->next < p->asked->count;
    const rp_roster_entry *board = more ? &p->asked->boards[p->next++] : NULL;
    (void)pthread_mutex_unlock(&p->lock);
    return board;
}

static void note_end(pool *p, const rp_roster_entry *board, const rp_Pushed *said, rp_err err) {
    (void)pthread_mutex_lock(&p->lock);
    p->worst = p->worst == RP_OK ? err : p->worst;
    p->over = p->over || err == RP_ERR_INTERRUPTED ||
              (err != RP_OK && p->asked->each.action == RP_PUSH_BUNDLE);
    p->asked->done(p->asked->each.context, board, said, err);
    (void)pthread_mutex_unlock(&p->lock);
}

static void *run_worker(void *context) {
    pool *p = context;
    rp_push_options options = p->asked->each;
    options.stopped = ask_stopped;
    options.progress = tell_progress;
    options.context = p;
    while ((options.board = take_board(p))) {
        rp_Pushed said;
        if (options.board->dials) {
            (void)pthread_mutex_lock(&p->listener);
        }
        const rp_err err = rp_push_to(&options, &said);
        if (options.board->dials) {
            (void)pthread_mutex_unlock(&p->listener);
        }
        note_end(p, options.board, &said, err);
    }
    return NULL;
}

/* Threads block all signals, which stay with the main thread. */
static rp_err run_workers(pool *p, uint32_t count) {
    pthread_t thread[RP_PUSH_AT_ONCE_MAX];
    sigset_t all;
    sigset_t before;
    uint32_t started = 0;
    int problem = 0;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    while (started < count && problem == 0) {
        problem = pthread_create(&thread[started], NULL, run_worker, p);
        started += problem == 0;
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    for (uint32_t i = 0; i < started; i++) {
        (void)pthread_join(thread[i], NULL);
    }
    return started > 0
               ? RP_OK
               : rp_fail(RP_ERR_MEMORY, "push: no thread can be started: %s", strerror(problem));
}

rp_err rp_push_to_several(const rp_push_several *several) {
    pool p = {.asked = several, .worst = RP_OK};
    const uint32_t count = several->at_once < several->count ? several->at_once : several->count;
    rp_err err = RP_OK;
    RP_ASSERT(several->at_once >= 1 && several->at_once <= RP_PUSH_AT_ONCE_MAX);
    (void)pthread_mutex_init(&p.lock, NULL);
    (void)pthread_mutex_init(&p.listener, NULL);
    if (count > 1) {
        err = run_workers(&p, count);
    } else {
        (void)run_worker(&p);
    }
    (void)pthread_mutex_destroy(&p.listener);
    (void)pthread_mutex_destroy(&p.lock);
    return err == RP_OK ? p.worst : err;
}
