/* For tests: the links of a process, over a hub of this one. */
#ifndef RP_TESTS_PROCESS_H
#define RP_TESTS_PROCESS_H

#include "expect.h"

#include "link/link.h"
#include "transport/inproc.h"

typedef struct {
    rp_keypair keys;
    rp_transport *transport;
    rp_links *links;
} far_process;

/* Makes its keys, unless it has some. `knows_peers`: its links check whose keys the other end has.
 */
static inline void open_process(rp_arena *in, const rp_clock *clock, rp_hub *hub, bool knows_peers,
                                far_process *out) {
    if (!out->keys.public_text[0]) {
        expect_ok(rp_keys_make(&out->keys));
    }
    const rp_transport_options inproc = {
        .clock = clock, .hub = hub, .keys = knows_peers ? &out->keys : NULL};
    expect_ok(rp_transport_start(in, "inproc", &inproc, &out->transport));
    const rp_links_options links = {.clock = clock, .transport = out->transport};
    expect_ok(rp_links_open(in, &links, &out->links));
}

static inline void close_process(far_process *process) {
    rp_links_close(&process->links);
    rp_transport_finish(&process->transport);
}

#endif
