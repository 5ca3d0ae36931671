/* A host that lets boards in, and a board that asks: both in this thread, over a real socket. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "enrol/enrol.h"
#include "enrol/issue.h"
#include "folder.h"

enum { NOW_S = 1000, ENDS_S = 5000 };

static rp_keypair host;
static rp_clock clock_real;
static rp_enrol_token token;

typedef struct {
    rp_links *links;
    rp_link *link;
    char answer[512]; /* "enrolled", or why not; "": none yet */
} board;

static int64_t now_s(void) {
    return NOW_S;
}

static void step_board(board *b) {
    rp_message *message;
    expect_ok(rp_link_step(b->link));
    while (rp_link_recv(b->link, &message) == RP_OK) {
        const rp_Frame *frame = &message->frame;
        (void)snprintf(b->answer, sizeof b->answer, "%s",
                       rp_frame_kind(frame) == RP_KIND_FAULT ? frame->body.fault.text : "enrolled");
        rp_link_release(b->link, &message);
    }
    rp_link_before_wait(b->link);
}

static bool step_and_stop(void *context) {
    board *b = context;
    step_board(b);
    return b->answer[0] && strcmp(b->answer, "enrolled") != 0;
}

/* The host waits for the ack of its answer, so that the board is stepped until it has sent that. */
static void on_enrolled(void *context, const rp_enrol_event *event) {
    board *b = context;
    for (uint32_t i = 0; i < 100 && !b->answer[0]; i++) {
        step_board(b);
        expect_ok(rp_link_wait(&b->link, 1, NULL, 0, 20 * RP_NS_PER_MS));
    }
    assert_string_equal(event->name, "left");
}

/* A port that is free now, and two behind it. */
static uint32_t free_port(void) {
    struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof own;
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&own, sizeof own), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&own, &bytes), 0);
    (void)close(fd);
    return ntohs(own.sin_port);
}

static void open_board(board *b, const char *door, const char *key) {
    rp_Frame frame = {.which_body = RP_KIND_ENROL, .body.enrol = {.port = 7000}};
    rp_keypair pair;
    rp_token opened;
    assert_null(rp_token_parse(token.word, &opened));
    rp_token_keys(&opened, &pair);
    const rp_links_options links = {.clock = &clock_real, .keys = &pair};
    const rp_link_options options = {.name = "enrol",
                                     .connect = door,
                                     .peer_public = opened.host,
                                     .window = 1,
                                     .send_window = 1,
                                     .part_bytes_max = RP_LINK_CONTROL_PART_MAX};
    *b = (board){.answer = ""};
    expect_ok(rp_links_open(&arena, &links, &b->links));
    expect_ok(rp_link_open(b->links, &options, &b->link));
    (void)snprintf(frame.body.enrol.public_key, sizeof frame.body.enrol.public_key, "%s", key);
    (void)snprintf(frame.body.enrol.board, sizeof frame.body.enrol.board, "rk3588");
    expect_ok(rp_link_send(b->link, &frame, NULL, 0, true, NULL, NULL));
}

/* A host that waits for the board `left` until `b` has an answer. */
static rp_enrol_options prepare_host(board *b) {
    static char door[64];
    static char roster[512];
    (void)snprintf(door, sizeof door, "tcp://127.0.0.1:%u", free_port());
    (void)snprintf(roster, sizeof roster, "%s", in_folder("lab.yaml"));
    return (rp_enrol_options){.keys_folder = folder,
                              .roster = roster,
                              .listen = door,
                              .host = "desk",
                              .keys = &host,
                              .clock = &clock_real,
                              .now_s = now_s,
                              .wait_ns = 20 * RP_NS_PER_S,
                              .stopped = step_and_stop,
                              .told = on_enrolled,
                              .context = b};
}

/* A board with this key comes with the token; its answer stands in `b`. */
static void ask_with(const char *key, board *b) {
    const char *name = "left";
    const rp_enrol_options options = prepare_host(b);
    open_board(b, options.listen, key);
    const rp_err err = rp_enrol_wait(&options, &name, 1);
    assert_int_equal(err, strcmp(b->answer, "enrolled") == 0 ? RP_OK : RP_ERR_INTERRUPTED);
    rp_links_close(&b->links);
}

static void expect_answer(const char *key, const char *said) {
    board b;
    ask_with(key, &b);
    if (!strstr(b.answer, said)) {
        fail_msg("got '%s', expected '%s'", b.answer, said);
    }
}

static bool is_used(void) {
    rp_pending *list;
    uint32_t count;
    expect_ok(rp_pending_read(&arena, folder, &list, &count));
    assert_int_equal(count, 1);
    return list[0].used_by != NULL;
}

static int setup_host(void **state) {
    clock_real = rp_clock_real();
    const int failed = setup(state);
    expect_ok(rp_keys_make(&host));
    rp_enrol_draw(host.public_text, &token);
    expect_ok(rp_enrol_open(folder, &token, "left", ENDS_S, NOW_S));
    return failed;
}

/* The token is used up by what the roster has, not by what it has refused. */
static void a_roster_that_refuses_leaves_the_token(void **state) {
    (void)state;
    static const char refuses[] = "boards: [{name: x, address: 'tcp://a:7000', key: "
                                  "'009c61o!#m2NH?C3>iWS5d]J*6CRx17-skh9337x'}]\n";
    rp_keypair first;
    rp_keypair second;
    expect_ok(rp_keys_make(&first));
    expect_ok(rp_keys_make(&second));
    append("lab.yaml", refuses, strlen(refuses));
    expect_answer(first.public_text, "one board in each line");
    assert_false(is_used());
    assert_string_equal(slurp("lab.yaml", NULL), refuses);
    (void)unlink(in_folder("lab.yaml"));
    expect_answer(second.public_text, "enrolled");
    assert_true(is_used());
    assert_non_null(strstr(slurp("lab.yaml", NULL), "board: \"rk3588\""));
    expect_answer(first.public_text, "a different board has used this token");
    expect_answer(second.public_text, "enrolled"); /* its answer may have been lost */
}

static void a_key_that_is_not_the_boards_own_is_refused(void **state) {
    (void)state;
    rp_keypair own;
    static const char has[] = "boards:\n  - {name: x, address: 'tcp://a:7000', key: '%s'}\n";
    char text[256];
    expect_ok(rp_keys_make(&own));
    expect_answer(host.public_text, "this host's own key");
    (void)snprintf(text, sizeof text, has, own.public_text);
    append("lab.yaml", text, strlen(text));
    expect_answer(own.public_text, "boards 'x' and 'left' have the same");
    expect_answer("no key", "invalid public key");
    assert_false(is_used());
}

static void a_withdrawn_token_lets_nobody_in(void **state) {
    (void)state;
    rp_keypair own;
    board b;
    const char *name = "left";
    expect_ok(rp_keys_make(&own));
    rp_enrol_options options = prepare_host(&b);
    options.wait_ns = RP_NS_PER_S / 2;
    open_board(&b, options.listen, own.public_text);
    expect_ok(rp_pending_withdraw(folder, &name, 1));
    rp_enrol_token other; /* the host waits for the name, with another token */
    rp_enrol_draw(host.public_text, &other);
    expect_ok(rp_enrol_open(folder, &other, "left", ENDS_S, NOW_S));
    expect_err(rp_enrol_wait(&options, &name, 1), RP_ERR_TIMEOUT);
    assert_true(rp_link_health_of(b.link).auth_failed);
    rp_links_close(&b.links);
}

/* The list changes while the host waits already. */
static bool withdraw_then_step(void *context) {
    const char *name = "left";
    rp_pending *list;
    uint32_t count;
    expect_ok(rp_pending_read(&arena, folder, &list, &count));
    if (count > 0) {
        expect_ok(rp_pending_withdraw(folder, &name, 1));
    }
    return step_and_stop(context);
}

static void a_token_may_be_withdrawn_while_the_host_waits(void **state) {
    (void)state;
    rp_keypair own;
    board b;
    const char *name = "left";
    expect_ok(rp_keys_make(&own));
    rp_enrol_options options = prepare_host(&b);
    options.stopped = withdraw_then_step;
    open_board(&b, options.listen, own.public_text);
    expect_err(rp_enrol_wait(&options, &name, 1), RP_ERR_INTERRUPTED);
    assert_non_null(strstr(b.answer, "the token was withdrawn"));
    assert_int_equal(access(options.roster, F_OK), -1);
    rp_links_close(&b.links);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_roster_that_refuses_leaves_the_token, setup_host,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_key_that_is_not_the_boards_own_is_refused, setup_host,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_withdrawn_token_lets_nobody_in, setup_host, teardown),
        cmocka_unit_test_setup_teardown(a_token_may_be_withdrawn_while_the_host_waits, setup_host,
                                        teardown),
    };
    return cmocka_run_group_tests_name("take", tests, NULL, NULL);
}
