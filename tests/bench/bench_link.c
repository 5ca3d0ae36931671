/* MB/s of 1 MiB parcels over loopback: our link (CURVE, hash, acks) beside bare ZeroMQ with and
 * without CURVE. Both ends share a thread here; ZeroMQ has one for each end. And what a message
 * costs beside its bytes: small parcels over inproc, send to release with their acks. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

#include "base/clock.h"
#include "link/link.h"
#include "transport/inproc.h"

enum { SMALL_BYTES = 64, SMALL_PARCELS = 200000 };
enum { PARCEL_BYTES = 1 << 20, PARCELS = 300, WINDOW = 4 };

static uint8_t memory[PARCEL_BYTES];

static void must_succeed(bool ok, const char *what) {
    if (!ok) {
        fprintf(stderr, "bench_link: %s failed: %s\n", what, zmq_strerror(zmq_errno()));
        abort();
    }
}

static int64_t now_ns(void) {
    rp_clock clock = rp_clock_real();
    return rp_clock_now_ns(&clock);
}

static void report_rate(const char *what, int64_t began_ns) {
    double seconds = (double)(now_ns() - began_ns) / 1e9;
    printf("%-28s %7.0f MB/s\n", what, (double)PARCELS * PARCEL_BYTES / 1e6 / seconds);
}

static void nothing(void *context) {
    (void)context;
}

static void run_link(rp_link *a, rp_link *b) {
    uint32_t sent = 0;
    uint32_t received = 0;
    const rp_part part = rp_part_of_array(RP_DTYPE_F32, memory, PARCEL_BYTES / 4);
    while (!rp_link_can_send(b)) {
        must_succeed(rp_link_step(a) == RP_OK && rp_link_step(b) == RP_OK, "step");
    }
    int64_t began_ns = now_ns();
    while (received < PARCELS) {
        while (sent < PARCELS && rp_link_can_send(b)) {
            const rp_Parcel parcel = {.step = sent++, .count = PARCEL_BYTES / 4};
            rp_Frame frame = rp_frame_of_parcel(RP_KIND_ACTIVATION, &parcel);
            must_succeed(rp_link_send(b, &frame, &part, 1, false, nothing, NULL) == RP_OK, "send");
        }
        must_succeed(rp_link_step(a) == RP_OK && rp_link_step(b) == RP_OK, "step");
        rp_message *message;
        while (rp_link_recv(a, &message) == RP_OK) {
            rp_link_release(a, &message);
            received++;
        }
        must_succeed(rp_link_wait(&b, 1, NULL, 0, 0) == RP_OK, "wait");
        must_succeed(rp_link_wait(&a, 1, NULL, 0, RP_NS_PER_MS) == RP_OK, "wait");
    }
    report_rate("link", began_ns);
}

static void bench_link(void) {
    rp_arena arena;
    rp_keypair keys;
    rp_links *links[2];
    rp_link *a;
    rp_link *b;
    rp_clock clock = rp_clock_real();
    rp_arena_init(&arena, "bench", 0);
    must_succeed(rp_keys_make(&keys) == RP_OK, "keys");
    rp_link_options options = {.name = "bench",
                               .bind = "tcp://127.0.0.1:*",
                               .peer_public = keys.public_text,
                               .window = WINDOW,
                               .send_window = WINDOW,
                               .part_bytes_max = PARCEL_BYTES};
    for (int i = 0; i < 2; i++) {
        const rp_links_options each = {.clock = &clock, .keys = &keys};
        must_succeed(rp_links_open(&arena, &each, &links[i]) == RP_OK, "open");
    }
    must_succeed(rp_link_open(links[0], &options, &a) == RP_OK, "bind");
    options.bind = NULL;
    options.connect = rp_link_endpoint(a);
    must_succeed(rp_link_open(links[1], &options, &b) == RP_OK, "connect");
    run_link(a, b);
    rp_links_close(&links[1]);
    rp_links_close(&links[0]);
    rp_arena_finish(&arena);
}

static void run_small(rp_link *a, rp_link *b) {
    uint32_t sent = 0;
    uint32_t received = 0;
    const rp_part part = rp_part_of_array(RP_DTYPE_U8, memory, SMALL_BYTES);
    const int64_t began_ns = now_ns();
    while (received < SMALL_PARCELS) {
        must_succeed(rp_link_step(a) == RP_OK && rp_link_step(b) == RP_OK, "step");
        while (sent < SMALL_PARCELS && rp_link_can_send(b)) {
            const rp_Parcel parcel = {.step = sent++, .count = SMALL_BYTES};
            rp_Frame frame = rp_frame_of_parcel(RP_KIND_LABEL, &parcel);
            must_succeed(rp_link_send(b, &frame, &part, 1, false, nothing, NULL) == RP_OK, "send");
        }
        rp_message *message;
        while (rp_link_recv(a, &message) == RP_OK) {
            rp_link_release(a, &message);
            received++;
        }
        rp_link_before_wait(a);
        rp_link_before_wait(b);
    }
    printf("%-28s %7.2f us a message\n", "link over inproc, 64 bytes",
           (double)(now_ns() - began_ns) / 1e3 / SMALL_PARCELS);
}

static void bench_inproc(void) {
    rp_arena arena;
    rp_hub *hub;
    rp_transport *transport;
    rp_links *links;
    rp_link *a;
    rp_link *b;
    const rp_clock clock = rp_clock_real();
    rp_arena_init(&arena, "bench", 0);
    must_succeed(rp_hub_new(&arena, 0, &hub) == RP_OK, "hub");
    const rp_transport_options inproc = {.clock = &clock, .hub = hub};
    must_succeed(rp_transport_start(&arena, "inproc", &inproc, &transport) == RP_OK, "transport");
    const rp_links_options both = {.clock = &clock, .transport = transport};
    must_succeed(rp_links_open(&arena, &both, &links) == RP_OK, "open");
    rp_link_options options = {.name = "bench",
                               .bind = "tcp://127.0.0.1:5000",
                               .window = WINDOW,
                               .send_window = WINDOW,
                               .part_bytes_max = SMALL_BYTES};
    must_succeed(rp_link_open(links, &options, &a) == RP_OK, "bind");
    options.connect = options.bind;
    options.bind = NULL;
    must_succeed(rp_link_open(links, &options, &b) == RP_OK, "connect");
    run_small(a, b);
    rp_links_close(&links);
    rp_transport_finish(&transport);
    rp_hub_finish(&hub);
    rp_arena_finish(&arena);
}

static void *bare_socket(void *context, bool server, bool curve, const rp_keypair *keys) {
    int window = WINDOW;
    int yes = 1;
    void *socket = zmq_socket(context, ZMQ_DEALER);
    must_succeed(socket && zmq_setsockopt(socket, ZMQ_SNDHWM, &window, sizeof window) == 0 &&
                     zmq_setsockopt(socket, ZMQ_RCVHWM, &window, sizeof window) == 0,
                 "socket");
    if (curve) {
        must_succeed(
            zmq_setsockopt(socket, ZMQ_CURVE_PUBLICKEY, keys->public_text, 40) == 0 &&
                zmq_setsockopt(socket, ZMQ_CURVE_SECRETKEY, keys->secret_text, 40) == 0 &&
                (server ? zmq_setsockopt(socket, ZMQ_CURVE_SERVER, &yes, sizeof yes)
                        : zmq_setsockopt(socket, ZMQ_CURVE_SERVERKEY, keys->public_text, 40)) == 0,
            "keys");
    }
    return socket;
}

static void keep_message(void *data, void *hint) {
    (void)data;
    (void)hint;
}

static void bench_bare(bool curve) {
    rp_keypair keys;
    char endpoint[128];
    size_t size = sizeof endpoint;
    must_succeed(rp_keys_make(&keys) == RP_OK, "keys");
    void *context[2] = {zmq_ctx_new(), zmq_ctx_new()};
    void *a = bare_socket(context[0], true, curve, &keys);
    void *b = bare_socket(context[1], false, curve, &keys);
    must_succeed(zmq_bind(a, "tcp://127.0.0.1:*") == 0, "bind");
    must_succeed(zmq_getsockopt(a, ZMQ_LAST_ENDPOINT, endpoint, &size) == 0, "endpoint");
    must_succeed(zmq_connect(b, endpoint) == 0, "connect");
    must_succeed(zmq_send(b, "", 0, 0) == 0 && zmq_recv(a, endpoint, 1, 0) == 0, "first message");
    int64_t began_ns = now_ns();
    for (uint32_t sent = 0, received = 0; received < PARCELS;) {
        zmq_msg_t message;
        if (sent < PARCELS) {
            must_succeed(zmq_msg_init_data(&message, memory, PARCEL_BYTES, keep_message, NULL) == 0,
                         "message");
            if (zmq_msg_send(&message, b, ZMQ_DONTWAIT) >= 0) {
                sent++;
            }
            (void)zmq_msg_close(&message);
        }
        (void)zmq_msg_init(&message);
        if (zmq_msg_recv(&message, a, ZMQ_DONTWAIT) >= 0) {
            received++;
        } else {
            zmq_pollitem_t item = {.socket = a, .events = ZMQ_POLLIN};
            (void)zmq_poll(&item, 1, 1);
        }
        (void)zmq_msg_close(&message);
    }
    report_rate(curve ? "bare ZeroMQ with CURVE" : "bare ZeroMQ", began_ns);
    (void)zmq_close(a);
    (void)zmq_close(b);
    (void)zmq_ctx_term(context[0]);
    (void)zmq_ctx_term(context[1]);
}

int main(void) {
    memset(memory, 7, sizeof memory);
    bench_bare(false);
    bench_bare(true);
    bench_link();
    bench_inproc();
    return 0;
}
