#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/log.h"
#include "data/data.h"

typedef enum { FREE, FILLING, READY, OUT } slot_state;

typedef struct {
    rp_batch batch; /* first member, so that a borrowed batch can be cast to its slot */
    slot_state state;
    rp_err err; /* error of filling the slot */
    char message[256];
    float *x;
    int32_t *labels;
    float *rows;
} slot;

/* A thread that fills slots. */
typedef struct {
    rp_feeder *of;
    pthread_t thread;
    uint32_t *order; /* of order_epoch; not shared */
    uint32_t *spare; /* as large, with buckets; else NULL */
    uint32_t order_epoch;
    bool order_known;
} worker;

struct rp_feeder {
    const rp_data *data;
    rp_split split;
    rp_feeder_mode mode;
    bool training;
    uint32_t batch, epoch_steps;
    uint64_t step_end;
    uint64_t step_take; /* next step to be taken */
    slot *slots;
    uint32_t slot_count;
    int ready_fd;
    worker *workers; /* DIRECT: one, without a thread */
    uint32_t worker_count, running;
    pthread_mutex_t lock; /* protects the members below and the states of slots */
    pthread_cond_t changed;
    uint64_t step_fill;   /* next step to be filled */
    uint64_t step_posted; /* all steps before it have been announced on ready_fd */
    bool closing;
};

/* Writes the samples of `step` to a slot that belongs to this worker now. */
static rp_err fill_slot(worker *w, slot *s, uint64_t step) {
    const rp_feeder *f = w->of;
    const uint32_t count = f->data->count[f->split];
    const uint32_t epoch = (uint32_t)(step / f->epoch_steps);
    const uint32_t first = (uint32_t)(step % f->epoch_steps) * f->batch;
    const uint32_t n = count - first < f->batch ? count - first : f->batch;
    if (!w->order_known || (f->training && w->order_epoch != epoch)) {
        if (f->training) {
            rp_data_order(f->data, f->split, epoch, w->order);
        } else {
            for (uint32_t i = 0; i < count; i++) {
                w->order[i] = i;
            }
        }
        rp_data_arrange(f->data, f->split, f->batch, w->order, w->spare);
        w->order_known = true;
        w->order_epoch = epoch;
    }
    s->batch = (rp_batch){.step = step,
                          .epoch = epoch,
                          .count = n,
                          .time = rp_data_batch_time(f->data, f->split, w->order + first, n),
                          .x = s->x,
                          .labels = s->labels,
                          .rows = s->rows};
    const rp_err err = rp_data_batch(f->data, f->split, epoch, w->order + first, n, f->training,
                                     s->x, s->labels, s->rows);
    if (err == RP_OK && s->batch.time > 0) {
        rp_data_pack(f->data, s->batch.time, n, (int32_t *)(void *)s->x, s->labels);
    }
    return err == RP_ERR_FORMAT ? RP_ERR_DATA : err;
}

static slot *find_slot(rp_feeder *f, slot_state state, uint64_t step) {
    for (uint32_t i = 0; i < f->slot_count; i++) {
        if (f->slots[i].state == state && (state != READY || f->slots[i].batch.step == step)) {
            return &f->slots[i];
        }
    }
    return NULL;
}

/* Announces ready slots in the order of steps, whichever worker finished first. */
static void post_ready(rp_feeder *f) {
    while (f->step_posted < f->step_end && find_slot(f, READY, f->step_posted)) {
        f->step_posted++;
        (void)eventfd_write(f->ready_fd, 1);
    }
}

/* Takes a slot and its step together, so that a later step cannot occupy the last slot. */
static void *run_worker(void *argument) {
    worker *w = argument;
    rp_feeder *f = w->of;
    rp_err err = RP_OK;
    rp_log_hush_thread(); /* rp_feeder_take() reports errors */
    (void)pthread_mutex_lock(&f->lock);
    while (err == RP_OK) {
        slot *s = NULL;
        while (!f->closing && f->step_fill < f->step_end && !(s = find_slot(f, FREE, 0))) {
            (void)pthread_cond_wait(&f->changed, &f->lock);
        }
        if (f->closing || f->step_fill >= f->step_end) {
            break;
        }
        const uint64_t step = f->step_fill++;
        s->state = FILLING;
        (void)pthread_mutex_unlock(&f->lock);
        err = fill_slot(w, s, step);
        (void)pthread_mutex_lock(&f->lock);
        s->err = err;
        if (err != RP_OK) {
            (void)snprintf(s->message, sizeof s->message, "%s", rp_err_message());
        }
        s->state = READY;
        post_ready(f);
    }
    (void)pthread_cond_broadcast(&f->changed); /* no step is left, so all workers may end */
    (void)pthread_mutex_unlock(&f->lock);
    return NULL;
}

/* The threads block all signals, which the main thread handles. */
static rp_err start_threads(rp_feeder *f) {
    sigset_t all;
    sigset_t before;
    int problem = 0;
    /* A semaphore that counts ready batches. */
    f->ready_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK | EFD_SEMAPHORE);
    if (f->ready_fd < 0) {
        return rp_fail(RP_ERR_IO, "eventfd: %s", strerror(errno));
    }
    sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    for (uint32_t i = 0; i < f->worker_count && problem == 0; i++) {
        problem = pthread_create(&f->workers[i].thread, NULL, run_worker, &f->workers[i]);
        f->running += problem == 0;
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (problem != 0) {
        return rp_fail(RP_ERR_IO, "a data thread cannot start: %s", strerror(problem));
    }
    return RP_OK;
}

static rp_err add_workers(rp_arena *arena, rp_feeder *f) {
    rp_err err;
    RP_TRY(RP_ARENA_NEW(arena, f->worker_count, &f->workers));
    for (uint32_t i = 0; i < f->worker_count; i++) {
        f->workers[i].of = f;
        RP_TRY(RP_ARENA_NEW(arena, rp_data_drawn(f->data, f->split), &f->workers[i].order));
        RP_TRY(f->data->buckets.count > 0
                   ? RP_ARENA_NEW(arena, f->data->count[f->split], &f->workers[i].spare)
                   : RP_OK);
    }
fail:
    return err;
}

static rp_err add_slots(rp_arena *arena, rp_feeder *f) {
    rp_err err = RP_OK;
    const bool has_labels = rp_data_has_labels(f->data);
    const size_t sample = rp_shape_count(&f->data->sample) * f->batch;
    const size_t row = (size_t)rp_data_row_width(f->data) * f->batch;
    float *x;
    int32_t *labels;
    float *rows;
    RP_TRY(RP_ARENA_NEW(arena, f->slot_count, &f->slots));
    RP_TRY(RP_ARENA_NEW(arena, sample * f->slot_count, &x));
    RP_TRY(RP_ARENA_NEW(arena, has_labels ? row * f->slot_count : 0, &labels));
    RP_TRY(RP_ARENA_NEW(arena, has_labels ? 0 : row * f->slot_count, &rows));
    for (uint32_t i = 0; i < f->slot_count; i++) {
        f->slots[i].x = x + sample * i;
        f->slots[i].labels = has_labels ? labels + row * i : NULL;
        f->slots[i].rows = has_labels ? NULL : rows + row * i;
    }
fail:
    return err;
}

rp_err rp_feeder_open(rp_arena *arena, const rp_data *data, rp_feeder_mode mode, rp_split split,
                      bool training, uint32_t batch, uint64_t step_first, uint64_t step_end,
                      uint32_t depth, rp_feeder **out) {
    rp_err err = RP_OK;
    rp_feeder *f = NULL;
    if (data->count[split] == 0) {
        return rp_fail(RP_ERR_USAGE, "data set %s has no %s samples", data->kind->name,
                       rp_split_name(split));
    }
    RP_ASSERT(batch > 0 && depth > 0 && step_first <= step_end);
    const uint64_t steps = step_end > step_first ? step_end - step_first : 1;
    RP_TRY(RP_ARENA_NEW(arena, 1, &f));
    *f = (rp_feeder){.data = data,
                     .split = split,
                     .mode = mode,
                     .training = training,
                     .batch = batch < data->count[split] ? batch : data->count[split],
                     .step_take = step_first,
                     .step_end = step_end,
                     .step_fill = step_first,
                     .step_posted = step_first,
                     .slot_count = steps < 2 * (uint64_t)depth ? (uint32_t)steps : 2 * depth,
                     .worker_count = 1,
                     .ready_fd = -1};
    if (mode == RP_FEEDER_THREAD && data->workers > 1) {
        f->worker_count = data->workers < f->slot_count ? data->workers : f->slot_count;
    }
    f->epoch_steps = (data->count[split] - 1) / f->batch + 1;
    (void)pthread_mutex_init(&f->lock, NULL);
    (void)pthread_cond_init(&f->changed, NULL);
    RP_TRY(add_workers(arena, f));
    RP_TRY(add_slots(arena, f));
    RP_TRY(mode == RP_FEEDER_THREAD ? start_threads(f) : RP_OK);
    *out = f;
    f = NULL;
fail:
    rp_feeder_close(&f);
    return err;
}

static rp_err take_direct(rp_feeder *f, const rp_batch **out) {
    slot *s = find_slot(f, FREE, 0);
    if (!s || f->step_take >= f->step_end) {
        return RP_ERR_AGAIN;
    }
    rp_err err = fill_slot(&f->workers[0], s, f->step_take);
    if (err == RP_OK) {
        s->state = OUT;
        f->step_take++;
        *out = &s->batch;
    }
    return err;
}

rp_err rp_feeder_take(rp_feeder *f, const rp_batch **out) {
    rp_err err = RP_ERR_AGAIN;
    if (f->mode == RP_FEEDER_DIRECT) {
        return take_direct(f, out);
    }
    (void)pthread_mutex_lock(&f->lock);
    char message[sizeof f->slots->message] = "";
    slot *s = find_slot(f, READY, f->step_take);
    if (s && s->err != RP_OK) {
        err = s->err;
        memcpy(message, s->message, sizeof message);
    } else if (s) {
        eventfd_t one;
        (void)eventfd_read(f->ready_fd, &one);
        s->state = OUT;
        f->step_take++;
        *out = &s->batch;
        err = RP_OK;
    }
    (void)pthread_mutex_unlock(&f->lock);
    return err == RP_OK || err == RP_ERR_AGAIN ? err : rp_fail(err, "%s", message);
}

void rp_feeder_return(rp_feeder *f, const rp_batch *batch) {
    (void)pthread_mutex_lock(&f->lock);
    slot *s = NULL;
    for (uint32_t i = 0; i < f->slot_count; i++) {
        if (&f->slots[i].batch == batch) {
            s = &f->slots[i];
        }
    }
    RP_ASSERT(s && s->state == OUT);
    s->state = FREE;
    (void)pthread_cond_signal(&f->changed);
    (void)pthread_mutex_unlock(&f->lock);
}

int rp_feeder_eventfd(const rp_feeder *f) {
    return f->ready_fd;
}

void rp_feeder_close(rp_feeder **taken) {
    rp_feeder *f = *taken;
    *taken = NULL;
    if (!f) {
        return;
    }
    (void)pthread_mutex_lock(&f->lock);
    f->closing = true;
    (void)pthread_cond_broadcast(&f->changed);
    (void)pthread_mutex_unlock(&f->lock);
    for (uint32_t i = 0; i < f->running; i++) {
        (void)pthread_join(f->workers[i].thread, NULL);
    }
    if (f->ready_fd >= 0) {
        (void)close(f->ready_fd);
    }
    (void)pthread_cond_destroy(&f->changed);
    (void)pthread_mutex_destroy(&f->lock);
}
