#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "link/inside.h"

enum { WAIT_FDS_MAX = 64, WAIT_ITEMS_MAX = 2 * RP_LINKS_WAIT_MAX + 1 + WAIT_FDS_MAX };

/* ZeroMQ does not tell when it lets memory go: look again this often while we wait for it. */
#define LENT_POLL_NS (2 * RP_NS_PER_MS)
/* A ROUTER is writable as soon as any of its connections is, not only the one that we wait for. */
#define FULL_POLL_NS (1 * RP_NS_PER_MS)

rp_err key_decode(const char *text, uint8_t *out) {
    if (!text || strlen(text) != RP_KEY_TEXT - 1 || !zmq_z85_decode(out, text)) {
        return rp_fail(RP_ERR_FORMAT, "key '%.60s': expected 40 Z85 characters", text ? text : "");
    }
    return RP_OK;
}

int64_t link_now_ns(const rp_link *link) {
    return rp_clock_now_ns(link->links->clock);
}

rp_err rp_links_open(rp_arena *arena, const rp_keypair *keys, const rp_clock *clock, uint64_t seed,
                     rp_links **out) {
    rp_err err;
    uint8_t key[RP_KEY_BYTES];
    rp_links *links = NULL;
    RP_TRY(key_decode(keys->public_text, key));
    RP_TRY(key_decode(keys->secret_text, key));
    RP_TRY(RP_ARENA_NEW(arena, 1, &links));
    links->clock = clock;
    links->seed = seed;
    memcpy(links->public_text, keys->public_text, RP_KEY_TEXT);
    memcpy(links->secret_text, keys->secret_text, RP_KEY_TEXT);
    links->context = zmq_ctx_new();
    if (!links->context || zmq_ctx_set(links->context, ZMQ_BLOCKY, 0) != 0) {
        err = rp_fail(RP_ERR_MEMORY, "links: no ZeroMQ context: %s", zmq_strerror(zmq_errno()));
        goto fail;
    }
    RP_TRY(zap_open(links));
    *out = links;
    explicit_bzero(key, sizeof key);
    return RP_OK;
fail:
    explicit_bzero(key, sizeof key);
    rp_links_close(&links);
    return err;
}

void rp_links_close(rp_links **links_taken) {
    rp_links *links = *links_taken;
    *links_taken = NULL;
    if (!links) {
        return;
    }
    while (links->first) {
        rp_link *link = links->first;
        rp_link_close(&link);
    }
    if (links->zap) {
        (void)zmq_close(links->zap);
    }
    if (links->context) {
        while (zmq_ctx_term(links->context) != 0 && zmq_errno() == EINTR) {
        }
    }
    explicit_bzero(links, sizeof *links);
}

static bool lends(const rp_link *link) {
    return link->out.finished < link->out.acked;
}

/* When this link has to be stepped even if nothing comes. */
static int64_t deadline_ns(const rp_link *link, int64_t now) {
    int64_t at = now + RP_NS_PER_S;
    if (link->in.news || sender_ready(link)) {
        return now;
    }
    if (lends(link) && now + LENT_POLL_NS < at) {
        at = now + LENT_POLL_NS;
    }
    if (link->reconnect_ns && link->reconnect_ns < at) {
        at = link->reconnect_ns;
    }
    if (sender_waits(link) && link->out.probe_ns < at) {
        at = link->out.probe_ns;
    }
    if (link->bound && link->want_write && now + FULL_POLL_NS < at) {
        at = now + FULL_POLL_NS;
    }
    if (link->emulate.count && !link->want_write) {
        int64_t due = link->emulate.ring[link->emulate.head % link->emulate.capacity].due_ns;
        at = due < at ? due : at;
    }
    return at;
}

static int add_link(zmq_pollitem_t *items, int count, rp_link *link) {
    short events =
        (short)(link->want_write && !link->bound ? ZMQ_POLLIN | ZMQ_POLLOUT : ZMQ_POLLIN);
    items[count++] = (zmq_pollitem_t){.socket = link->socket, .events = events};
    if (link->monitor) {
        items[count++] = (zmq_pollitem_t){.socket = link->monitor, .events = ZMQ_POLLIN};
    }
    return count;
}

rp_err rp_link_wait(rp_link *const *link, uint32_t link_count, const int *fds, uint32_t fd_count,
                    int64_t timeout_ns) {
    RP_ASSERT(link_count <= RP_LINKS_WAIT_MAX && fd_count <= WAIT_FDS_MAX);
    zmq_pollitem_t items[WAIT_ITEMS_MAX];
    int count = 0;
    int64_t wait_ns = timeout_ns > 0 ? timeout_ns : 0;
    for (uint32_t i = 0; i < link_count; i++) {
        receiver_ack(link[i]); /* nothing more to travel with: the caller is about to sleep */
        int64_t now = link_now_ns(link[i]);
        int64_t left = deadline_ns(link[i], now) - now;
        left = left > 0 ? left : 0;
        link[i]->in.news = false;
        wait_ns = left < wait_ns ? left : wait_ns;
        count = add_link(items, count, link[i]);
    }
    int zap = -1;
    if (link_count) {
        zap = count;
        items[count++] = (zmq_pollitem_t){.socket = link[0]->links->zap, .events = ZMQ_POLLIN};
    }
    for (uint32_t i = 0; i < fd_count; i++) {
        items[count++] = (zmq_pollitem_t){.fd = fds[i], .events = ZMQ_POLLIN};
    }
    long wait_ms = (long)((wait_ns + RP_NS_PER_MS - 1) / RP_NS_PER_MS);
    if (zmq_poll(items, count, wait_ms) < 0 && zmq_errno() != EINTR) {
        return rp_fail(RP_ERR_IO, "links: zmq_poll: %s", zmq_strerror(zmq_errno()));
    }
    if (zap >= 0 && (items[zap].revents & ZMQ_POLLIN)) {
        zap_serve(link[0]->links);
    }
    return RP_OK;
}
