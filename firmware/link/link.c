#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "link/inside.h"

static rp_err check_options(const rp_link_options *options) {
    const char *name = options->name ? options->name : "without a name";
    if (!options->name || strlen(options->name) >= NAME_BYTES) {
        return rp_fail(RP_ERR_USAGE, "link %.60s: a name of 1 to %d characters is needed", name,
                       NAME_BYTES - 1);
    }
    if (!options->bind == !options->connect) {
        return rp_fail(RP_ERR_USAGE, "link %s: either binds or connects", name);
    }
    if (options->connect && !options->peer_public) {
        return rp_fail(RP_ERR_USAGE, "link %s: connecting needs the server's key", name);
    }
    if (options->window < 1 || options->window > RP_LINK_WINDOW_MAX || options->send_window < 1 ||
        options->send_window > RP_LINK_WINDOW_MAX) {
        return rp_fail(RP_ERR_USAGE, "link %s: windows %u and %u: 1 to %d", name, options->window,
                       options->send_window, RP_LINK_WINDOW_MAX);
    }
    return RP_OK;
}

/* Two lives of a process must differ, whatever their seed. */
static rp_err choose_session(rp_link *link) {
    while (link->session == 0) {
        ssize_t n = getrandom(&link->session, sizeof link->session, 0);
        if (n != (ssize_t)sizeof link->session) {
            if (n < 0 && errno != EINTR) {
                return rp_fail(RP_ERR_IO, "link %s: getrandom: %s", link->name, strerror(errno));
            }
            link->session = 0;
        }
    }
    return RP_OK;
}

static void set_up(rp_link *link, rp_links *links, const rp_link_options *options) {
    const char *endpoint = options->bind ? options->bind : options->connect;
    link->links = links;
    link->id = links->next_id++;
    snprintf(link->name, sizeof link->name, "%s", options->name);
    snprintf(link->domain, sizeof link->domain, "link-%u", link->id);
    link->bound = options->bind != NULL;
    link->copies = strncmp(endpoint, "inproc://", 9) == 0;
    link->window = options->window;
    link->send_window = options->send_window;
    link->part_bytes_max = options->part_bytes_max;
    link->run = options->run;
    link->wire = options->wire ? options->wire : RP_WIRE_MAX;
    link->last_step_ns = rp_clock_now_ns(links->clock);
}

static void remove_from_list(rp_link *link) {
    for (rp_link **at = &link->links->first; *at; at = &(*at)->next) {
        if (*at == link) {
            *at = link->next;
            return;
        }
    }
}

rp_err rp_link_open(rp_links *links, const rp_link_options *options, rp_link **out) {
    rp_err err;
    rp_arena arena;
    rp_link *link = NULL;
    *out = NULL;
    rp_arena_init(&arena, "link", 0);
    RP_TRY(check_options(options));
    RP_TRY(RP_ARENA_NEW(&arena, 1, &link));
    link->arena = arena;
    set_up(link, links, options);
    link->next = links->first;
    links->first = link;
    RP_TRY(choose_session(link));
    RP_TRY(sender_open(link));
    RP_TRY(receiver_open(link));
    RP_TRY(rp_link_emulate(link, &options->emulate));
    if (options->peer_public) {
        uint8_t key[RP_KEY_BYTES];
        RP_TRY(link->bound ? rp_link_allow(link, options->peer_public)
                           : key_decode(options->peer_public, key));
    }
    RP_TRY(socket_open(link, options));
    *out = link;
    return RP_OK;
fail:
    if (link) {
        rp_link_close(&link);
    } else {
        rp_arena_finish(&arena);
    }
    return err;
}

void rp_link_close(rp_link **link_taken) {
    rp_link *link = *link_taken;
    *link_taken = NULL;
    if (!link) {
        return;
    }
    emulate_close(link);
    socket_close(link);
    sender_close(link);
    receiver_close(link);
    remove_from_list(link);
    rp_arena arena = link->arena; /* the link itself lies in it */
    rp_arena_finish(&arena);
}

rp_err rp_link_allow(rp_link *link, const char *public_text) {
    RP_ASSERT(link->bound);
    uint8_t key[RP_KEY_BYTES];
    rp_err err = key_decode(public_text, key);
    if (err) {
        return err;
    }
    if (link->allowed_count == ALLOWED_MAX) {
        return rp_fail(RP_ERR_LIMIT, "link %s: more than %d keys", link->name, ALLOWED_MAX);
    }
    memcpy(link->allowed[link->allowed_count++], key, RP_KEY_BYTES);
    return RP_OK;
}

void rp_link_set_run(rp_link *link, rp_run_identity run) {
    link->run = run;
}

void rp_link_set_wire(rp_link *link, uint32_t version) {
    link->wire = version;
}

const char *rp_link_endpoint(const rp_link *link) {
    return link->endpoint;
}

/* Without an emulated line we can only see that something was not acked yet. */
static void measure_busy(rp_link *link) {
    int64_t now = link_now_ns(link);
    if (link->emulate.profile.rate_mbit <= 0 && link->out.acked < link->out.sent_high) {
        link->stats.busy_s += (double)(now - link->last_step_ns) / (double)RP_NS_PER_S;
    }
    link->last_step_ns = now;
}

rp_err rp_link_step(rp_link *link) {
    link->want_write = false;
    measure_busy(link);
    zap_serve(link->links);
    socket_monitor(link);
    receiver_drain(link);
    emulate_flush(link);
    sender_transmit(link);
    sender_finish(link);
    sender_probe(link);
    emulate_flush(link); /* what was parked just now with no delay */
    if (link->in.ack_overdue) {
        receiver_ack(link); /* the round since it fell due brought no message to travel with */
    }
    link->in.ack_overdue = link->in.ack_due;
    return RP_OK;
}

void rp_link_stats_of(const rp_link *link, rp_link_stats *out) {
    *out = link->stats;
    out->unacked = link->out.next - link->out.acked;
}

rp_err rp_link_ping(rp_link *link) {
    rp_Frame header = {.which_body = RP_KIND_PING, .body.ping = {.time_ns = link_now_ns(link)}};
    return post_bare(link, &header) == SENT ? RP_OK : RP_ERR_AGAIN;
}
