#include "link/link_own.h"

#include <string.h>

rp_err rp_links_open(rp_arena *arena, const rp_links_options *options, rp_links **out) {
    rp_err err;
    rp_links *links = NULL;
    *out = NULL;
    RP_TRY(RP_ARENA_NEW(arena, 1, &links));
    links->clock = options->clock;
    links->own_loop = rp_loop_poll(options->clock);
    links->loop = options->loop ? options->loop : &links->own_loop;
    links->seed = options->seed;
    links->media = options->media;
    links->sessions = options->sessions;
    links->transport = options->transport;
    if (!links->transport) {
        const rp_transport_options zmq = {.clock = options->clock, .keys = options->keys};
        RP_TRY(rp_transport_start(arena, "zmq", &zmq, &links->own_transport));
        links->transport = links->own_transport;
    }
    *out = links;
fail:
    return err;
}

void rp_links_set_seed(rp_links *links, uint64_t seed) {
    links->seed = seed;
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
    rp_transport_finish(&links->own_transport);
    memset(links, 0, sizeof *links);
}
