/* Entries on flash. A buffer that was opened mapped is read and written in place, as a whole. For
 * other buffers the owner's thread enqueues copies, in pieces, between the device and a small
 * amount of memory for direct I/O. One thread for each direction reads or writes in the order of
 * requests. A command that needs a piece of the file waits for an event that the thread sets, and
 * the thread waits for events of copies or maps.
 *
 * PoCL 3.1 returns wrong pointers if one thread maps a buffer that another has just unmapped.
 * Therefore the threads enqueue nothing, the owner's thread maps and unmaps in one sequence, and a
 * pointer that does not match the buffer's address is never used. */
#include "device/flash.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "device/cl.h"
#include "device/spill_own.h"

enum { DRAIN_MAX_S = 60, PIECE_LEAST = 1 << 20, PIECES_MAX = 16, STAGED = 2 };

/* A piece of an entry. */
typedef struct {
    uint32_t entry;
    size_t at, bytes;
    char *memory;
    cl_uint waits;
    cl_event wait[2];
    cl_event done;
} job;

typedef struct {
    rp_spill_flash *of;
    cl_command_queue queue;
    char *staged[STAGED];  /* used in turn */
    cl_event busy[STAGED]; /* until it has passed; NULL: the piece is free */
    uint32_t turn;
    pthread_t thread;
    bool started;
    job job[RP_SPILL_JOBS_MAX]; /* protected by the lock, like all below */
    uint32_t first, count;      /* the first one is being processed */
} one_way;

struct rp_spill_flash {
    rp_flash *file;
    rp_device *device;
    size_t entry_bytes, piece_bytes;
    one_way way[RP_SPILL_WAYS];
    cl_event *written; /* by entry: the last job that wrote it; NULL: none */
    uint32_t entries;
    char *piece; /* for checkpoints */
    pthread_mutex_t lock;
    pthread_cond_t changed; /* a job was added or removed, or the thread must end */
    bool ends, copies;      /* copies: use copies because a map was wrong once */
    rp_err failed;
    char why[RP_ERR_MESSAGE_BYTES];
    uint64_t written_bytes;
};

/* ---- the threads ----------------------------------------------------------------------------- */

static rp_err carry_out(rp_spill_flash *flash, const one_way *way, const job *now) {
    rp_err err = RP_OK;
    if (now->waits > 0) {
        RP_TRY(
            rp_cl(clWaitForEvents(now->waits, now->wait), "flash: a copy of stash %u", now->entry));
    }
    RP_TRY(way == &flash->way[RP_SPILL_LEAVING]
               ? rp_flash_write(flash->file, now->entry, now->at, now->memory, now->bytes)
               : rp_flash_read(flash->file, now->entry, now->at, now->memory, now->bytes));
fail:
    return err;
}

static void let_go(const job *it) {
    for (uint32_t i = 0; i < it->waits; i++) {
        (void)clReleaseEvent(it->wait[i]);
    }
    (void)clReleaseEvent(it->done);
}

/* Keeps the first failure; after it nothing is read or written, but all events are still set. */
static void finish_job(rp_spill_flash *flash, one_way *way, const job *now, rp_err err) {
    (void)pthread_mutex_lock(&flash->lock);
    if (err != RP_OK && flash->failed == RP_OK) {
        flash->failed = err;
        (void)snprintf(flash->why, sizeof flash->why, "%s", rp_err_message());
    }
    if (way == &flash->way[RP_SPILL_LEAVING]) {
        flash->written_bytes = rp_flash_written_bytes(flash->file);
    }
    (void)pthread_mutex_unlock(&flash->lock);
    (void)clSetUserEventStatus(now->done, CL_COMPLETE);
    let_go(now);
    (void)pthread_mutex_lock(&flash->lock);
    way->first = (way->first + 1) % RP_SPILL_JOBS_MAX;
    way->count--;
    (void)pthread_cond_broadcast(&flash->changed);
    (void)pthread_mutex_unlock(&flash->lock);
}

static void *run_jobs(void *argument) {
    one_way *way = argument;
    rp_spill_flash *flash = way->of;
    for (;;) {
        (void)pthread_mutex_lock(&flash->lock);
        while (way->count == 0 && !flash->ends) {
            (void)pthread_cond_wait(&flash->changed, &flash->lock);
        }
        const bool has = way->count > 0;
        const job now = way->job[way->first];
        const rp_err failed = flash->failed;
        (void)pthread_mutex_unlock(&flash->lock);
        if (!has) {
            return NULL;
        }
        finish_job(flash, way, &now, failed == RP_OK ? carry_out(flash, way, &now) : RP_OK);
    }
}

/* ---- opening --------------------------------------------------------------------------------- */

static rp_err start_thread(one_way *way) {
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    const int problem = pthread_create(&way->thread, NULL, run_jobs, way);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    way->started = problem == 0;
    return problem == 0
               ? RP_OK
               : rp_fail(RP_ERR_IO, "a thread for flash cannot start: %s", strerror(problem));
}

static void make_lock(rp_spill_flash *flash) {
    pthread_condattr_t by;
    (void)pthread_condattr_init(&by);
    (void)pthread_condattr_setclock(&by, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&flash->changed, &by);
    (void)pthread_condattr_destroy(&by);
    (void)pthread_mutex_init(&flash->lock, NULL);
}

static rp_err open_way(rp_arena *arena, rp_spill_flash *flash, cl_command_queue queue,
                       one_way *way) {
    rp_err err;
    way->of = flash;
    way->queue = queue;
    for (uint32_t i = 0; i < STAGED; i++) {
        RP_TRY(rp_flash_take(arena, flash->piece_bytes, &way->staged[i]));
    }
    RP_TRY(start_thread(way));
fail:
    return err;
}

rp_err rp_spill_flash_open(rp_arena *arena, rp_device *device, cl_command_queue *queue,
                           uint32_t entries, size_t entry_bytes, const char *folder,
                           rp_spill_flash **out) {
    const size_t part = rp_flash_round(entry_bytes / PIECES_MAX + 1);
    rp_spill_flash *flash = NULL;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(arena, 1, &flash));
    flash->device = device;
    flash->entries = entries;
    flash->entry_bytes = entry_bytes;
    flash->piece_bytes = part > PIECE_LEAST ? part : PIECE_LEAST;
    make_lock(flash);
    RP_TRY(RP_ARENA_NEW(arena, entries, &flash->written));
    RP_TRY(rp_flash_open(arena, folder, entries, entry_bytes, &flash->file));
    RP_TRY(rp_flash_take(arena, flash->piece_bytes, &flash->piece));
    for (uint32_t i = 0; i < RP_SPILL_WAYS; i++) {
        RP_TRY(open_way(arena, flash, queue[i], &flash->way[i]));
    }
    const char *why = rp_flash_why_cached(flash->file);
    if (why) {
        rp_log_warn("offload: flash: stashes in %s go through the page cache, because %s", folder,
                    why);
    }
    *out = flash;
    return RP_OK;
fail:
    rp_spill_flash_close(&flash);
    return err;
}

static void forget_event(cl_event *event) {
    if (*event) {
        (void)clReleaseEvent(*event);
    }
    *event = NULL;
}

void rp_spill_flash_close(rp_spill_flash **pointer) {
    rp_spill_flash *flash = *pointer;
    *pointer = NULL;
    if (!flash) {
        return;
    }
    (void)pthread_mutex_lock(&flash->lock);
    flash->ends = true;
    (void)pthread_cond_broadcast(&flash->changed);
    (void)pthread_mutex_unlock(&flash->lock);
    for (uint32_t i = 0; i < RP_SPILL_WAYS; i++) {
        if (flash->way[i].started) {
            (void)pthread_join(flash->way[i].thread, NULL);
        }
    }
    for (uint32_t i = 0; i < RP_SPILL_WAYS * STAGED; i++) {
        forget_event(&flash->way[i / STAGED].busy[i % STAGED]);
    }
    for (uint32_t i = 0; flash->written && i < flash->entries; i++) {
        forget_event(&flash->written[i]);
    }
    rp_flash_close(&flash->file);
    (void)pthread_cond_destroy(&flash->changed);
    (void)pthread_mutex_destroy(&flash->lock);
}

/* ---- the owner's thread ---------------------------------------------------------------------- */

static void keep_event(cl_event *to, cl_event event) {
    (void)clRetainEvent(event);
    forget_event(to);
    *to = event;
}

static void add_wait(cl_event *list, cl_uint *count, cl_event event) {
    if (event) {
        list[(*count)++] = event;
    }
}

/* Lists all of `wait` and one more event; [RP_SPILL_WAITS_MAX + 1]. */
static cl_uint list_waits(cl_event *list, const cl_event *wait, cl_uint waits, cl_event own) {
    cl_uint count = 0;
    for (uint32_t i = 0; i < waits; i++) {
        add_wait(list, &count, wait[i]);
    }
    add_wait(list, &count, own);
    return count;
}

/* Passes a job to the thread, which owns the references from then on. */
static void hand_over(rp_spill_flash *flash, one_way *way, const job *own) {
    for (uint32_t i = 0; i < own->waits; i++) {
        (void)clRetainEvent(own->wait[i]);
    }
    (void)clRetainEvent(own->done);
    (void)pthread_mutex_lock(&flash->lock);
    way->job[(way->first + way->count++) % RP_SPILL_JOBS_MAX] = *own;
    (void)pthread_cond_broadcast(&flash->changed);
    (void)pthread_mutex_unlock(&flash->lock);
}

/* From the device, then to the file. The memory is busy until that is done. */
static rp_err enqueue_leave(rp_spill_flash *flash, const rp_buffer *buffer, job *own, uint32_t turn,
                            const cl_event *wait, cl_uint waits, cl_event *copied) {
    one_way *way = &flash->way[RP_SPILL_LEAVING];
    cl_event list[RP_SPILL_WAITS_MAX + 1];
    const cl_uint count = list_waits(list, wait, waits, way->busy[turn]);
    rp_err err =
        rp_cl(clEnqueueReadBuffer(way->queue, buffer->memory, CL_FALSE, own->at, own->bytes,
                                  own->memory, count, count ? list : NULL, copied),
              "copying out a stash of %zu bytes", own->bytes);
    if (err == RP_OK) {
        add_wait(own->wait, &own->waits, *copied);
        keep_event(&way->busy[turn], own->done);
        keep_event(&flash->written[own->entry], own->done);
        hand_over(flash, way, own);
    }
    return err;
}

/* From the file, then to the device. The thread begins as soon as the memory is free. */
static rp_err enqueue_arrive(rp_spill_flash *flash, const rp_buffer *buffer, job *own,
                             uint32_t turn, const cl_event *wait, cl_uint waits, cl_event *copied) {
    one_way *way = &flash->way[RP_SPILL_ARRIVING];
    cl_event list[RP_SPILL_WAITS_MAX + 1];
    const cl_uint count = list_waits(list, wait, waits, own->done);
    rp_err err = rp_cl(clEnqueueWriteBuffer(way->queue, buffer->memory, CL_FALSE, own->at,
                                            own->bytes, own->memory, count, list, copied),
                       "copying back a stash of %zu bytes", own->bytes);
    if (err == RP_OK) {
        add_wait(own->wait, &own->waits, way->busy[turn]);
        add_wait(own->wait, &own->waits, flash->written[own->entry]);
        hand_over(flash, way, own);
        keep_event(&way->busy[turn], *copied);
    }
    return err;
}

static rp_err put_piece(rp_spill_flash *flash, uint32_t way_at, const rp_buffer *buffer,
                        uint32_t entry, size_t at, const cl_event *wait, cl_uint waits,
                        cl_event *copied) {
    const size_t rest = flash->entry_bytes - at;
    one_way *way = &flash->way[way_at];
    const uint32_t turn = way->turn++ % STAGED;
    job own = {.entry = entry,
               .at = at,
               .bytes = rest < flash->piece_bytes ? rest : flash->piece_bytes,
               .memory = way->staged[turn]};
    cl_int code;
    own.done = clCreateUserEvent(flash->device->context, &code);
    if (code != CL_SUCCESS) {
        return rp_cl(code, "an event for flash");
    }
    const rp_err err = way_at == RP_SPILL_LEAVING
                           ? enqueue_leave(flash, buffer, &own, turn, wait, waits, copied)
                           : enqueue_arrive(flash, buffer, &own, turn, wait, waits, copied);
    (void)clReleaseEvent(own.done);
    return err;
}

/* Maps the buffer until the thread is done with it. *mapped is false, and nothing was done, if the
 * driver returns another address. */
static rp_err map_whole(rp_spill_flash *flash, uint32_t way_at, const rp_buffer *buffer, job *own,
                        const cl_event *wait, cl_uint waits, bool *mapped, cl_event *free) {
    one_way *way = &flash->way[way_at];
    const bool leaves = way_at == RP_SPILL_LEAVING;
    const cl_map_flags how = leaves ? CL_MAP_READ : CL_MAP_WRITE_INVALIDATE_REGION;
    cl_event list[RP_SPILL_WAITS_MAX + 1];
    const cl_uint count = list_waits(list, wait, waits, NULL);
    cl_event here = NULL;
    cl_int code;
    rp_err err;
    *mapped = false;
    void *at = clEnqueueMapBuffer(way->queue, buffer->memory, CL_FALSE, how, 0, own->bytes, count,
                                  count ? list : NULL, &here, &code);
    RP_TRY(rp_cl(code, "mapping a stash, %zu bytes", own->bytes));
    *mapped = at == buffer->host;
    RP_TRY(rp_cl(clEnqueueUnmapMemObject(way->queue, buffer->memory, at, *mapped ? 1 : 0,
                                         *mapped ? &own->done : NULL, free),
                 "unmapping a stash"));
    if (*mapped) {
        add_wait(own->wait, &own->waits, here);
        if (leaves) {
            keep_event(&flash->written[own->entry], own->done);
        } else {
            add_wait(own->wait, &own->waits, flash->written[own->entry]);
        }
        hand_over(flash, way, own);
    }
fail:
    if (here) {
        (void)clReleaseEvent(here);
    }
    return err;
}

static rp_err put_mapped(rp_spill_flash *flash, uint32_t way_at, const rp_buffer *buffer,
                         uint32_t entry, const cl_event *wait, cl_uint waits, cl_event *done) {
    job own = {.entry = entry, .bytes = flash->entry_bytes, .memory = buffer->host};
    bool mapped;
    cl_int code;
    own.done = clCreateUserEvent(flash->device->context, &code);
    if (code != CL_SUCCESS) {
        return rp_cl(code, "an event for flash");
    }
    const rp_err err = map_whole(flash, way_at, buffer, &own, wait, waits, &mapped, done);
    (void)clReleaseEvent(own.done);
    if (err == RP_OK && !mapped) {
        rp_log_warn("offload: flash: mapped memory has another address, so stashes are copied");
        flash->copies = true;
    }
    return err;
}

static rp_err put_pieces(rp_spill_flash *flash, uint32_t way_at, const rp_buffer *buffer,
                         uint32_t entry, const cl_event *wait, cl_uint waits, cl_event *done) {
    rp_err err = RP_OK;
    for (size_t at = 0; at < flash->entry_bytes; at += flash->piece_bytes) {
        forget_event(done);
        RP_TRY(put_piece(flash, way_at, buffer, entry, at, wait, at == 0 ? waits : 0, done));
    }
fail:
    return err;
}

rp_err rp_spill_flash_put(rp_spill_flash *flash, uint32_t way_at, const rp_buffer *buffer,
                          uint32_t entry, const cl_event *wait, uint32_t waits, cl_event *done) {
    one_way *way = &flash->way[way_at];
    rp_err err = RP_OK;
    *done = NULL;
    RP_ASSERT(waits <= RP_SPILL_WAITS_MAX && entry < flash->entries);
    (void)pthread_mutex_lock(&flash->lock);
    const uint32_t count = way->count;
    (void)pthread_mutex_unlock(&flash->lock);
    if (count + PIECES_MAX + 1 > RP_SPILL_JOBS_MAX) {
        return rp_fail(RP_ERR_LIMIT,
                       "flash: more than %d pieces of stashes are being copied at once",
                       RP_SPILL_JOBS_MAX);
    }
    if (buffer->host && !flash->copies) {
        RP_TRY(put_mapped(flash, way_at, buffer, entry, wait, waits, done));
    }
    if (!buffer->host || flash->copies) {
        forget_event(done);
        RP_TRY(put_pieces(flash, way_at, buffer, entry, wait, waits, done));
    }
    RP_TRY(rp_cl(clFlush(way->queue), "flush"));
    return RP_OK;
fail:
    forget_event(done);
    return err;
}

rp_err rp_spill_flash_check(rp_spill_flash *flash) {
    (void)pthread_mutex_lock(&flash->lock);
    const rp_err failed = flash->failed;
    (void)pthread_mutex_unlock(&flash->lock);
    if (failed != RP_OK) {
        rp_err_set_message(flash->why); /* the message does not change after the first failure */
    }
    return failed;
}

rp_err rp_spill_flash_drain(rp_spill_flash *flash) {
    struct timespec until;
    int problem = 0;
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += DRAIN_MAX_S;
    (void)pthread_mutex_lock(&flash->lock);
    while (problem == 0 && flash->way[0].count + flash->way[1].count > 0) {
        problem = pthread_cond_timedwait(&flash->changed, &flash->lock, &until);
    }
    (void)pthread_mutex_unlock(&flash->lock);
    return problem == 0
               ? RP_OK
               : rp_fail(RP_ERR_TIMEOUT, "flash: copies of stashes have taken more than %d s: %s",
                         DRAIN_MAX_S, strerror(problem));
}

rp_err rp_spill_flash_move(rp_spill_flash *flash, uint32_t entry, size_t at, size_t bytes,
                           const char *in, char *out) {
    rp_err err = RP_OK;
    while (bytes > 0) {
        const size_t into = at % flash->piece_bytes;
        const size_t begin = at - into;
        const size_t all = rp_flash_round(flash->entry_bytes) - begin;
        const size_t piece = all < flash->piece_bytes ? all : flash->piece_bytes;
        const size_t now = bytes < piece - into ? bytes : piece - into;
        RP_TRY(rp_flash_read(flash->file, entry, begin, flash->piece, piece));
        if (in) {
            memcpy(flash->piece + into, in, now);
            RP_TRY(rp_flash_write(flash->file, entry, begin, flash->piece, piece));
            in += now;
        } else {
            memcpy(out, flash->piece + into, now);
            out += now;
        }
        at += now;
        bytes -= now;
    }
fail:
    return err;
}

uint64_t rp_spill_flash_written(rp_spill_flash *flash) {
    (void)pthread_mutex_lock(&flash->lock);
    const uint64_t bytes = flash->written_bytes;
    (void)pthread_mutex_unlock(&flash->lock);
    return bytes;
}
