/* A slow hop, below the reliability: what this end sends waits here until an imagined line has
 * carried it. The line keeps order, as TCP does; a lost message is found missing and sent again. */
#include <string.h>

#include "link/inside.h"

rp_err rp_link_emulate(rp_link *link, const rp_link_profile *profile) {
    emulation *e = &link->emulate;
    const bool line = profile->rate_mbit > 0 || profile->delay_ms > 0 || profile->jitter_ms > 0 ||
                      profile->loss > 0 || profile->outage.every_s > 0;
    e->profile = *profile;
    if (e->on || !line) {
        return RP_OK; /* once on, it stays so: what waits here goes first */
    }
    char stream[NAME_BYTES + 8];
    snprintf(stream, sizeof stream, "link/%s", link->name);
    e->rng = rp_rng_named(link->links->seed, stream);
    e->capacity = link->send_window + QUEUE_SLACK;
    e->opened_ns = e->free_ns = e->last_due_ns = link_now_ns(link);
    rp_err err = RP_ARENA_NEW(&link->arena, e->capacity, &e->ring);
    e->on = err == RP_OK;
    return err;
}

void emulate_close(rp_link *link) {
    emulation *e = &link->emulate;
    for (; e->count; e->count--) {
        parked *p = &e->ring[e->head++ % e->capacity];
        close_frames(p->frame, p->frame_count);
    }
}

bool emulate_full(const rp_link *link) {
    return link->emulate.on && link->emulate.count == link->emulate.capacity;
}

/* A time within an outage becomes its end: outages begin every outage.every_s after open. */
static int64_t after_outage(const emulation *e, int64_t at) {
    int64_t every = (int64_t)(e->profile.outage.every_s * (double)RP_NS_PER_S);
    int64_t lasts = (int64_t)(e->profile.outage.for_s * (double)RP_NS_PER_S);
    int64_t since = at - e->opened_ns;
    if (every <= 0 || since < every || since % every >= lasts) {
        return at;
    }
    return at - since % every + lasts;
}

void emulate_park(rp_link *link, zmq_msg_t *frames, uint32_t count, size_t bytes) {
    emulation *e = &link->emulate;
    int64_t now = link_now_ns(link);
    int64_t busy = 0;
    if (e->profile.rate_mbit > 0) {
        busy = (int64_t)((double)bytes * 8e3 / e->profile.rate_mbit); /* bits / (Mbit/s) in ns */
        link->stats.busy_s += (double)busy / (double)RP_NS_PER_S;
    }
    e->free_ns = after_outage(e, e->free_ns > now ? e->free_ns : now) + busy;
    if (e->profile.loss > 0 && (double)rp_rng_uniform(&e->rng) < e->profile.loss) {
        close_frames(frames, count);
        return;
    }
    double late_ms = e->profile.delay_ms;
    if (e->profile.jitter_ms > 0) {
        late_ms += e->profile.jitter_ms * (2.0 * (double)rp_rng_uniform(&e->rng) - 1.0);
    }
    int64_t due = e->free_ns + (late_ms > 0 ? (int64_t)(late_ms * (double)RP_NS_PER_MS) : 0);
    due = after_outage(e, due);
    e->last_due_ns = due > e->last_due_ns ? due : e->last_due_ns;
    RP_ASSERT(e->count < e->capacity);
    parked *p = &e->ring[(e->head + e->count++) % e->capacity];
    p->due_ns = e->last_due_ns;
    p->frame_count = count;
    for (uint32_t i = 0; i < count; i++) {
        (void)zmq_msg_init(&p->frame[i]);
        (void)zmq_msg_move(&p->frame[i], &frames[i]);
        (void)zmq_msg_close(&frames[i]);
    }
}

void emulate_flush(rp_link *link) {
    emulation *e = &link->emulate;
    int64_t now = link_now_ns(link);
    while (e->count) {
        parked *p = &e->ring[e->head % e->capacity];
        if (p->due_ns > now) {
            return;
        }
        sent result = socket_send(link, p->frame, p->frame_count);
        if (result == FULL) {
            return;
        }
        if (result == GONE) {
            close_frames(p->frame, p->frame_count);
        }
        e->head++;
        e->count--;
    }
}
