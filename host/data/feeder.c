#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "data/data.h"

typedef enum { FREE, FILLING, READY, OUT } slot_state;

typedef struct {
    rp_batch batch; /* first, so that a borrowed batch leads back to its slot */
    slot_state state;
    rp_err err; /* of filling it */
    float *x;
    int32_t *labels;
    float *rows;
} slot;

struct rp_feeder {
    const rp_data *data;
    rp_split split;
    rp_feeder_mode mode;
    bool training;
    uint32_t batch, epoch_steps;
    uint64_t step_end;
    uint64_t step_take; /* of the next take */
    uint32_t *order;    /* of order_epoch; the thread's own */
    uint32_t order_epoch;
    bool order_known;
    slot *slots;
    uint32_t slot_count;
    int ready_fd;
    pthread_t thread;
    bool running;
    pthread_mutex_t lock; /* of everything below and of the slots' states */
    pthread_cond_t changed;
    bool closing;
    char message[256];
};

/* The samples of `step`, written to a slot that only this thread touches now. */
static rp_err fill_slot(rp_feeder *f, slot *s, uint64_t step) {
    const uint32_t count = f->data->count[f->split];
    const uint32_t epoch = (uint32_t)(step / f->epoch_steps);
    const uint32_t first = (uint32_t)(step % f->epoch_steps) * f->batch;
    const uint32_t n = count - first < f->batch ? count - first : f->batch;
    if (!f->order_known || (f->training && f->order_epoch != epoch)) {
        if (f->training) {
            rp_data_order(f->data, f->split, epoch, f->order);
        } else {
            for (uint32_t i = 0; i < count; i++) {
                f->order[i] = i;
            }
        }
        f->order_known = true;
        f->order_epoch = epoch;
    }
    s->batch = (rp_batch){
        .step = step, .epoch = epoch, .count = n, .x = s->x, .labels = s->labels, .rows = s->rows};
    return rp_data_batch(f->data, f->split, epoch, f->order + first, n, f->training, s->x,
                         s->labels, s->rows);
}

static slot *find_slot(rp_feeder *f, slot_state state) {
    for (uint32_t i = 0; i < f->slot_count; i++) {
        if (f->slots[i].state == state &&
            (state != READY || f->slots[i].batch.step == f->step_take)) {
            return &f->slots[i];
        }
    }
    return NULL;
}

static void *run_thread(void *argument) {
    rp_feeder *f = argument;
    (void)pthread_mutex_lock(&f->lock);
    rp_err err = RP_OK;
    for (uint64_t step = f->step_take; step < f->step_end && err == RP_OK; step++) {
        slot *s = NULL;
        while (!f->closing && !(s = find_slot(f, FREE))) {
            (void)pthread_cond_wait(&f->changed, &f->lock);
        }
        if (f->closing) {
            break;
        }
        s->state = FILLING;
        (void)pthread_mutex_unlock(&f->lock);
        err = fill_slot(f, s, step);
        (void)pthread_mutex_lock(&f->lock);
        s->err = err;
        if (err != RP_OK) {
            (void)snprintf(f->message, sizeof f->message, "%s", rp_err_message());
        }
        s->state = READY;
        (void)eventfd_write(f->ready_fd, 1);
    }
    (void)pthread_mutex_unlock(&f->lock);
    return NULL;
}

/* The thread takes no signals: they are for the one that runs the ring. */
static rp_err start_thread(rp_feeder *f) {
    sigset_t all;
    sigset_t before;
    /* A semaphore: its count is that of the ready batches. */
    f->ready_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK | EFD_SEMAPHORE);
    if (f->ready_fd < 0) {
        return rp_fail(RP_ERR_IO, "eventfd: %s", strerror(errno));
    }
    sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int problem = pthread_create(&f->thread, NULL, run_thread, f);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (problem != 0) {
        return rp_fail(RP_ERR_IO, "data thread can not start: %s", strerror(problem));
    }
    f->running = true;
    return RP_OK;
}

static rp_err add_slots(rp_arena *arena, rp_feeder *f) {
    rp_err err = RP_OK;
    const size_t sample = rp_shape_count(&f->data->sample);
    RP_TRY(RP_ARENA_NEW(arena, f->slot_count, &f->slots));
    for (uint32_t i = 0; i < f->slot_count; i++) {
        slot *s = &f->slots[i];
        RP_TRY(RP_ARENA_NEW(arena, sample * f->batch, &s->x));
        if (f->data->classes > 0) {
            RP_TRY(RP_ARENA_NEW(arena, f->batch, &s->labels));
        } else {
            RP_TRY(RP_ARENA_NEW(arena, (size_t)f->data->target_width * f->batch, &s->rows));
        }
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
    RP_TRY(RP_ARENA_NEW(arena, 1, &f));
    *f = (rp_feeder){.data = data,
                     .split = split,
                     .mode = mode,
                     .training = training,
                     .batch = batch < data->count[split] ? batch : data->count[split],
                     .step_take = step_first,
                     .step_end = step_end,
                     .slot_count = 2 * depth,
                     .ready_fd = -1};
    f->epoch_steps = (data->count[split] - 1) / f->batch + 1;
    (void)pthread_mutex_init(&f->lock, NULL);
    (void)pthread_cond_init(&f->changed, NULL);
    RP_TRY(RP_ARENA_NEW(arena, data->count[split], &f->order));
    RP_TRY(add_slots(arena, f));
    RP_TRY(mode == RP_FEEDER_THREAD ? start_thread(f) : RP_OK);
    *out = f;
    f = NULL;
fail:
    rp_feeder_close(&f);
    return err;
}

static rp_err take_direct(rp_feeder *f, const rp_batch **out) {
    slot *s = find_slot(f, FREE);
    if (!s || f->step_take >= f->step_end) {
        return RP_ERR_AGAIN;
    }
    rp_err err = fill_slot(f, s, f->step_take);
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
    slot *s = find_slot(f, READY);
    if (s && s->err != RP_OK) {
        err = s->err;
    } else if (s) {
        eventfd_t one;
        (void)eventfd_read(f->ready_fd, &one);
        s->state = OUT;
        f->step_take++;
        *out = &s->batch;
        err = RP_OK;
    }
    (void)pthread_mutex_unlock(&f->lock);
    return err == RP_OK || err == RP_ERR_AGAIN ? err : rp_fail(err, "%s", f->message);
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
    if (f->running) {
        (void)pthread_mutex_lock(&f->lock);
        f->closing = true;
        (void)pthread_cond_signal(&f->changed);
        (void)pthread_mutex_unlock(&f->lock);
        (void)pthread_join(f->thread, NULL);
    }
    if (f->ready_fd >= 0) {
        (void)close(f->ready_fd);
    }
    (void)pthread_cond_destroy(&f->changed);
    (void)pthread_mutex_destroy(&f->lock);
}
