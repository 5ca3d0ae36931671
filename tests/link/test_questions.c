/* Questions come beside the stream: the peer that is served, its numbers and times stay as they
 * are. */
#include "link/head.h"
#include "pair.h"

/* Somebody with a key, who speaks no stream. */
typedef struct {
    end e;
    rp_port *port;
} asker;

static void asker_open(const pair *p, asker *a, const rp_keypair *keys) {
    *a = (asker){0};
    end_open(p, &a->e, keys);
    const rp_port_options options = {.name = "ask",
                                     .connect = rp_link_endpoint(p->a.link),
                                     .peer_public = p->a.keys.public_text,
                                     .queue = 8,
                                     .frame_bytes_max = RP_HEAD_BYTES_MAX};
    expect_ok(rp_port_open(a->e.transport, &options, &a->port));
}

static void asker_close(asker *a) {
    rp_port_close(&a->port);
    end_close(&a->e);
}

static void ask_once(asker *a, uint64_t id, uint32_t what) {
    rp_Frame frame = {.which_body = RP_KIND_ASK, .session = 4711};
    frame.body.ask = (rp_Ask){.id = id, .what = what};
    rp_packet packet = {.count = 1};
    expect_ok(rp_frame_seal(&frame, NULL, 0));
    expect_ok(rp_head_write(&frame, &packet.frame[0]));
    (void)!a->port->kind->post(a->port, &packet);
    rp_packet_drop(&packet);
}

/* Rounds until something comes. */
static bool await_answer(pair *p, asker *a, uint64_t id, uint32_t what, rp_Frame *out) {
    for (int i = 0; i < 600; i++) {
        rp_port_event event;
        rp_packet packet;
        while (a->port->kind->step(a->port, &event)) {
        }
        if (i % 50 == 0) {
            ask_once(a, id, what);
        }
        if (a->port->kind->take(a->port, &packet) == RP_OK) {
            expect_ok(rp_head_read(packet.frame[0], 0, out));
            rp_packet_drop(&packet);
            return true;
        }
        pair_step(p);
    }
    return false;
}

typedef struct {
    uint32_t asked;
    rp_Ask last;
} board;

static bool answer(void *context, const rp_Ask *ask, rp_Frame *out) {
    board *b = context;
    b->asked++;
    b->last = *ask;
    out->which_body = RP_KIND_ORDERED;
    out->body.ordered = (rp_Ordered){.id = ask->id, .outcome = RP_ORDERED_REFUSED};
    (void)snprintf(out->body.ordered.text, sizeof out->body.ordered.text, "no\nnever");
    return ask->what != 9;
}

/* A stream between two ends, and somebody who asks one of them. */
typedef struct {
    pair p;
    asker a;
    board b;
    rp_Frame frame; /* what was answered last */
} scene;

/* `answers`: end a does. Who asks is not there yet. */
static void scene_open(scene *s, bool answers) {
    const rp_link_options options = pair_options(4);
    *s = (scene){.b = {0}};
    pair_open(&s->p, &options);
    if (answers) {
        rp_link_set_answer(s->p.a.link, answer, &s->b);
    }
    step_until(&s->p, rp_link_can_send(s->p.b.link) && stats_of(&s->p.a).last_heard_ns, 20);
}

static void scene_close(scene *s) {
    asker_close(&s->a);
    pair_close(&s->p);
}

static bool is_answered(scene *s, uint64_t id, uint32_t what) {
    return await_answer(&s->p, &s->a, id, what, &s->frame);
}

static void expect_hello(scene *s) {
    rp_message *message;
    rp_Frame hello = {.which_body = RP_KIND_HELLO};
    expect_ok(rp_link_send(s->p.b.link, &hello, NULL, 0, false, NULL, NULL));
    step_until(&s->p, rp_link_recv(s->p.a.link, &message) == RP_OK, 20);
    assert_int_equal(rp_frame_kind(&message->frame), RP_KIND_HELLO);
    rp_link_release(s->p.a.link, &message);
}

static void a_question_is_answered_beside_a_stream(void **state) {
    (void)state;
    scene s;
    scene_open(&s, true);
    const rp_link_stats before = stats_of(&s.p.a);
    asker_open(&s.p, &s.a, &s.p.b.keys); /* the key that is served, once more */
    assert_true(is_answered(&s, 77, RP_ASK_REBOOT));
    assert_int_equal(rp_frame_kind(&s.frame), RP_KIND_ORDERED);
    assert_int_equal(s.frame.body.ordered.id, 77);
    assert_string_equal(s.frame.body.ordered.text, "no?never"); /* mended, as all texts are */
    assert_int_equal(s.frame.peer, 4711);
    assert_true(s.b.asked >= 1);
    assert_int_equal(s.b.last.what, RP_ASK_REBOOT);
    const rp_link_stats after = stats_of(&s.p.a);
    assert_int_equal(after.resets, before.resets);
    assert_int_equal(after.refused, before.refused);
    assert_int_equal(after.peer_session, before.peer_session);
    assert_false(after.peer_restarted);
    assert_int_equal(rp_link_health_of(s.p.a.link).twins, 0);
    assert_int_equal(stats_of(&s.p.b).resets, 0);
    expect_hello(&s); /* the stream goes on */
    scene_close(&s);
}

/* Before anybody is served, too. */
static void a_question_needs_no_peer(void **state) {
    (void)state;
    scene s = {.b = {0}};
    pair_begin(&s.p, rp_clock_real());
    bind_end(&s.p, pair_options(4), "tcp://127.0.0.1:*");
    expect_ok(rp_link_open(s.p.b.links,
                           &(rp_link_options){.name = "other",
                                              .bind = "tcp://127.0.0.1:*",
                                              .peer_public = s.p.a.keys.public_text,
                                              .window = 1,
                                              .send_window = 1,
                                              .part_bytes_max = 1024},
                           &s.p.b.link)); /* only so that there is one to step */
    rp_link_set_answer(s.p.a.link, answer, &s.b);
    asker_open(&s.p, &s.a, &s.p.b.keys);
    assert_true(is_answered(&s, 5, RP_ASK_LINES));
    assert_int_equal(s.frame.body.ordered.id, 5);
    assert_int_equal(stats_of(&s.p.a).last_heard_ns, 0);
    scene_close(&s);
}

/* Without a number, of what nobody answers, or where nobody does: refused, and nothing comes. */
static void what_is_not_answered(void **state) {
    (void)state;
    scene s;
    scene_open(&s, false);
    asker_open(&s.p, &s.a, &s.p.b.keys);
    assert_false(is_answered(&s, 1, RP_ASK_LINES));
    assert_true(stats_of(&s.p.a).refused > 0);
    rp_link_set_answer(s.p.a.link, answer, &s.b);
    assert_false(is_answered(&s, 0, RP_ASK_LINES));
    assert_int_equal(s.b.asked, 0);
    assert_false(is_answered(&s, 1, 9));
    assert_true(s.b.asked > 0);
    scene_close(&s);
}

/* Whose key is not let in gets no answer, for nothing of it arrives. */
static void a_stranger_gets_no_answer(void **state) {
    (void)state;
    scene s;
    scene_open(&s, true);
    asker_open(&s.p, &s.a, NULL);
    assert_false(is_answered(&s, 3, RP_ASK_REBOOT));
    assert_int_equal(s.b.asked, 0);
    scene_close(&s);
}

/* They are counted as what brings nothing: a flood of them is dropped, and the peer's stream has
 * room all the same. */
static void a_flood_of_questions_is_dropped(void **state) {
    (void)state;
    scene s;
    scene_open(&s, true);
    asker_open(&s.p, &s.a, &s.p.b.keys);
    assert_true(is_answered(&s, 3, RP_ASK_REBOOT));
    for (int i = 0; i < 60000 && stats_of(&s.p.a).flooded == 0; i++) {
        rp_packet packet;
        ask_once(&s.a, 3, RP_ASK_REBOOT);
        expect_ok(rp_link_step(s.p.a.link));
        expect_ok(rp_link_step(s.p.b.link));
        while (s.a.port->kind->take(s.a.port, &packet) == RP_OK) {
            rp_packet_drop(&packet);
        }
    }
    assert_true(stats_of(&s.p.a).flooded > 0);
    expect_hello(&s);
    scene_close(&s);
}

int main(void) {
    const struct CMUnitTest zmq[] = {cmocka_unit_test(a_stranger_gets_no_answer)};
    const struct CMUnitTest both[] = {
        cmocka_unit_test(a_question_is_answered_beside_a_stream),
        cmocka_unit_test(a_question_needs_no_peer),
        cmocka_unit_test(what_is_not_answered),
    };
    const struct CMUnitTest inproc[] = {cmocka_unit_test(a_flood_of_questions_is_dropped)};
    int failed = cmocka_run_group_tests(zmq, NULL, NULL);
    failed += cmocka_run_group_tests(both, NULL, NULL);
    pair_inproc = true;
    failed += cmocka_run_group_tests(both, NULL, NULL);
    return failed + cmocka_run_group_tests(inproc, NULL, NULL);
}
